import Foundation
import LarderTesting
import Testing

@testable import Larder

@Suite("The old store is copied before the first rewrite", .timeLimit(.minutes(15))) struct MigrationBackupTests {
  private static let options = MigrationShelf.options(backup: .beforeFirstRewrite)

  private func copy(of shelf: MigrationShelf) -> URL {
    URL(fileURLWithPath: (shelf.place.file?.path ?? "") + "-before-places-v3")
  }

  @Test(arguments: MigrationShelf.onDisk) func theCopyIsTheStoreAsTheOldAppLeftIt(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await shelf.fill(first: 20, second: 0)
    let places = try await shelf.open(Self.options)
    // This write comes at once, and still the copy is without it: the old app could not open it otherwise.
    try await places.save(Place(id: "new", name: "new", count: 0, timeZone: "JST"))
    try await places.finishMigration()
    #expect(places.migrationProgress.backupFile == copy(of: shelf).path)
    try await places.close()
    let old = try await LocalRepository<PlaceV1>(backend: backend.backend(copy(of: shelf)), schema: .init("places"))
    #expect(try await old.loadAll().map(\.count).sorted() == Array(0..<20))
    try await old.close()
  }

  @Test(arguments: MigrationShelf.onDisk) func theCopyOfAnEarlierRunIsKept(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await shelf.fill(first: 20, second: 0)
    let (disk, places) = try await shelf.openFaulty(MigrationShelf.options(.eager, backup: .beforeFirstRewrite, batchSize: 4)) { disk in
      disk.fail(.commit, call: 2, with: RepositoryError(.inputOutput))
    }
    #expect(places.migrationProgress.error?.code == .inputOutput)
    #expect(disk.calls(.backup) == 1)
    try await places.close()
    let first = try Data(contentsOf: copy(of: shelf))
    let again = try await shelf.open(MigrationShelf.options(.eager, backup: .beforeFirstRewrite))
    #expect(again.migrationProgress.phase == .finished)
    #expect(again.migrationProgress.backupFile == copy(of: shelf).path)
    try await again.close()
    #expect(try Data(contentsOf: copy(of: shelf)) == first)
  }

  @Test(arguments: MigrationShelf.onDisk) func noCopyIsMadeWhereItWasDeclinedOrNothingIsOlder(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await shelf.fill(first: 5, second: 0)
    let places = try await shelf.open(MigrationShelf.options(.eager, backup: .declined))
    #expect(places.migrationProgress.backupFile == nil)
    try await places.close()
    let again = try await shelf.open(MigrationShelf.options(.eager, backup: .beforeFirstRewrite))
    #expect(again.migrationProgress.phase == .notNeeded)
    try await again.close()
    #expect(try shelf.files().count == 1)
  }

  @Test(arguments: MigrationShelf.onDisk) func noCopyIsMadeWhenNothingCanBeRewritten(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await shelf.fill(first: 5, second: 0)
    let schema = RepositorySchema<Place>("places", version: 2, migrations: [.init(from: 1) { _ in throw StepFailed() }])
    let places = try await shelf.open(MigrationShelf.options(.eager, backup: .beforeFirstRewrite), schema: schema)
    #expect(places.migrationProgress.failureCount == 5)
    try await places.close()
    #expect(try shelf.files().count == 1)
  }

  @Test(arguments: MigrationShelf.onDisk) func withoutTheCopyNothingIsRewritten(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await shelf.fill(first: 5, second: 0)
    let before = try shelf.records()
    let (disk, places) = try await shelf.openFaulty(MigrationShelf.options(.eager, backup: .beforeFirstRewrite)) { disk in
      disk.fail(.backup, with: RepositoryError(.full))
    }
    #expect(places.migrationProgress.phase == .stopped)
    #expect(places.migrationProgress.error?.code == .full)
    #expect(try await places.loadAll() == MigrationShelf.expected(first: 5, second: 0))
    #expect(disk.calls(.commit) == 0)
    try await places.close()
    #expect(try shelf.records().mapValues(\.checksum) == before.mapValues(\.checksum))
  }

  @Test func memoryHasNothingToCopyAndIsRewritten() async throws {
    let shelf = try MigrationShelf(.memory)
    try await shelf.fill()
    let places = try await shelf.open(MigrationShelf.options(.eager, backup: .beforeFirstRewrite))
    #expect(places.migrationProgress.phase == .finished)
    #expect(places.migrationProgress.backupFile == nil)
    try await places.close()
  }
}
