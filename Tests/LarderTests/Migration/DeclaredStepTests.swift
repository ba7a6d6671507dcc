import Foundation
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import Larder

@Suite("Migration steps that are declared", .timeLimit(.minutes(15))) struct DeclaredStepTests {
  /// The steps of ``MigrationShelf`` without their sums.
  private static let schema = RepositorySchema<Place>(
    "places", version: 3,
    migrations: [.init(from: 1, .rename("title", to: "name")), .init(from: 2, .set("timeZone", "UTC"), .set("count", 5))])

  private func expected(first: Int, second: Int) -> [Place] {
    MigrationShelf.expected(first: first, second: second).map { Place(id: $0.id, name: $0.name, count: 5, timeZone: "UTC") }
  }

  @Test(arguments: MigrationShelf.backends, [StoreOptions.Migration.Mode.lazy, .eager])
  func everyRecordIsRewrittenAsAClosureWouldHave(_ backend: TestBackend, _ mode: StoreOptions.Migration.Mode) async throws {
    let shelf = try MigrationShelf(backend)
    try await shelf.fill(first: 40, second: 30)
    let before = try shelf.records()
    let report = try await Store.dryRun(try shelf.place.makeBackend(), schema: Self.schema)
    #expect(report.isSound && report.count == 70)
    let places = try await shelf.open(MigrationShelf.options(mode, batchSize: 4), schema: Self.schema)
    try await places.finishMigration()
    let progress = places.migrationProgress
    #expect((progress.phase, progress.total, progress.rewritten, progress.failureCount) == (.finished, 70, 70, 0))
    #expect(try await places.loadAll() == expected(first: 40, second: 30))
    try await places.close()
    let after = try shelf.records()
    for (key, record) in after {
      #expect(record.schemaVersion == 3 && record.revision == before[key]?.revision)
      let closure = Migration(from: 1) { object in
        object.rename("title", to: "name")
        object["timeZone"] = "UTC"
        object["count"] = 5
      }
      #expect(record.value == (try closure.apply(try #require(before[key]?.value), JSONCoder(.larder, depthLimit: 128))))
    }
    let again = try await shelf.open(schema: Self.schema)
    #expect(again.migrationProgress.phase == .notNeeded)
    #expect(try await again.loadAll() == expected(first: 40, second: 30))
    try await again.close()
  }

  @Test(arguments: MigrationShelf.backends) func stepsThatDoNotLeadToTheTypeLeaveEveryRecord(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await shelf.fill(first: 20, second: 0)
    let before = try shelf.records()
    let schema = RepositorySchema<Place>("places", version: 2, migrations: [.init(from: 1, .rename("title", to: "nome"))])
    let places = try await shelf.open(MigrationShelf.options(.lazy, batchSize: 4), schema: schema)
    try await places.finishMigration()
    #expect((places.migrationProgress.rewritten, places.migrationProgress.failureCount) == (0, 20))
    #expect(await code { _ = try await places.find(by: "1-3") } == .migrationFailed)
    try await places.close()
    let after = try shelf.records()
    #expect(after.mapValues(\.value) == before.mapValues(\.value) && after.values.allSatisfy { $0.schemaVersion == 1 })
  }

  @Test(arguments: MigrationShelf.backends) func anIndexFindsTheEditedValues(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await shelf.fill(first: 40, second: 0)
    let schema = RepositorySchema<Place>(
      "places", version: 3, indexes: [.ordered(\.timeZone, \.name)],
      migrations: [.init(from: 1, .rename("title", to: "name")), .init(from: 2, .set("timeZone", "UTC"))])
    let places = try await shelf.open(MigrationShelf.options(.manual, batchSize: 4), schema: schema)
    let query = Query<Place>().where(#Predicate { $0.timeZone == "UTC" && $0.name == "place 7" })
    #expect(try await places.fetch(query).map(\.id) == ["1-7"])
    try await places.finishMigration()
    #expect(try await places.fetch(query).map(\.id) == ["1-7"])
    try await places.save(Place(id: "1-7", name: "renamed", count: 1, timeZone: "UTC"))
    #expect(try await places.fetch(query).isEmpty)
    try await places.close()
  }

  @Test func anEditThatMakesARecordTooLargeLeavesIt() async throws {
    let shelf = try MigrationShelf(.json)
    try await shelf.fill(first: 20, second: 0)
    let longest = try shelf.records().filter { $0.key.count == 3 }.values.compactMap { $0.value?.count }.max() ?? 0
    var options = MigrationShelf.options(.lazy, batchSize: 1)
    options.limits.recordBytes = longest + #""timeZone":"UTC","#.utf8.count - 1
    let schema = RepositorySchema<Place>(
      "places", version: 3, migrations: [.init(from: 1, .rename("title", to: "name")), .init(from: 2, .set("timeZone", "UTC"))])
    let places = try await shelf.open(options, schema: schema)
    try await places.finishMigration()
    #expect(places.migrationProgress.rewritten == 10 && places.migrationProgress.failureCount == 10)
    #expect(places.migrationProgress.failures.allSatisfy { $0.error.code == .migrationFailed })
    try await places.close()
    #expect(try shelf.records().values.filter { $0.schemaVersion == 1 }.count == 10)
  }

  /// A record whose migrated form does not decode keeps its bytes and its version, and a corrected plan migrates it.
  @Test(arguments: MigrationShelf.backends) func aRecordThatTheStepsDoNotFitIsLeft(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await shelf.fill(first: 20, second: 0)
    // An older program whose records have no title.
    struct Other: Codable, Identifiable, Sendable { let id: String; let count: Int }
    let others = try await LocalRepository<Other>(backend: try shelf.place.makeBackend(), schema: .init("places"))
    try await others.save(Other(id: "1-9", count: 1))
    try await others.close()
    let places = try await shelf.open(MigrationShelf.options(.lazy, batchSize: 4), schema: Self.schema)
    try await places.finishMigration()
    #expect((places.migrationProgress.rewritten, places.migrationProgress.failureCount) == (19, 1))
    #expect(await code { _ = try await places.find(by: "1-9") } == .migrationFailed)
    try await places.close()
    let record = try #require(try shelf.records()["1-9"])
    #expect(record.schemaVersion == 1 && record.value == Data(#"{"count":1,"id":"1-9"}"#.utf8))
    // A corrected plan migrates it.
    let corrected = RepositorySchema<Place>(
      "places", version: 3, migrations: [.init(from: 1, .set("name", "?"), .rename("title", to: "name")), Self.schema.migrations[1]])
    let again = try await shelf.open(MigrationShelf.options(.lazy), schema: corrected)
    try await again.finishMigration()
    #expect(try await again.find(by: "1-9") == Place(id: "1-9", name: "?", count: 5, timeZone: "UTC"))
    try await again.close()
  }

  @Test func aStepWithoutEditsChangesNothing() async throws {
    let shelf = try MigrationShelf(.memory)
    try await shelf.fill(first: 5, second: 0)
    let places = try await LocalRepository<PlaceV1>(
      backend: try shelf.place.makeBackend(), schema: .init("places", version: 2, migrations: [.init(from: 1)]),
      options: MigrationShelf.options(.eager))
    #expect(places.migrationProgress.rewritten == 5)
    #expect(try await places.find(by: "1-3")?.title == "place 3")
    try await places.close()
  }
}
