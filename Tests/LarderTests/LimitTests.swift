import Foundation
import LarderTesting
import Testing

@testable import Larder

/// What is over a limit, or does not decode: refused when saved, reported and kept when found.
@Suite(.timeLimit(.minutes(10))) struct LimitTests {
  /// Arrays in arrays, as deep as it says.
  struct Nest: Codable, Hashable, Sendable {
    var depth: Int

    init(_ depth: Int) { self.depth = depth }

    init(from decoder: any Decoder) throws {
      var container = try decoder.unkeyedContainer()
      depth = container.isAtEnd ? 1 : try container.decode(Nest.self).depth + 1
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.unkeyedContainer()
      if depth > 1 { try container.encode(Nest(depth - 1)) }
    }
  }

  struct Nested: Codable, Identifiable, Hashable, Sendable {
    let id: Int
    var nest: Nest
  }

  struct Text: Codable, Identifiable, Hashable, Sendable {
    let id: Int
    var text: String
  }

  @Test(arguments: TestBackend.allCases)
  func depthIsLimitedWhenSaving(_ backend: TestBackend) async throws {
    let place = try backend.factory.makePlace()
    defer { place.remove() }
    let items = try await LocalRepository<Nested>(backend: try place.makeBackend())
    try await items.save(Nested(id: 1, nest: Nest(63)))  // the record's own object is the 64th
    #expect(await code { try await items.save(Nested(id: 2, nest: Nest(64))) } == .tooLarge)
    #expect(await code { try await items.save(Nested(id: 3, nest: Nest(400))) } == .tooLarge)
    #expect(await code { try await items.update(1) { $0.nest = Nest(64) } } == .tooLarge)
    try await items.close()
    let reopened = try await LocalRepository<Nested>(backend: try place.makeBackend())
    #expect(try await reopened.loadAll() == [Nested(id: 1, nest: Nest(63))])
    #expect(reopened.openReport.undecodable.isEmpty)
    try await reopened.close()
  }

  @Test(arguments: TestBackend.allCases)
  func recordsOverALimitAreReportedWhenOpeningAndKept(_ backend: TestBackend) async throws {
    let place = try backend.factory.makePlace()
    defer { place.remove() }
    let wide = StoreOptions(limits: .init(recordBytes: 1_000, keyBytes: 2_000, jsonDepth: 100))
    let raw = try place.makeBackend()
    _ = try raw.open(wide) { _ in }
    let values: [(key: String, value: String)] = [
      ("1", #"{"id":1,"text":"fine"}"#),
      ("2", #"{"id":2,"text":""# + String(repeating: "x", count: 300) + #""}"#),
      ("3", #"{"id":3,"more":"# + String(repeating: "[", count: 64) + String(repeating: "]", count: 64) + #","text":"deep"}"#),
      (String(repeating: "4", count: 1_025), #"{"id":4,"text":"long key"}"#),
    ]
    let records = values.map {
      StoredRecord(collection: "records", key: RecordKey($0.key), revision: Revision(1), schemaVersion: 1, value: Data($0.value.utf8))
    }
    try raw.commit(WriteBatch(records: records, commits: 1...1))
    try raw.close()

    let narrow = StoreOptions(limits: .init(recordBytes: 256), checkpoint: .manual)
    for round in 0..<3 {
      let items = try await LocalRepository<Text>(backend: try place.makeBackend(), options: narrow)
      #expect(items.openReport.undecodable.map(\.error.code) == [.tooLarge, .tooLarge, .tooLarge])
      #expect(items.openReport.undecodable.map(\.key.text) == values.dropFirst().map(\.key))
      #expect(!items.openReport.isClean)
      #expect(items.snapshot.undecodable.count == 3)
      #expect(await code { _ = try await items.find(by: 2) } == .tooLarge)
      #expect(await code { _ = try await items.find(by: 3) } == .tooLarge)
      #expect(try await items.find(by: 1)?.text.hasPrefix("fine") == true)
      #expect(try await items.loadAll().count == 1)
      #expect(try await items.count() == 4)
      try await items.save(Text(id: 1, text: "fine \(round)"))
      try await items.checkpoint()
      try await items.close()
    }
    let items = try await LocalRepository<Text>(backend: try place.makeBackend(), options: wide)
    #expect(items.openReport.undecodable.isEmpty)
    #expect(try await items.find(by: 2)?.text.count == 300)
    #expect(try await items.find(by: 3)?.text == "deep")
    #expect(items.snapshot.undecodable.map(\.error.code) == [.decodingFailed])  // the long key is not the key of its id
    try await items.close()
  }

  @Test func sizeIsLimitedWhenSaving() async throws {
    let empty = #"{"id":1,"text":""}"#.utf8.count
    let items = try await LocalRepository<Text>(
      backend: InMemoryBackend(), options: StoreOptions(limits: .init(recordBytes: empty + 10)))
    try await items.save(Text(id: 1, text: "0123456789"))
    #expect(await code { try await items.save(Text(id: 1, text: "0123456789x")) } == .tooLarge)
    #expect(await code { try await items.save(contentsOf: [Text(id: 2, text: ""), Text(id: 3, text: "0123456789x")]) } == .tooLarge)
    #expect(try await items.loadAll() == [Text(id: 1, text: "0123456789")])
  }

  @Test(arguments: TestBackend.allCases)
  func aRecordThatDoesNotDecodeIsKept(_ backend: TestBackend) async throws {
    struct Counted: Codable, Identifiable, Hashable { let id: Int, text: Int }
    let place = try backend.factory.makePlace()
    defer { place.remove() }
    let texts = try await LocalRepository<Text>(backend: try place.makeBackend())
    try await texts.save(contentsOf: (1...3).map { Text(id: $0, text: "text \($0)") })
    try await texts.close()

    let counts = try await LocalRepository<Counted>(backend: try place.makeBackend())
    #expect(counts.openReport.isClean)  // nothing was decoded yet
    try await counts.save(Counted(id: 2, text: 2))
    #expect(await code { _ = try await counts.find(by: 1) } == .decodingFailed)
    #expect(await code { _ = try await counts.find(by: 1) } == .decodingFailed)
    #expect(await code { try await counts.update(1) { _ in } } == .decodingFailed)
    #expect(try await counts.find(by: 2) == Counted(id: 2, text: 2))
    #expect(try await counts.loadAll() == [Counted(id: 2, text: 2)])
    #expect(try await counts.count() == 3)
    let undecodable = counts.snapshot.undecodable
    #expect(undecodable.map(\.key.text) == ["1", "3"])
    #expect(undecodable.allSatisfy { $0.error.code == .decodingFailed && $0.revision == Revision(1) && $0.schemaVersion == 1 })
    #expect(!undecodable.contains { "\($0.error)".contains("text 1") })
    try await counts.checkpoint()
    #expect(try await counts.delete(3))
    try await counts.close()

    let again = try await LocalRepository<Text>(backend: try place.makeBackend())
    #expect(try await again.find(by: 1) == Text(id: 1, text: "text 1"))
    #expect(again.snapshot.undecodable.map(\.key.text) == ["2"])
    #expect(try await again.count() == 2)
    try await again.close()
  }
}
