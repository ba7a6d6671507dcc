import Foundation
import Synchronization
import Testing

@testable import Larder

/// A build looks at each record once, and leaves it as it was.
@Suite(.timeLimit(.minutes(15))) struct IndexBuildMemoryTests {
  private struct Spot: Codable, Identifiable, Sendable {
    let id: Int
    var name: String
    var latitude = 1.0
    var longitude = 2.0
  }

  private let declared: [RepositoryIndex<Spot>] = [.ordered(\.name), .unique(\.id), .geo(\.latitude, \.longitude), .fullText(\.name)]

  private func slot(_ id: Int, version: Int = 1, _ value: String? = nil) -> RecordSlot {
    let json = value ?? "{\"id\":\(id),\"latitude\":1,\"longitude\":2,\"name\":\"pier \(id)\"}"
    return RecordSlot(key: RecordKey("\(id)"), revision: Revision(1), schemaVersion: version, value: Data(json.utf8))
  }

  private func counts(_ bodies: [IndexBody]) -> [Int] {
    bodies.map { body in
      switch body {
      case .ordered(let tree): tree.count
      case .geo(let geo): geo.count
      case .text(let text): text.count
      case .absent, .building, .followed, .stored: 0
      }
    }
  }

  @Test func recordsKeepNoValueOfABuild() throws {
    let coder = RecordCoder<Spot>(schemaVersion: 1, limits: .init())
    let indexes = Larder.IndexSet(declared, coder)
    let slots = (1..<4).map { slot($0) } + [slot(4, "{}"), slot(5)]
    _ = try slots[4].value(coder)
    #expect(try counts(indexes.built([0, 1, 2, 3], over: RecordMap(slots))) == [4, 4, 4, 4])
    #expect(slots.map(\.reading) == [.untouched, .untouched, .untouched, .unreadable, .readable])
    #expect(try slots[0].value(coder).name == "pier 1")
    #expect(throws: RepositoryError.self) { try slots[3].value(coder) }
    #expect(try counts(indexes.built([3], over: RecordMap(slots))) == [4])
  }

  @Test func aValueOfAnOlderVersionIsKeptAsItWillBeStoredAnew() throws {
    let coder = RecordCoder<Spot>(
      schemaVersion: 2, limits: .init(),
      migrations: [.init(from: 1) { $0["name"] = "lighthouse" }])
    let indexes = Larder.IndexSet(declared, coder)
    let slots = [slot(1), slot(2, version: 2)]
    let built = try indexes.built([3], over: RecordMap(slots))
    #expect(slots.map(\.reading) == [.readable, .untouched])
    guard case .text(let text) = built[0] else { throw RepositoryError(.unsupported, "expected an index of words") }
    #expect(text.search("lighthouse").map(\.slot.key.text) == ["1"])
  }

  /// A place that is another one each time it is decoded.
  private struct Drifting: Codable, Identifiable, Sendable {
    static let steps = Mutex(0)

    let id: Int
    var step: Int
    var latitude: Double
    var longitude = 2.0
    var name: String

    init(from decoder: any Decoder) throws {
      id = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .id)
      let next = Self.steps.withLock { step in
        step += 1
        return step
      }
      (step, latitude, name) = (next, Double(next), "word\(next) word")
    }
  }

  @Test func aRecordThatIsAnotherEachTimeIsNotLeftBehindInIndexes() throws {
    let coder = RecordCoder<Drifting>(schemaVersion: 1, limits: .init())
    let indexes = Larder.IndexSet([.ordered(\.step), .geo(\.latitude, \.longitude), .fullText(\.name)], coder)
    let slots = (1..<4).map { slot($0, "{\"id\":\($0)}") }
    var bodies = try indexes.built([0, 1, 2], over: RecordMap(slots))
    for position in bodies.indices {
      _ = indexes.definitions[position].apply(IndexChange(old: slots[0], new: slot(1, "{\"id\":1}")), to: &bodies[position])
    }
    #expect(counts(bodies) == [3, 3, 3])
    for position in bodies.indices {
      _ = indexes.definitions[position].apply(IndexChange(old: slots[1], new: nil), to: &bodies[position])
    }
    #expect(counts(bodies) == [2, 2, 2])
  }
}
