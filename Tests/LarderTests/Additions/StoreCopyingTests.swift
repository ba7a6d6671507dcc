import Foundation
import LarderSQLite
import LarderTesting
import Testing

@testable import Larder

/// A copy of a store, of any kind, holds what the store holds: values, records that do not decode, revisions, versions and tombstones.
@Suite(.timeLimit(.minutes(15))) struct StoreCopyingTests {
  private struct Visit: Codable, Identifiable, Equatable {
    let id: Int
    var day: String
  }

  /// Something else under the name of the visits: no visit decodes from it.
  private struct Stranger: Codable, Identifiable {
    let id: Int
    var colour: String
  }

  private enum Kind: String, CaseIterable, Sendable { case json, sqlite, memory }

  /// A place for a store of one kind; some backends open once, so that each use makes its own.
  private struct Shelf {
    let kind: Kind
    let url: URL
    private let memory = InMemoryBackend()

    init(_ kind: Kind, _ directory: TemporaryDirectory, _ name: String) {
      self.kind = kind
      url = directory.file("\(name).\(kind.rawValue)")
    }

    var backend: any StorageBackend {
      switch kind {
      case .json: JSONFileBackend(file: url)
      case .sqlite: SQLiteBackend(file: url)
      case .memory: memory
      }
    }

    func contents() throws -> (records: [String], report: OpenReport) {
      var records: [String] = []
      let backend = backend
      let report = try backend.open(StoreOptions(access: .readOnly)) { record in
        let value = record.value.map { String(decoding: $0, as: UTF8.self) } ?? "-"
        records.append("\(record.collection) \(record.key.text) \(record.revision) \(record.schemaVersion) \(value)")
      }
      try backend.close()
      return (records.sorted(), report)
    }
  }

  private static let pairs = Kind.allCases.flatMap { from in Kind.allCases.map { "\(from.rawValue) \($0.rawValue)" } }

  private func kinds(_ pair: String) throws -> (Kind, Kind) {
    let kinds = pair.split(separator: " ").compactMap { Kind(rawValue: String($0)) }
    return (try #require(kinds.first), try #require(kinds.last))
  }

  private func fill(_ backend: any StorageBackend) async throws -> (Revision, Revision) {
    let store = try await Store.open(backend)
    let strangers = try await store.repository(RepositorySchema<Stranger>("visits", version: 2))
    try await strangers.save(Stranger(id: 7, colour: "red"))
    let spots = try await store.repository(RepositorySchema<Spot>("spots", version: 3))
    try await spots.save(contentsOf: (0..<50).map { Spot("spot \($0)") })
    let gone = Spot("gone")
    try await spots.save(gone)
    let before = Revision(store.snapshot.revision.number)
    try await spots.delete(gone.id)
    let kept = try await spots.save(Spot("last"))
    try await store.close()
    return (before, kept)
  }

  @Test(arguments: pairs) func aCopyHoldsEveryRecordWithItsRevisionAndVersion(_ pair: String) async throws {
    let (from, to) = try kinds(pair)
    let directory = try TemporaryDirectory()
    let (source, target) = (Shelf(from, directory, "source"), Shelf(to, directory, "target"))
    let (beforeDeletion, newest) = try await fill(source.backend)
    let store = try await Store.open(source.backend)
    let report = try await store.copy(to: target.backend)
    #expect(report.isSound && report.recordCount == 52 && report.commit == newest)
    try await store.close()
    let (original, copy) = (try source.contents(), try target.contents())
    #expect(original.records == copy.records && copy.records.count == 53)
    #expect(copy.report.commit == newest && copy.report.storeID != original.report.storeID)

    let copied = try await Store.open(target.backend)
    let spots = try await copied.repository(RepositorySchema<Spot>("spots", version: 3))
    var changes = spots.changes(since: beforeDeletion).makeAsyncIterator()
    let set = try await changes.next()
    #expect(set?.changes.count { $0.kind == .deleted } == 1)
    let visits = try await copied.repository(RepositorySchema<Visit>("visits", version: 2))
    #expect(visits.snapshot.undecodable.count == 1)
    let last = try #require(spots.snapshot.loadAll().first { $0.name == "last" })
    let next = try await spots.save(last, ifRevision: newest)
    #expect(next.number == newest.number + 1)
    try await copied.close()
  }

  @Test(arguments: Kind.allCases.map(\.rawValue)) func aCopyKnowsSinceWhenDeletionsAreKnown(_ name: String) async throws {
    let directory = try TemporaryDirectory()
    let kind = try #require(Kind(rawValue: name))
    let options = StoreOptions(limits: .init(tombstones: 2), checkpoint: .manual)
    let store = try await Store.open(JSONFileBackend(file: directory.file("source.json")), options: options)
    let spots = try await store.repository(RepositorySchema<Spot>("spots"))
    let all = (0..<6).map { Spot("spot \($0)") }
    try await spots.save(contentsOf: all)
    var deletions: [Revision] = []
    for spot in all.dropLast() {
      try await spots.delete(spot.id)
      deletions.append(spots.snapshot.revision)
    }
    try await store.checkpoint()
    let target = Shelf(kind, directory, "target")
    try await store.copy(to: target.backend)
    try await store.close()
    let report = try target.contents().report
    #expect(report.tombstoneHorizon == deletions[2])
    let copied = try await LocalRepository<Spot>(backend: target.backend, schema: .init("spots"))
    var tooOld = copied.changes(since: deletions[1]).makeAsyncIterator()
    let error = await #expect(throws: RepositoryError.self) { _ = try await tooOld.next() }
    #expect(error?.code == .unsupported)
    var known = copied.changes(since: deletions[2]).makeAsyncIterator()
    let set = try await known.next()
    #expect(set?.changes.count { $0.kind == .deleted } == 2)
    try await copied.close()
  }

  @Test(arguments: pairs) func aCopyOfAStoreThatHasForgottenAllOfItsRecordsGoesOnBehindIt(_ pair: String) async throws {
    let directory = try TemporaryDirectory()
    let (from, to) = try kinds(pair)
    let (source, target) = (Shelf(from, directory, "source"), Shelf(to, directory, "target"))
    let options = StoreOptions(limits: .init(tombstones: 0), checkpoint: .manual)
    let store = try await Store.open(source.backend, options: options)
    let spots = try await store.repository(RepositorySchema<Spot>("spots"))
    let spot = Spot("pier")
    try await spots.save(spot)
    let before = spots.snapshot.revision
    try await spots.delete(spot.id)
    let last = spots.snapshot.revision
    try await store.checkpoint()
    try await store.copy(to: target.backend)
    try await store.close()
    let report = try target.contents().report
    #expect(report.commit == last && report.tombstoneHorizon == last)
    let copied = try await LocalRepository<Spot>(backend: target.backend, schema: .init("spots"))
    var tooOld = copied.changes(since: before).makeAsyncIterator()
    let error = await #expect(throws: RepositoryError.self) { _ = try await tooOld.next() }
    #expect(error?.code == .unsupported)
    try await copied.save(spot)
    #expect(copied.snapshot.revision > last)
    try await copied.close()
  }

  @Test(arguments: Kind.allCases.map(\.rawValue)) func aTargetThatHoldsSomethingIsRefusedAndStaysAsItIs(_ name: String) async throws {
    let directory = try TemporaryDirectory()
    let target = Shelf(try #require(Kind(rawValue: name)), directory, "target")
    let other = try await LocalRepository<Spot>(backend: target.backend)
    try await other.save(Spot("mine"))
    try await other.close()
    let before = try target.contents().records
    let store = try await Store.open(InMemoryBackend())
    let spots = try await store.repository(RepositorySchema<Spot>("spots"))
    try await spots.save(Spot("yours"))
    let error = await #expect(throws: RepositoryError.self) { try await store.copy(to: target.backend) }
    #expect(error?.code == .alreadyExists)
    #expect(try target.contents().records == before)
  }

  @Test func aCopyThatFailsLeavesATargetThatCanBeCopiedToAgain() async throws {
    let directory = try TemporaryDirectory()
    let store = try await Store.open(InMemoryBackend())
    let spots = try await store.repository(RepositorySchema<Spot>("spots"))
    try await spots.save(contentsOf: (0..<20).map { Spot("spot \($0)") })
    for operation in [FaultInjectingBackend.Operation.open, .recover, .commit] {
      let disk = FaultInjectingBackend(JSONFileBackend(file: directory.file("target.json")))
      disk.fail(operation, with: RepositoryError(.full))
      let error = await #expect(throws: RepositoryError.self) { try await store.copy(to: disk) }
      #expect(error?.code == .full, "\(operation)")
    }
    let target = Shelf(.json, directory, "target")
    try await store.copy(to: target.backend)
    #expect(try target.contents().records.count == 20)
    #expect(try directory.names.contains("target.json"))
  }

  @Test func aCrashLeavesAllOfTheCopyOrNothing() throws {
    struct Torn: Error {}
    let source = InMemoryBackend()
    _ = try source.openAndRecover(StoreOptions()) { _ in }
    var records: [StoredRecord] = []
    for number: UInt64 in 1...40 {
      let value: Data? = number % 5 == 0 ? nil : Data("{\"id\":\(number)}".utf8)
      let collection = number % 2 == 0 ? "spots" : "visits"
      let key = RecordKey("\(number)")
      records.append(StoredRecord(collection: collection, key: key, revision: Revision(number), schemaVersion: 1, value: value))
    }
    try source.commit(WriteBatch(records: records, commits: 1...40))
    let contents = try StoreContents(of: source)
    let file = URL(fileURLWithPath: "/store/copy.json")
    let seed = try #require(Seeds.list(1, for: "crashes of a copy").first)
    let result = try CrashExplorer(seed: seed, imagesPerPoint: 40).explore { (files, acknowledge: (Int) -> Void) in
      acknowledge(try contents.fill(JSONFileBackend(file: file, fileSystem: files)).recordCount)
    } check: { image, acknowledged in
      var found = 0
      let report = try JSONFileBackend(file: file, fileSystem: image.fileSystem).openAndRecover(StoreOptions()) { _ in found += 1 }
      let isWhole = found == 40 && report.commit == Revision(40)
      let isNothing = found == 0 && report.commit == .zero
      if !isWhole && !(isNothing && acknowledged.isEmpty) { throw Torn() }
    }
    #expect(result.points > 10 && result.images > 20)
  }

  @Test func anEmptyStoreIsCopiedToAnEmptyOne() async throws {
    let directory = try TemporaryDirectory()
    let store = try await Store.open(InMemoryBackend())
    let report = try await store.copy(to: SQLiteBackend(file: directory.file("target.sqlite")))
    #expect(report.recordCount == 0 && report.isSound)
  }

  @Test(arguments: [Kind.json, .sqlite]) private func commitsThatAreOnlyInTheJournalAreCopied(_ kind: Kind) async throws {
    let directory = try TemporaryDirectory()
    let store = try await Store.open(Shelf(kind, directory, "source").backend, options: StoreOptions(checkpoint: .manual))
    let visits = try await store.repository(RepositorySchema<Visit>("visits"))
    try await visits.save(contentsOf: (0..<3).map { Visit(id: $0, day: "Monday") })
    try await visits.checkpoint()
    try await visits.save(Visit(id: 3, day: "Tuesday"))
    try await visits.delete(0)
    let copied = try await store.copy(to: InMemoryBackend())
    #expect(copied.recordCount == 3 && copied.tombstoneCount == 1)
    try await store.close()
  }

  @Test func writesGoOnWhileTheCopyIsWritten() async throws {
    let store = try await Store.open(InMemoryBackend())
    let spots = try await store.repository(RepositorySchema<Spot>("spots"))
    try await spots.save(Spot("first"))
    let target = FaultInjectingBackend(InMemoryBackend())
    target.hold(.commit)
    async let report = store.copy(to: target)
    await target.waitUntilHeld(.commit)
    try await spots.save(Spot("second"))
    target.release(.commit)
    let copied = try await report
    #expect(copied.recordCount == 1)
  }

  @Test func aRecordOverALimitIsCopied() async throws {
    let directory = try TemporaryDirectory()
    let source = Shelf(.json, directory, "source")
    let large = try await LocalRepository<Spot>(backend: source.backend, schema: .init("spots"))
    try await large.save(Spot(String(repeating: "x", count: 2_000)))
    try await large.close()
    let store = try await Store.open(source.backend, options: StoreOptions(limits: .init(recordBytes: 1_000)))
    let target = Shelf(.memory, directory, "target")
    try await store.copy(to: target.backend)
    try await store.close()
    let (original, copy) = (try source.contents().records, try target.contents().records)
    #expect(original == copy && copy.count == 1)
  }
}
