import Foundation
import Larder
import LarderSQLite

enum StoreSmoke {
  static func run(_ directory: URL) async throws {
    try await use(JSONFileBackend(file: directory.appendingPathComponent("a.json")), in: directory)
    try await use(SQLiteBackend(file: directory.appendingPathComponent("a.sqlite")), in: directory)
  }

  private static func use(_ backend: any StorageBackend, in directory: URL) async throws {
    let store = try await Store.open(backend, options: .init(durability: .buffered))
    let jars = try await store.repository(Jar.schema)
    try await transact(store, jars)
    let snapshot = store.snapshot
    try expect(try snapshot.count(in: jars) == 3 && snapshot.fetch(Query(), in: jars).count == 3 && snapshot.find(by: 1, in: jars) == .plum)
    try expect(
      try snapshot.first(Query(), in: jars) != nil && snapshot.loadAll(in: jars).count == 3 && snapshot.snapshot(of: jars).count == 3)
    try expect(snapshot.revision > .zero && store.openReport.isNew)
    try await store.flush()
    try await store.checkpoint()
    try await store.refresh()
    await store.suspend()
    try await store.resume()
    await jars.suspend()
    try await jars.resume()
    try expect(RepositoryError.Code.suspended.description == "suspended" && StoreOptions().suspensionTimeout == .seconds(30))
    let report = await store.verify()
    try expect(
      report.isSound && report.problems.isEmpty && report.damagedIndexes.isEmpty && report.recordCount == 3 && report.tombstoneCount == 0
        && report.commit > .zero)
    try expect(
      report.duration >= .zero && VerifyReport(commit: .zero, recordCount: 1, tombstoneCount: 2, problems: [], duration: .zero).isSound)
    let (copied, backedUp) = (directory.appendingPathComponent("copy-\(UUID()).json"), directory.appendingPathComponent("backup-\(UUID())"))
    try await expect(store.copy(to: JSONFileBackend(file: copied)).recordCount == 3)
    try await store.backup(to: backedUp)
    try await store.close()

    let again = try await LocalRepository<Jar>(jsonFile: copied, schema: Jar.schema, options: .init(access: .exclusive))
    let opened = again.openReport
    try expect(!opened.isNew && opened.isClean && opened.recordCount == 3 && opened.replayedCommits >= 0 && opened.commit > .zero)
    try expect(!opened.isIndexRebuilt)
    try expect(opened.collections.map(\.name) == ["jars"] && opened.collections.first?.recordCount == 3 && opened.duplicates.isEmpty)
    try expect(opened.cutTail == nil && opened.removedTemporaryFiles.isEmpty && opened.undecodable.isEmpty && opened.duration >= .zero)
    try expect(opened.tombstoneHorizon >= .zero && opened.storeID != UUID())
    try await again.close()
  }

  private static func transact(_ store: Store, _ jars: LocalRepository<Jar>) async throws {
    let count = try await store.transaction(durability: .buffered) { transaction in
      let revision = try transaction.save(.plum, in: jars)
      try transaction.save(.plum, in: jars, ifRevision: revision)
      try transaction.insert(.fig, in: jars)
      try transaction.insert(.lime, in: jars)
      try expect(try transaction.update(1, in: jars) { $0.shelf = 7 }.shelf == 7)
      try expect(try transaction.update(where: Query().where(#Predicate { $0.shelf == 7 }), in: jars) { $0.shelf = 1 } == 1)
      try expect(try transaction.find(by: 1, in: jars) == .plum && transaction.first(Query().limit(1), in: jars) != nil)
      try expect(try transaction.fetch(Query(), in: jars).count == 3 && transaction.count(Query(), in: jars) == 3)
      try expect(try transaction.loadAll(in: jars).count == 3 && transaction.loadAll(in: jars, strict: true).count == 3)
      try expect(
        try transaction.delete(2, in: jars) && transaction.delete(where: Query().where(#Predicate { $0.shelf == 2 }), in: jars) == 1)
      try expect(transaction.revision > .zero)
      try transaction.insert(.fig, in: jars)
      try transaction.insert(.lime, in: jars)
      return try transaction.count(in: jars)
    }
    try expect(count == 3)
  }
}
