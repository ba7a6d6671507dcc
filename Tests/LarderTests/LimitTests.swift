import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Records over a limit, or that do not decode: refused when saved, reported and kept when found.
@Suite(.timeLimit(.minutes(15))) struct LimitTests {
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

  /// The stack of a secondary thread on Darwin is half a mebibyte.
  @Test func anEncodingWithoutEndOverflowsNoStack() async throws {
    let coder = RecordCoder<Nested>(schemaVersion: 1, limits: .init(jsonDepth: 128))
    let codes = await withCheckedContinuation { (continuation: CheckedContinuation<[RepositoryError.Code?], Never>) in
      let thread = Thread {
        var codes: [RepositoryError.Code?] = []
        for depth in [126, 127, 128, 400, 20_000, 1_000_000] {
          do throws(RepositoryError) {
            _ = try coder.encode(Nested(id: 1, nest: Nest(depth)), decoding: true)
            codes.append(nil)
          } catch {
            codes.append(error.code)
          }
        }
        continuation.resume(returning: codes)
      }
      thread.stackSize = 512 << 10
      thread.start()
    }
    #expect(codes == [nil, nil, .tooLarge, .tooLarge, .tooLarge, .tooLarge])
  }

  @Test func whatIsTooDeepIsRefusedByEveryWayOfWriting() async throws {
    let items = try await LocalRepository<Nested>(inMemory: .init())
    try await items.save(Nested(id: 1, nest: Nest(1)))
    let deep = Nested(id: 1, nest: Nest(20_000))
    #expect(await code { try await items.save(deep) } == .tooLarge)
    #expect(await code { try await items.save(contentsOf: [deep]) } == .tooLarge)
    #expect(await code { try await items.replaceAll(with: [deep]) } == .tooLarge)
    #expect(await code { try await items.update(1) { $0.nest = Nest(20_000) } } == .tooLarge)
    #expect(await code { try await items.transaction { _ = try $0.save(deep, in: items) } } == .tooLarge)
    #expect(try await items.loadAll() == [Nested(id: 1, nest: Nest(1))])
  }

  /// Decimals, dates, data and keys that are no strings encode in other shapes than their own `encode(to:)` says.
  @Test func whatIsFlatInJSONIsNotTakenForDeep() async throws {
    struct Mixed: Codable, Identifiable, Hashable, Sendable {
      let id: Int
      var prices: [Decimal]
      var dates: [Date?]
      var data = Data([1, 2])
      var url = URL(string: "https://example.com")
      var uuid = UUID()
      var byNumber: [Int: [String]]
      var nested: [[String: [Int]?]]
    }
    let items = try await LocalRepository<Mixed>(
      backend: InMemoryBackend(), options: StoreOptions(limits: .init(jsonDepth: 4)))
    let item = Mixed(
      id: 1, prices: [1.5, 2], dates: [nil, Date(timeIntervalSinceReferenceDate: 1)], byNumber: [1: ["a"]],
      nested: [["a": [1]], ["b": nil]])
    try await items.save(item)
    #expect(try await items.loadAll() == [item])
  }

  @Test func limitsThatAreSetAreClampedToo() async throws {
    var limits = StoreOptions.Limits()
    (limits.recordBytes, limits.keyBytes, limits.jsonDepth, limits.tombstones) = (.max, .max, .max, .max)
    #expect(limits == .init(recordBytes: 1 << 30, keyBytes: 64 << 10, jsonDepth: 128, tombstones: .max))
    (limits.recordBytes, limits.keyBytes, limits.jsonDepth, limits.tombstones) = (.min, .min, .min, .min)
    #expect(limits == .init(recordBytes: 0, keyBytes: 0, jsonDepth: 0, tombstones: 0))
    #expect(limits == .init(recordBytes: -1, keyBytes: -1, jsonDepth: -1, tombstones: -1))
    let items = try await LocalRepository<Text>(backend: InMemoryBackend(), options: StoreOptions(limits: limits))
    #expect(await code { try await items.save(Text(id: 1, text: "x")) } == .invalidKey)
    limits.keyBytes = 10
    let others = try await LocalRepository<Text>(backend: InMemoryBackend(), options: StoreOptions(limits: limits))
    #expect(await code { try await others.save(Text(id: 1, text: "x")) } == .tooLarge)
    #expect(try await others.delete(1) == false)
  }

  /// Also by a store that looks whether a checkpoint is due, as with the automatic policy.
  @Test(arguments: TestBackend.allCases) func theLargestLimitsAreTaken(_ backend: TestBackend) async throws {
    let place = try backend.factory.makePlace()
    defer { place.remove() }
    let options = StoreOptions(
      limits: .init(recordBytes: .max, keyBytes: .max, jsonDepth: .max, tombstones: .max), checkpoint: .automatic)
    let backend = try place.makeBackend()
    let items = try await LocalRepository<Text>(backend: backend, options: options)
    try await items.save(Text(id: 1, text: "x"))
    try await items.delete(1)
    #expect(backend.wantsCheckpoint == false)
    try await items.checkpoint()
    try await items.close()
  }

  @Test(arguments: TestBackend.allCases)
  func recordsOverALimitAreReportedWhenOpeningAndKept(_ backend: TestBackend) async throws {
    let place = try backend.factory.makePlace()
    defer { place.remove() }
    let wide = StoreOptions(limits: .init(recordBytes: 1_000, keyBytes: 2_000, jsonDepth: 100))
    let raw = try place.makeBackend()
    _ = try raw.openAndRecover(wide) { _ in }
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
      #expect(try await items.count() == 1)
      #expect(items.snapshot.count == 4)
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
    #expect(!counts.openReport.isClean && counts.openReport.undecodable.map(\.key.text) == ["1", "2", "3"])
    try await counts.save(Counted(id: 2, text: 2))
    #expect(await code { _ = try await counts.find(by: 1) } == .decodingFailed)
    #expect(await code { _ = try await counts.find(by: 1) } == .decodingFailed)
    #expect(await code { try await counts.update(1) { _ in } } == .decodingFailed)
    #expect(try await counts.find(by: 2) == Counted(id: 2, text: 2))
    #expect(try await counts.loadAll() == [Counted(id: 2, text: 2)])
    #expect(try await counts.count() == 1)
    #expect(counts.snapshot.count == 3)
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
    #expect(try await again.count() == 1)
    #expect(again.snapshot.count == 2)
    try await again.close()
  }
}
