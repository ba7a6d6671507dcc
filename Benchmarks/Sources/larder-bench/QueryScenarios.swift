import Foundation
import Larder

private func places<Item: SomePlace>(
  _ type: Item.Type, in directory: URL, _ backend: Backend, _ indexes: [RepositoryIndex<Item>]
) async throws -> LocalRepository<Item> {
  let repository = try await backend.open(in: directory, .init("places", indexes: indexes))
  try await repository.save(contentsOf: PlaceSample.all.enumerated().map { Item($0.offset, $0.element) }, durability: .buffered)
  return repository
}

private func expect<Item>(_ items: [Item], _ count: Int) throws {
  guard items.count == count else { throw CocoaError(.coderValueNotFound) }
}

private func top50<Item: SomePlace>(_ type: Item.Type, _ backend: Backend) async throws -> String {
  try await withDirectory { directory in
    let repository = try await places(Item.self, in: directory, backend, [Item.index])
    let peer = try DatabasePeer(in: directory, PlaceSample.all.enumerated().map { Item($0.offset, $0.element) })
    let (best, ascending) = (Item.best, Item.bestAscending)
    let times = try await medians(
      rounds: 200, warmUp: 5, turn: 50,
      [
        { _ in try expect(try await repository.fetch(best), 50) },
        { _ in try expect(try await repository.fetch(ascending), 50) },
        { _ in try expect(try await repository.fetch(Item.best), 50) },
        { _ in try expect(try peer.fetchBest(), 50) },
        { _ in try expect(try peer.fetchBestAscending(), 50) },
        { _ in try expect(try peer.fetchRows(), 50) },
        { _ in try expect(try peer.fetchBestMadeAnew(), 50) },
      ])
    let plans = "plans: \(repository.explain(best)); GRDB: \(try peer.plan())"
    try await repository.close()
    return "\(text(times[0])) µs; ascending \(text(times[1])) µs; query made for each fetch \(text(times[2])) µs;"
      + " GRDB \(text(times[3])) µs, \(text(times[3] / times[0])) times as long; ascending \(text(times[4])) µs,"
      + " \(text(times[4] / times[1])) times; GRDB's rows undecoded \(text(times[5])) µs, \(text(times[5] / times[0])) times;"
      + " GRDB's query made for each fetch \(text(times[6])) µs, \(text(times[6] / times[2])) times; \(plans)"
  }
}

private let nearest = Scenario(name: "10 nearest of 100,000", backends: [.memory]) { backend in
  try await withDirectory { directory in
    let repository = try await places(Place.self, in: directory, backend, [.geo(\.latitude, \.longitude), .fullText(\.notes)])
    let centers = PlaceSample.all.prefix(1_000).map { ($0.latitude + 0.1, $0.longitude) }.filter { $0.0 <= 90 }
    let query = { (round: Int) -> Query<Place> in
      let center = centers[round % centers.count]
      return Query().near(latitude: center.0, longitude: center.1)
    }
    let times = try await medians(
      rounds: 100, turn: 20,
      [
        { round in try expect(try await repository.fetch(query(round).limit(10)), 10) },
        { round in try expect(try await repository.matches(query(round).limit(10)), 10) },
        { round in try expect(try await repository.fetch(query(round).where(#Predicate { $0.rating == 5 }).limit(10)), 10) },
      ])
    try await repository.close()
    return "\(text(times[0])) µs; with distances \(text(times[1])) µs; of those rated 5 \(text(times[2])) µs"
  }
}

private let search = Scenario(name: "full-text search in 100,000, limit 50", backends: [.memory]) { backend in
  try await withDirectory { directory in
    let repository = try await places(Place.self, in: directory, backend, [.fullText(\.name, \.notes)])
    let words = Vocabulary.words
    let asked = [
      ("a beginning", String(words[40].prefix(3))), ("a common word", words[3]), ("a rare word", words[2_000]),
      ("two words", "\(words[20]) \(words[90])"), ("a word and a beginning", "\(words[20]) \(words[90].prefix(3))"),
      ("two common words", "\(words[0]) \(words[1])"), ("one letter", String(words[0].prefix(1))),
    ]
    var results: [String] = []
    for (name, query) in asked {
      let query = Query<Place>().matching(query)
      let found = try await repository.count(query)
      let times = try await medians(
        rounds: 20, warmUp: 2, turn: 10,
        [
          { _ in _ = try await repository.fetch(query.limit(50)) },
          { _ in _ = try await repository.matches(query.limit(50)).map { $0.extract } },
        ])
      results.append("\(name) (\(found) records) \(text(times[0])) µs, with extracts \(text(times[1])) µs")
    }
    try await repository.close()
    return results.joined(separator: "; ")
  }
}

private let counting = Scenario(name: "count, group and page in 100,000", backends: [.memory]) { backend in
  try await withDirectory { directory in
    let repository = try await places(
      Place.self, in: directory, backend, [.ordered(\.country, \.rating), .ordered(\.name), .ordered(\.rating)])
    let counted = Query<Place>().where(#Predicate { $0.country == "C7" && $0.rating >= 4 })
    let (byName, byRating) = (Query<Place>().sorted(by: \.name), Query<Place>().sorted(by: \.rating))
    let byRatingReversed = Query<Place>().sorted(by: \.rating, .reverse)
    let nameCursor = try await repository.page(byName, limit: 90_000).next
    let ratingCursor = try await repository.page(byRating, limit: 90_000).next
    let reversedCursor = try await repository.page(byRatingReversed, limit: 90_000).next
    let byID = Query<Place>()
    let idCursor = try await repository.page(byID, limit: 90_000).next
    let times = try await medians(
      rounds: 50, warmUp: 5, turn: 10,
      [
        { _ in guard try await repository.count(counted) > 0 else { throw CocoaError(.coderValueNotFound) } },
        { _ in try expect(try await repository.page(byName, limit: 50).items, 50) },
        { _ in try expect(try await repository.page(byName, after: nameCursor, limit: 50).items, 50) },
        { _ in try expect(try await repository.page(byRating, limit: 50).items, 50) },
        { _ in try expect(try await repository.page(byRating, after: ratingCursor, limit: 50).items, 50) },
        { _ in try expect(try await repository.page(byRatingReversed, limit: 50).items, 50) },
        { _ in try expect(try await repository.page(byRatingReversed, after: reversedCursor, limit: 50).items, 50) },
        { _ in guard try await repository.max(of: \.name) != nil else { throw CocoaError(.coderValueNotFound) } },
        { _ in guard try await repository.grouped(by: \.country).count == 40 else { throw CocoaError(.coderValueNotFound) } },
        { _ in try expect(try await repository.page(byID, limit: 50).items, 50) },
        { _ in try expect(try await repository.page(byID, after: idCursor, limit: 50).items, 50) },
      ])
    try await repository.close()
    return "count of a range \(text(times[0])) µs; page of 50 by name: first \(text(times[1])) µs, after 90,000 \(text(times[2])) µs;"
      + " by a value of 20,000 records: first \(text(times[3])) µs, after 90,000 \(text(times[4])) µs; the same from the last:"
      + " first \(text(times[5])) µs, after 90,000 \(text(times[6])) µs; max \(text(times[7])) µs; grouped in 40 \(text(times[8])) µs;"
      + " by id without an index: first \(text(times[9])) µs, after 90,000 \(text(times[10])) µs"
  }
}

let queryScenarios = [
  Scenario(name: "top 50 of 100,000 by index, UUID ids", backends: [.memory]) { try await top50(Place.self, $0) },
  Scenario(name: "top 50 of 100,000 by index, Int ids", backends: [.memory]) { try await top50(NumberedPlace.self, $0) },
  nearest, search, counting,
]
