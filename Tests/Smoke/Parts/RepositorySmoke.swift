import Foundation
import Larder
import LarderSQLite

enum RepositorySmoke {
  static func run(_ directory: URL) async throws {
    try await use(LocalRepository(jsonFile: directory.appendingPathComponent("jars.json"), schema: Jar.schema))
    try await use(LocalRepository(sqliteFile: directory.appendingPathComponent("jars.sqlite"), schema: Jar.schema))
    try await use(LocalRepository(inMemory: Jar.schema))
    try await use(LocalRepository(inMemory: Jar.schema, options: .init(indexing: .eager)))
    try await use(LocalRepository(backend: InMemoryBackend(), schema: Jar.schema))
    try await use(LocalRepository(previewing: [], schema: Jar.schema))
    try await rename(directory.appendingPathComponent("renamed.json"))
    // A path as a name is refused before anything is made.
    try await expect(.unsupported) {
      let named = try await LocalRepository<Jar>(filename: "")
      try await named.close()
    }
  }

  /// Gives a collection a name, and opens it under a name that nobody has.
  private static func rename(_ file: URL) async throws {
    let first = try await LocalRepository<Jar>(jsonFile: file)
    try await first.save(Jar.plum)
    try await first.close()
    do {
      let named = try await LocalRepository(jsonFile: file, schema: RepositorySchema<Jar>("jars"))
      try await named.close()
      throw SmokeFailure(description: "expected the records to be missed")
    } catch let error as RepositoryError { try expect(error.code == .unsupported && error.errorDescription == error.description) }
    let schema = RepositorySchema<Jar>("jars", renamedFrom: "records")
    try expect(schema.renamedFrom == "records")
    let jars = try await LocalRepository(jsonFile: file, schema: schema)
    let renamed = jars.openReport.renamed
    try expect(renamed?.oldName == "records" && renamed?.name == "jars" && renamed?.recordCount == 1 && jars.openReport.leftOut.isEmpty)
    try await jars.close()
    let samples = LocalRepository(previewing: [Jar.plum])
    try expect(samples.snapshot.loadAll() == [.plum])
  }

  private static func use(_ jars: LocalRepository<Jar>) async throws {
    try expect(jars.openReport.isNew && jars.openReport.recordCount == 0 && jars.migrationProgress.phase == .notNeeded)
    try await write(jars)
    try await read(jars)
    try await readAny(jars)
    _ = jars.unownedExecutor
    try await jars.flush()
    try await jars.checkpoint()
    try await jars.refresh()
    try await jars.finishMigration()
    try await jars.replaceAll(with: [Jar.plum])
    try await jars.replaceAll(with: [Jar.plum], discardingUndecodable: true)
    try await jars.deleteAll()
    try await jars.deleteAll(discardingUndecodable: true)
    try await expect(jars.count() == 0)
    try await jars.close()
  }

  private static func write(_ jars: LocalRepository<Jar>) async throws {
    let first = try await jars.save(.plum)
    let second = try await jars.save(.plum, ifRevision: first, durability: .buffered)
    try expect(second > first)
    try await expect(.revisionMismatch) { try await jars.save(.plum, ifRevision: first) }
    try await jars.insert(.fig)
    try await expect(.alreadyExists) { try await jars.insert(.fig) }
    try await jars.save(contentsOf: [Jar.lime])
    try await expect(.uniqueViolation) { try await jars.save(Jar(id: 9, label: "fig jam", shelf: 1)) }
    try await expect(jars.update(3) { $0.shelf = 5 }.shelf == 5)
    try await expect(jars.update(where: #Predicate { $0.shelf == 5 }) { $0.shelf = 2 } == 1)
    try await expect(jars.update(where: Query().where(#Predicate { $0.shelf == 2 }), durability: .buffered) { $0.weight = 1 } == 1)
    try await expect(.notFound) { try await jars.update(99) { $0.shelf = 1 } }
    try await expect(jars.delete(3), !jars.delete(3, ifRevision: nil, durability: .buffered))
    try await expect(jars.delete(where: #Predicate { $0.shelf == 77 }) + jars.delete(where: Query().limit(0)) == 0)
    let sum = try await jars.transaction { transaction in
      try transaction.save(.lime, in: jars)
      return try transaction.count(in: jars)
    }
    try expect(sum == 3 && jars.revision(of: 3) != nil)
  }

  private static func read(_ jars: LocalRepository<Jar>) async throws {
    try await expect(jars.find(by: 1) == .plum, jars.exists(2), !jars.exists(99))
    try await expect(Set(jars.loadAll()) == Set(Jar.all), jars.loadAll(strict: true).count == 3)
    try await expect(jars.fetch().count == 3, jars.fetch(Query().strict()).count == 3)
    try await expect(jars.fetch(where: #Predicate { $0.shelf == 1 }).count == 2)
    try await expect(jars.first(Query().sorted(by: \.label)) == .fig, jars.first(where: #Predicate { $0.shelf == 2 }) == .lime)
    try await expect(jars.count(where: #Predicate { $0.shelf == 1 }) == 2)
    try await expect(jars.grouped(by: \.shelf) == [1: 2, 2: 1])
    try await expect(jars.max(of: \.shelf) == 2, jars.min(of: \.shelf) == 1, jars.max(of: \.weight) == 2.5, jars.min(of: \.weight) == 1)
    try await expect(jars.max(of: \.label) == "plum jam", jars.min(of: \.latitude) == -10)
    try await expect(jars.sum(of: \.shelf) == 4, jars.sum(of: \.latitude) == 87, jars.sum(of: \.weight) == 3.5)
    let snapshot = jars.snapshot
    try expect(try snapshot.find(by: 1) == .plum && snapshot.first(Query()) != nil && snapshot.fetch(Query()).count == 3)
    try expect(try snapshot.count(Query()) == 3 && snapshot.loadAll(strict: true).count == 3)
    try expect(snapshot.count == 3 && snapshot.loadAll().count == 3 && snapshot.undecodable.isEmpty)
    try expect(snapshot.revision > .zero && snapshot.revision(of: 1) == jars.revision(of: 1))
  }

  /// Reads by way of the protocol, as view models do.
  private static func readAny(_ jars: some Repository<Jar>) async throws {
    try await expect(jars.find(by: \.label, "fig jam") == .fig, jars.exists(where: #Predicate { $0.shelf == 2 }))
    try await expect(
      jars.exists(where: Query().limit(1)), jars.exists(1), jars.count() == 3, jars.count(where: #Predicate { $0.shelf == 9 }) == 0)
    try await expect(jars.fetch(where: #Predicate { $0.shelf == 2 }) == [.lime], jars.first(where: #Predicate { $0.shelf == 2 }) == .lime)
    try await jars.save(.lime)
    try await expect(jars.delete(Jar.lime))
    try await jars.save(.lime)
  }
}
