import Foundation
import Larder
import Testing

@testable import WeatherSpotsKit

@Suite struct SpotTagsTests {
  private func spot(_ tags: [String] = [], visits: Int = 0) throws -> Spot {
    try Spot(name: "A", latitude: 1, longitude: 2, timezone: "GMT", tags: tags, visits: visits)
  }

  @Test func tagsAreStoredInOneSpellingInOrderAndOnce() throws {
    #expect(try spot(["Pier", " #crowded", "pier", "Caf\u{E9}", "cafe\u{301}"]).tags == ["café", "crowded", "pier"])
  }

  @Test(arguments: ["", "#", "a b", "a\tb", "a,b", "a;b", "a\"b", "-a", "+a", "a#b", "\u{7}", String(repeating: "x", count: 51)])
  func whatIsNoTagIsRefused(_ text: String) throws {
    let problem = #expect(throws: SpotProblem.self) { try spot([text]) }
    #expect(problem?.field == .tags && problem?.description.contains("a b") == false)
  }

  @Test func aSpotHasFiftyTagsAtMost() throws {
    let full = try spot((0..<50).map { "t\($0)" })
    #expect(throws: SpotProblem.self) { try full.tagged(["more"]) }
    #expect(try full.tagged(["more"], removing: ["t7"]).tags.count == 50)
  }

  @Test func aSpotToWhichSeveralDevicesHaveAddedTagsIsEditedAsAnyOther() throws {
    let merged = try spot((0..<60).map { "t\($0)" })
    #expect(try merged.edited(.init(rating: 5)).tags == merged.tags)
    #expect(try merged.tagged([], removing: ["t7"]).tags.count == 59)
    #expect(try merged.tagged(["more"], removing: ["t7"]).tags.count == 60)
    #expect(throws: SpotProblem.self) { try merged.tagged(["more"]) }
  }

  @Test func visitsStayWithinTheirRange() throws {
    #expect(try spot(visits: 3).visited(4).visits == 7)
    for visits in [-1, 1_000_000_001] { #expect(throws: SpotProblem.self) { try spot(visits: visits) } }
    for count in [1, Int.max] { #expect(throws: SpotProblem.self) { try spot(visits: 1_000_000_000).visited(count) } }
  }

  @Test func aRecordWithoutTagsAndVisitsIsRead() throws {
    let json =
      #"{"id":"A @1.0,2.0","name":"A","latitude":1,"longitude":2,"timezone":"GMT","country":"","kind":"","source":"","rating":0,"notes":""}"#
    #expect(try JSONDecoder().decode(Spot.self, from: Data(json.utf8)) == spot())
  }

  @Test func aMergeMayHaveLeftTagsInAnyOrder() throws {
    let json = String(decoding: try JSONEncoder().encode(spot(["a", "b"])), as: UTF8.self)
    let merged = json.replacing(#"["a","b"]"#, with: #"["b","a","b"]"#)
    #expect(merged != json)
    #expect(try JSONDecoder().decode(Spot.self, from: Data(merged.utf8)).tags == ["a", "b"])
  }

  @Test func addingAgainKeepsVisitsAndTags() async throws {
    let storage = try await SpotStore(backend: InMemoryBackend())
    try await storage.add([spot(["old"], visits: 4)])
    let stored = try await storage.add([spot(["new"], visits: 1), spot(["third"])])
    #expect(stored.map(\.tags) == [["new", "old"], ["new", "old", "third"]] && stored.allSatisfy { $0.visits == 4 })
    #expect(try await storage.spots.loadAll() == [stored[1]])
  }

  @Test func filtersByTagsTakeThoseThatHaveAll() async throws {
    let storage = try await SpotStore(backend: InMemoryBackend())
    let names = ["A", "B", "C"]
    for (name, tags) in zip(names, [["x", "y"], ["x"], []]) {
      try await storage.add([Spot(name: name, latitude: 1, longitude: 2, timezone: "GMT", tags: tags)])
    }
    for (tags, count) in [([], 3), (["x"], 2), (["x", "y"], 1), (["z"], 0)] {
      let filter = SpotFilter(tags: tags)
      let found = try await storage.spots.fetch(.spots(filter)).map(\.name)
      let byLoop = try await storage.spots.loadAll().filter(filter.contains).map(\.name).sorted()
      #expect(found == byLoop && found.count == count)
    }
  }
}
