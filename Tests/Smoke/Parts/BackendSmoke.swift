import Foundation
import Larder
import LarderSQLite
import LarderTesting

enum BackendSmoke {
  static func run(_ directory: URL) async throws {
    func file(_ name: String) -> URL { directory.appendingPathComponent(name) }
    try use(InMemoryBackend(), backup: nil)
    try use(JSONFileBackend(file: file("a.json")), backup: file("b.json"))
    try use(JSONFileBackend(file: file("c.json"), fileSystem: POSIXFileSystem()), backup: file("d.json"))
    try use(SQLiteBackend(file: file("a.sqlite")), backup: file("b.sqlite"))
    try page(InMemoryBackend())
    try page(SQLiteBackend(file: file("paged.sqlite")))
    try page(FaultInjectingBackend(InMemoryBackend()))
    try keepIndex(SQLiteBackend(file: file("indexed.sqlite")))
    try await stay(file("resident.sqlite"))
    let key = RecordKey("b")
    try expect(
      key.text == "b" && key.byteCount == 1 && key > RecordKey("a") && key == RecordKey("b") && key.hashValue == RecordKey("b").hashValue)
    try expect(!key.hash.isEmpty && !key.description.isEmpty && key.withBytes { $0.count } == 1)
    try expect([UInt8(98)].withUnsafeBytes { RecordKey(utf8: $0) } == key)
    let address = RecordAddress(collection: "jars", key: key)
    try expect(address.collection == "jars" && address.key == key && RecordAddress(collection: "a", key: key) < address)
  }

  /// Leaves records in the storage, and reads them from there.
  private static func page(_ backend: any PagingBackend) throws {
    let opening = try backend.openPaged(StoreOptions()) { _ in }
    try expect(opening.report.isNew && opening.collections.isEmpty)
    _ = try backend.recover(opening.report)
    let batch = WriteBatch(records: [record(1)], commits: 1...1, recordCounts: ["jars": 1])
    try expect(batch.recordCounts == ["jars": 1])
    try backend.commit(batch)
    let base = try backend.keepBase()
    try expect(base.commit == Revision(1) && !backend.wantsNewerBase && backend.canKeepBase)
    try expect(try base.records([RecordKey("1"), RecordKey("2")], of: "jars").map { $0?.revision } == [Revision(1), nil])
    try expect(try base.records(of: "jars", after: nil, limit: 9).count == 1)
    try backend.close()
    try expect(backend.valueSizeBound.map { $0 >= .bytes(8) } ?? true && BackendCapability.paging.description == "paging")
    let again = try backend.openPaged(StoreOptions()) { _ in }
    let summary = CollectionSummary(name: "jars", recordCount: 1, byteCount: 8, schemaVersions: 1...1)
    try expect(again.collections == [summary] && PagedOpening(report: again.report, collections: [summary]).collections.count == 1)
    try expect(summary.name == "jars" && summary.recordCount == 1 && summary.byteCount == 8 && summary.schemaVersions == 1...1)
    backend.abandon()
  }

  /// Keeps an index in the storage, and reads its keys from there.
  private static func keepIndex(_ backend: any PagingBackend) throws {
    _ = try backend.recover(try backend.openPaged(StoreOptions()) { _ in }.report)
    let index = StoredIndexID(collection: "jars", name: "label")
    try expect(backend.storesIndexes && !backend.holdsIndex(index) && index.collection == "jars" && index.name == "label")
    if let scratch = try backend.makeScratchFile() { try expect(try scratch.size() == 0) }
    try backend.extendIndex(index, by: [], isFirst: true)
    try backend.storeBoundaries([Data()], of: index)
    let edit = IndexEdit(index: index, removed: nil, added: Data([1]))
    try expect(edit.index == index && edit.removed == nil && edit.added == Data([1]))
    let batch = WriteBatch(records: [record(1)], commits: 1...1, indexEdits: [edit], indexes: [index])
    try expect(batch.indexEdits == [edit] && batch.indexes == [index])
    try backend.commit(batch)
    let base = try backend.keepBase()
    try expect(try backend.holdsIndex(index) && base.boundaries(of: index) == [Data()])
    try expect(try base.indexKeys(of: index, from: Data(), below: nil) == [Data([1])])
    try expect(try base.indexKeyCount(of: index, from: Data(), below: Data([1])) == 0)
    let missed = MissedChange(before: record(1), after: nil)
    let revisions = [missed.before, missed.after].compactMap { $0 }.map(\.revision)
    try expect(revisions == [Revision(1)])
    let changes = try backend.missedChanges(of: index)
    try expect(changes.isEmpty)
    try backend.catchUpIndex(index, by: [])
    try backend.dropIndex(index)
    try expect(RepositoryError.storesNoIndexes("a.sqlite").code == .unsupported)
    try backend.close()
  }

  /// Opens a store whose records stay in the file.
  private static func stay(_ file: URL) async throws {
    let cache = ByteCount.megabytes(1)
    try expect(cache.bytes == 1_000_000 && ByteCount.bytes(1) < cache)
    var options = StoreOptions()
    options.residency = .onDisk(cache: cache)
    let schema = RepositorySchema<Jar>("jars", residency: .automatic(limit: cache))
    try expect(schema.residency == .automatic(limit: cache) && Residency.full != .onDisk(cache: cache))
    let jars = try await LocalRepository<Jar>(sqliteFile: file, schema: .init("jars"), options: options)
    try expect(jars.openReport.residency == .onDisk(cache: cache) && RepositoryError.Code.superseded.description == "superseded")
    try await jars.close()
  }

  private static func record(_ revision: UInt64) -> StoredRecord {
    StoredRecord(collection: "jars", key: RecordKey("1"), revision: Revision(revision), schemaVersion: 1, value: Data("{\"id\":1}".utf8))
  }

  private static func deletion(_ revision: UInt64) -> StoredRecord {
    StoredRecord(collection: "jars", key: RecordKey("2"), revision: Revision(revision), schemaVersion: 1, value: nil)
  }

  private static func use(_ backend: any StorageBackend, backup: URL?) throws {
    try expect(!backend.name.isEmpty)
    let report = try backend.recover(try backend.open(StoreOptions()) { _ in })
    try expect(report.isNew)
    try expect(
      backend.hasOtherWriters == (backend is SQLiteBackend) && !backend.wantsCheckpoint && (backend.isCheckpointWorthwhile || true))
    let record = record(1)
    try expect(record.key.text == "1" && record.collection == "jars" && record.revision == Revision(1) && record.schemaVersion == 1)
    try expect(record.value?.count == 8 && record.checksum != 0 && record.address.key == record.key)
    let batch = WriteBatch(records: [record], commits: 1...1, durability: .durable)
    try expect(batch.records.count == 1 && batch.commits == 1...1 && batch.durability == .durable)
    try expect(RepositoryError.notConsecutive(batch, after: .zero, file: "a").code == .unsupported)
    try expect(try backend.beginCommit(after: .zero, .durable) == nil)
    try backend.commit(batch)
    try backend.commitOnFullDisk(WriteBatch(records: [Self.deletion(2)], commits: 2...2))
    backend.cancelCommit()
    try backend.flush()
    try expect(try backend.foreignCommits(after: Revision(2)) == nil)
    let part = try backend.beginCheckpoint()
    part?()
    while let part = try backend.continueCheckpoint() { part() }
    try backend.checkpoint()
    let verified = backend.verify()
    guard verified.isSound, verified.recordCount == 1 else { throw SmokeFailure(description: "\(backend.name): \(verified)") }
    if let backup {
      try backend.backup(to: backup)
      var found = 0
      _ = try backend.readCopy(at: backup) { if $0.value != nil { found += 1 } }
      try expect(found == 1)
    } else {
      var found = 0
      _ = try backend.readAll { if $0.value != nil { found += 1 } }
      try expect(found == 1)
    }
    backend.endWaiting()
    try backend.suspend()
    try expect(try backend.resume())
    try backend.close()
    backend.abandon()
    let commits = ForeignCommits(commit: Revision(2), records: [record], addresses: [record.address])
    try expect(commits.commit == Revision(2) && commits.records.count == 1 && commits.addresses?.count == 1)
  }
}
