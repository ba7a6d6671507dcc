import Foundation
import Larder

enum MigrationSmoke {
  /// The record as the first version had it.
  struct OldJar: Codable, Identifiable, Sendable {
    let id: Int
    var title: String
    var shelf: Int
  }

  static func run(_ directory: URL) async throws {
    let file = directory.appendingPathComponent("jars.json")
    let old = try await LocalRepository<OldJar>(jsonFile: file, schema: .init("jars", version: 1))
    try await old.save(contentsOf: (0..<5).map { OldJar(id: $0, title: "jar \($0)", shelf: $0) })
    try await old.close()
    let steps: [Migration] = [
      .init(from: 1) { object in
        object.rename("title", to: "label")
        object["latitude"] = 1.0 as Double?
        object["longitude"] = 1.0 as Double?
      },
      .init(from: 2, Jar.self, to: Jar.self) { old in
        var jar = old
        jar.shelf += 10
        return jar
      },
    ]
    try expect(steps.map(\.from) == [1, 2])
    let schema = RepositorySchema<Jar>("jars", version: 3, migrations: steps)
    let dry = try await Store.dryRun(JSONFileBackend(file: file), schema: schema)
    try expect(
      dry.isSound && dry.count == 5 && dry.failureCount == 0 && dry.failures.isEmpty && dry.collection == "jars" && dry.schemaVersion == 3)
    try expect(dry.duration >= .zero && dry.versions.map(\.version) == [1] && dry.versions.map(\.count) == [5])
    try expect(dry.versions.map(\.failureCount) == [0] && dry.versions.allSatisfy { $0.duration >= .zero })
    let jars = try await LocalRepository<Jar>(jsonFile: file, schema: schema)
    try await expect(jars.find(by: 3)?.shelf == 13)
    try await jars.finishMigration()
    let progress = jars.migrationProgress
    try expect(progress.phase == .finished && progress.done == 5 && progress.total == 5 && progress.rewritten == 5 && progress.skipped == 0)
    try expect(progress.remainingCount == 0 && progress.failureCount == 0 && progress.failures.isEmpty && progress.error == nil)
    try expect(progress.collection == "jars" && progress.version == 3 && progress.backupFile != nil)
    let phases: [MigrationProgress.Phase] = [.running, .stopped, .waiting, .notNeeded]
    try expect(!phases.contains(progress.phase))
    try await jars.close()

    // Edits that are declared.
    let shelf: JSONPath = ["place", "shelf"]
    let declared: [Migration] = [
      .init(from: 1, .rename("title", to: "label"), .set("latitude", 1), .set(shelf, 7), .set("draft", .null)),
      .init(from: 2, .remove(JSONPath(["draft"])), .move(shelf, to: "shelf"), .set("longitude", 1)),
    ]
    try expect(shelf.names == ["place", "shelf"] && JSONEdit.remove("a") != .remove(shelf))
    let edited = file.deletingLastPathComponent().appendingPathComponent("edited.json")
    let before = try await LocalRepository<OldJar>(jsonFile: edited, schema: .init("jars", version: 1))
    try await before.save(contentsOf: (0..<50).map { OldJar(id: $0, title: "jar \($0)", shelf: $0) })
    try await before.close()
    let after = try await LocalRepository<Jar>(
      jsonFile: edited, schema: .init("jars", version: 3, migrations: declared),
      options: .init(migration: .init(mode: .eager, backup: .declined, batchSize: 1)))
    try expect(after.migrationProgress.rewritten == 50)
    let jar = try await after.find(by: 40)
    try expect(jar?.label == "jar 40" && jar?.shelf == 7)
    try await after.close()

    // A record of another shape does not hide the others.
    let numbers = try await LocalRepository<OldJar>(jsonFile: file, schema: .init("numbers"))
    try await numbers.save(OldJar(id: 1, title: "no jar", shelf: 1))
    try await numbers.close()
    let other = try await LocalRepository<Jar>(jsonFile: file, schema: .init("numbers"))
    try await expect(other.find(by: 2) == nil)
    let undecodable = other.snapshot.undecodable
    try expect(
      undecodable.map(\.error.code) == [.decodingFailed] && undecodable[0].collection == "numbers" && undecodable[0].schemaVersion == 1)
    try expect(undecodable[0].key.text == "1" && undecodable[0].revision > .zero)
    try await other.close()
  }
}
