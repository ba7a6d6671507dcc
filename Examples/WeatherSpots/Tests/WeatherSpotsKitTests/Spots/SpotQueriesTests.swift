import Foundation
import Larder
import Testing

@testable import WeatherSpotsKit

/// Every question that a command asks is answered by an index, and gives what a loop over all spots gives.
@Suite(.timeLimit(.minutes(15))) struct SpotQueriesTests {
  private static let byName = "ordered(name)"
  private static let byCountry = "ordered(country, name)"
  private static let byKind = "ordered(kind, name)"
  private static let byRating = "ordered(rating desc, name)"
  private static let words = "fullText(name, notes, kind)"
  private static let places = "geo(latitude, longitude)"

  private static let countries = ["FR", "JP", "US", ""]
  private static let kinds = ["coast", "lake", "mountain", ""]

  private static func spots() throws -> [Spot] {
    try (0..<400).map { number in
      try Spot(
        name: ["Cruz Bay", "Santa Cruz", "Bréhat", "Lake \(number / 9)"][number % 4], latitude: Double(number % 170) - 85,
        longitude: Double(number * 7 % 360) - 180, timezone: "GMT", country: countries[number / 3 % 4], kind: kinds[number / 5 % 4],
        rating: number % 6, notes: number.isMultiple(of: 10) ? "a pier of stone" : "")
    }
  }

  private static func storage() async throws -> (LocalRepository<Spot>, [Spot]) {
    let storage = try await SpotStore(backend: InMemoryBackend())
    let spots = try spots()
    try await storage.spots.save(contentsOf: spots)
    return (storage.spots, spots.sorted(by: Spot.listedBefore))
  }

  private static let filters: [(SpotFilter, [String])] = [
    (SpotFilter(), []), (SpotFilter(country: "fr"), [byCountry]), (SpotFilter(kind: "Lake"), [byKind]),
    (SpotFilter(minimumRating: 4), [byRating]), (SpotFilter(country: "JP", kind: "coast"), [byCountry, byKind]),
    (SpotFilter(country: "US", kind: "lake", minimumRating: 2), [byCountry, byKind, byRating]),
  ]

  @Test(arguments: filters.indices, SpotOrder.allCases)
  func aListIsAnsweredByAnIndexAndInOrder(_ index: Int, _ order: SpotOrder) async throws {
    let (spots, all) = try await Self.storage()
    let (filter, indexes) = Self.filters[index]
    let query = Query.spots(filter, by: order)
    let orders: [SpotOrder: (index: String, rank: (Spot) -> String)] = [
      .name: (Self.byName, { _ in "" }), .country: (Self.byCountry, \.country), .kind: (Self.byKind, \.kind),
      .rating: (Self.byRating, { String(5 - $0.rating) }),
    ]
    let (ordered, rank) = try #require(orders[order])
    for query in [query, query.limit(5)] {
      let plan = spots.explain(query)
      #expect((indexes + [ordered]).contains(plan.index ?? ""), "\(plan)")
      #expect(plan.description.hasPrefix(plan.index ?? "an index"))
    }
    let expected = all.enumerated().filter { filter.contains($0.element) }
      .sorted { (rank($0.element), $0.offset) < (rank($1.element), $1.offset) }.map(\.element.id)
    let found = try await spots.fetch(query).map(\.id)
    #expect(!expected.isEmpty)
    #expect(found == expected)
  }

  @Test(arguments: filters.indices) func placesAreFoundByTheirIndexNearestFirst(_ index: Int) async throws {
    let (spots, all) = try await Self.storage()
    let filter = Self.filters[index].0
    let here = try #require(Coordinate(latitude: -33.9, longitude: 179.5))
    for radius in [nil, Distance.kilometers(4000)] {
      let query = Query.spots(near: here, within: radius, filter)
      let plan = spots.explain(query.limit(10))
      // A filter that leaves few spots is quicker than the places.
      #expect(plan.index == Self.places || !(index == 0) && Self.filters[index].1.contains(plan.index ?? ""), "\(plan)")
      let expected = all.filter {
        filter.contains($0) && here.kilometers(to: $0.coordinate) <= radius.map { $0.meters / 1000 } ?? .infinity
      }
      .map { (here.kilometers(to: $0.coordinate), $0.id) }.sorted { $0 < $1 }
      let found = try await spots.matches(query)
      #expect(found.count == expected.count)
      for (match, other) in zip(found, expected) { #expect(abs((match.distance?.meters ?? -1) / 1000 - other.0) < 0.001) }
    }
  }

  @Test(arguments: filters.indices) func wordsAreFoundByTheirIndex(_ index: Int) async throws {
    let (spots, all) = try await Self.storage()
    let filter = Self.filters[index].0
    for (text, isMatch) in [
      ("cruz sant", { $0.name == "Santa Cruz" }), ("PIER", { $0.notes != "" }), ("brehat", { $0.name == "Bréhat" }),
    ] as [(String, (Spot) -> Bool)] {
      let query = Query.spots(matching: text, filter)
      #expect(spots.explain(query.limit(20)).index == Self.words)
      let found = try await spots.fetch(query)
      #expect(Set(found) == Set(all.filter { filter.contains($0) && isMatch($0) }))
    }
  }

  @Test func namesAreFoundByTheirIndexes() async throws {
    let (spots, all) = try await Self.storage()
    #expect(spots.explain(.spots(named: "Santa Cruz")).index == Self.byName)
    #expect(spots.explain(.spots(namedLike: "santa cruz")).index == Self.words)
    #expect(try await spots.fetch(.spots(named: "Santa Cruz")) == all.filter { $0.name == "Santa Cruz" })
    #expect(try await spots.fetch(.spots(namedLike: "bRehat")) == all.filter { $0.name == "Bréhat" })
    #expect(try await spots.fetch(.spots(namedLike: "Cruz")).isEmpty)
  }

  @Test func aQueryThatLooksAtAllSpotsSaysSo() async throws {
    let (spots, _) = try await Self.storage()
    let plan = spots.explain(Query().where(#Predicate { $0.timezone == "GMT" }))
    #expect(plan.access == .scan)
    #expect(plan.index == nil)
    #expect(plan.description.hasPrefix("scan of all records, checking timezone"))
  }

  @Test func theSchemaAndItsStepsAreWhole() throws { try Spot.schema.validate() }

  @Test func aTokenIsReadBackAndNothingElseIs() async throws {
    let (spots, _) = try await Self.storage()
    let next = try #require(try await spots.page(.spots(by: .rating), limit: 7).next)
    let token = try next.token
    #expect(token.utf8.allSatisfy { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "+") })
    #expect(PageCursor(token: token) == next)
    for text in ["", "x", "e30", "====", String(token.dropLast(9)), "caf\u{E9}"] { #expect(PageCursor(token: text) == nil) }
  }
}
