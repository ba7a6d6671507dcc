import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder

@Suite("Older records are rewritten", .timeLimit(.minutes(15))) struct MigrationRewriteTests {
  /// Expects every stored record at version 3, with the right value, and nothing left to do.
  private func expectMigrated(_ shelf: MigrationShelf, first: Int = 10, second: Int = 10) async throws {
    let records = try shelf.records()
    #expect(records.count == first + second)
    #expect(records.values.allSatisfy { $0.schemaVersion == 3 })
    let places = try await shelf.open()
    #expect(places.migrationProgress.phase == .notNeeded)
    #expect(try await places.loadAll() == MigrationShelf.expected(first: first, second: second))
    try await places.close()
  }

  @Test(arguments: MigrationShelf.backends) func everyRecordIsRewrittenOnceInTheBackground(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await shelf.fill(first: 40, second: 30)
    let places = try await shelf.open(MigrationShelf.options(batchSize: 16))
    try await places.finishMigration()
    let progress = places.migrationProgress
    #expect(progress.phase == .finished)
    #expect((progress.total, progress.rewritten, progress.skipped, progress.failureCount) == (70, 70, 0, 0))
    #expect(try await places.loadAll() == MigrationShelf.expected(first: 40, second: 30))
    try await places.close()
    try await expectMigrated(shelf, first: 40, second: 30)
  }

  @Test(arguments: [StoreOptions.Migration.Mode.eager, .manual], [Int.min, .max]) func anyBatchSizeCanBeAskedFor(
    _ mode: StoreOptions.Migration.Mode, _ size: Int
  ) async throws {
    let shelf = try MigrationShelf(.json)
    try await shelf.fill()
    let places = try await shelf.open(MigrationShelf.options(mode, batchSize: size))
    try await places.finishMigration()
    #expect(places.migrationProgress.rewritten == 20)
    try await places.close()
    try await expectMigrated(shelf)
  }

  @Test func aRepositoryOpenedAfterTheEndHasNothingToDo() async throws {
    let shelf = try MigrationShelf(.json)
    try await shelf.fill()
    let store = try await Store.open(try shelf.place.makeBackend(), options: MigrationShelf.options(.manual))
    try await store.repository(MigrationShelf.schema).finishMigration()
    let again = try await store.repository(MigrationShelf.schema)
    #expect(again.migrationProgress.phase == .notNeeded || again.migrationProgress.phase == .finished)
    try await store.close()
  }

  @Test(arguments: MigrationShelf.backends) func eagerIsOverBeforeOpeningReturns(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await shelf.fill(first: 40, second: 30)
    let seen = Mutex<[Int]>([])
    let places = try await shelf.open(
      MigrationShelf.options(.eager, batchSize: 16) { progress in seen.withLock { $0.append(progress.done) } })
    #expect(places.migrationProgress.phase == .finished)
    #expect(places.migrationProgress.rewritten == 70)
    #expect(seen.withLock { $0 } == [16, 32, 48, 64, 70])
    try await places.close()
    try await expectMigrated(shelf, first: 40, second: 30)
  }

  @Test func aBatchIsBufferedAndTheEndIsFlushed() async throws {
    let shelf = try MigrationShelf(.memory)
    try await shelf.fill()
    let (disk, places) = try await shelf.openFaulty(MigrationShelf.options(.eager, batchSize: 8))
    #expect(disk.batches.map(\.durability) == [.buffered, .buffered, .buffered])
    #expect(disk.batches.map(\.records.count) == [8, 8, 4])
    #expect(disk.calls(.flush) == 1)
    try await places.close()
  }

  @Test(arguments: MigrationShelf.backends) func whatIsSavedOrDeletedMeanwhileIsNotOverwritten(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await shelf.fill(first: 10, second: 0)
    let (disk, places) = try await shelf.openFaulty(MigrationShelf.options(batchSize: 10)) { $0.hold(.commit) }
    // The disk is busy with one batch, while two of its records are changed by writes that come behind it.
    await disk.waitUntilHeld(.commit)
    let save = Task { try await places.save(Place(id: "1-3", name: "mine", count: 7, timeZone: "JST")) }
    try await until { places.core.waitingWriteCount == 1 }
    disk.release(.commit)
    _ = try await save.value
    try await places.finishMigration()
    #expect(try await places.find(by: "1-3")?.name == "mine")
    try await places.close()
    #expect(try shelf.records()["1-3"]?.schemaVersion == 3)
  }

  @Test(arguments: MigrationShelf.backends) func aRecordThatWasChangedBeforeItsTurnIsSkipped(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await shelf.fill(first: 10, second: 0)
    let (disk, places) = try await shelf.openFaulty(MigrationShelf.options(batchSize: 2)) { $0.hold(.commit) }
    await disk.waitUntilHeld(.commit)
    let save = Task { try await places.save(Place(id: "1-7", name: "mine", count: 7, timeZone: "JST")) }
    let delete = Task { try await places.delete("1-8") }
    try await until { places.core.waitingWriteCount == 2 }
    disk.release(.commit)
    _ = try await save.value
    #expect(try await delete.value)
    try await places.finishMigration()
    #expect(places.migrationProgress.rewritten == 8)
    #expect(places.migrationProgress.skipped == 2)
    #expect(try await places.find(by: "1-7")?.name == "mine")
    #expect(try await places.find(by: "1-8") == nil)
    #expect(try await places.count() == 9)
    try await places.close()
    let reopened = try await shelf.open()
    #expect(try await reopened.find(by: "1-7")?.name == "mine")
    #expect(try await reopened.count() == 9)
    try await reopened.close()
  }

  @Test func aCancelledWaitEndsAndTheRewritingGoesOn() async throws {
    let shelf = try MigrationShelf(.memory)
    try await shelf.fill(first: 10, second: 0)
    let (disk, places) = try await shelf.openFaulty(MigrationShelf.options(batchSize: 2)) { $0.hold(.commit) }
    await disk.waitUntilHeld(.commit)
    let waiting = Task { await code { try await places.finishMigration() } }
    waiting.cancel()
    #expect(await waiting.value == .cancelled)
    disk.release(.commit)
    try await places.finishMigration()
    #expect(places.migrationProgress.rewritten == 10)
    try await places.close()
  }

  @Test(arguments: MigrationShelf.backends) func closingEndsItAndTheNextOpenGoesOn(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await shelf.fill(first: 20, second: 0)
    let disk = FaultInjectingBackend(try shelf.place.makeBackend())
    disk.hold(.commit)
    let store = try await Store.open(disk, options: MigrationShelf.options(batchSize: 4))
    let places = try await store.repository(MigrationShelf.schema)
    await disk.waitUntilHeld(.commit)
    disk.step(.commit)
    await disk.waitUntilHeld(.commit)
    let close = Task { try await store.close() }
    try await until { places.migration.state.withLock { $0.isCancelled } }
    disk.release(.commit)
    try await close.value
    await places.migration.finish()
    #expect(places.migrationProgress.phase == .stopped)
    #expect(places.migrationProgress.error?.code == .closed)
    #expect(await code { try await places.finishMigration() } == .closed)
    #expect(disk.batches.count == 2)
    let done = try shelf.records().values.count { $0.schemaVersion == 3 }
    #expect(done == 8)
    let again = try await shelf.open()
    try await again.finishMigration()
    #expect(again.migrationProgress.total == 12)
    try await again.close()
    try await expectMigrated(shelf, first: 20, second: 0)
  }

  @Test(arguments: MigrationShelf.backends) func aFullDiskStopsItAndItGoesOnLater(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await shelf.fill(first: 20, second: 0)
    let (disk, places) = try await shelf.openFaulty(MigrationShelf.options(.manual, batchSize: 4))
    disk.fail(.commit, call: 3, with: RepositoryError(.full))
    #expect(await code { try await places.finishMigration() } == .full)
    #expect(places.migrationProgress.phase == .stopped)
    #expect(places.migrationProgress.error?.code == .full)
    #expect(places.migrationProgress.rewritten == 8)
    #expect(try await places.loadAll() == MigrationShelf.expected(first: 20, second: 0))
    #expect(await code { try await places.finishMigration() } == nil)
    #expect(places.migrationProgress.phase == .finished)
    #expect(places.migrationProgress.total == 12)
    try await places.close()
    try await expectMigrated(shelf, first: 20, second: 0)
  }

  @Test(arguments: MigrationShelf.backends) func aFailedSyncStopsItForGood(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await shelf.fill(first: 20, second: 0)
    let (disk, places) = try await shelf.openFaulty(MigrationShelf.options(.eager, batchSize: 4)) { disk in
      disk.fail(.commit, call: 2, with: RepositoryError(.outcomeUnknown))
    }
    #expect(places.migrationProgress.phase == .stopped)
    #expect(places.migrationProgress.error?.code == .outcomeUnknown)
    #expect(await code { try await places.finishMigration() } == .poisoned)
    #expect(try await places.loadAll() == MigrationShelf.expected(first: 20, second: 0))
    #expect(disk.batches.count == 1)
    do { try await places.close() } catch {}
    let again = try await shelf.open(MigrationShelf.options(.eager))
    #expect(again.migrationProgress.phase == .finished)
    try await again.close()
    try await expectMigrated(shelf, first: 20, second: 0)
  }

  @Test func aStoreThatIsDroppedIsNotKeptByItsMigration() async throws {
    let shelf = try MigrationShelf(.memory)
    try await shelf.fill(first: 20, second: 0)
    let disk = FaultInjectingBackend(try shelf.place.makeBackend())
    disk.hold(.commit)
    weak var dropped: StoreCore?
    let run: MigrationRun<Place>
    do {
      let places = try await LocalRepository<Place>(
        backend: disk, schema: MigrationShelf.schema, options: MigrationShelf.options(batchSize: 4))
      dropped = places.core
      run = places.migration
      await disk.waitUntilHeld(.commit)
    }
    disk.release(.commit)
    await run.finish()
    try await until { dropped == nil }
    #expect(run.progress.phase == .stopped)
    #expect(disk.batches.count < 5)
  }

  @Test func aReadOnlyStoreReadsOldRecordsAndRewritesNothing() async throws {
    for backend in MigrationShelf.backends {
      let shelf = try MigrationShelf(backend)
      try await shelf.fill()
      let before = try shelf.files()
      let places = try await shelf.open(StoreOptions(access: .readOnly, migration: .init(mode: .eager)))
      #expect(try await places.loadAll() == MigrationShelf.expected())
      #expect(places.migrationProgress.phase == .waiting)
      #expect(await code { try await places.finishMigration() } == .unsupported)
      try await places.close()
      #expect(try shelf.files() == before)
    }
  }

  @Test func rewritesAreAnnouncedAsMigration() async throws {
    let shelf = try MigrationShelf(.memory)
    try await shelf.fill(first: 3, second: 0)
    let places = try await shelf.open(MigrationShelf.options(.manual))
    let listener = Listener()
    places.core.hub.register(listener, for: places.collection)
    try await places.finishMigration()
    try await until { listener.changes.withLock { $0.count } == 3 }
    let changes = listener.changes.withLock { $0 }
    #expect(changes.allSatisfy { $0.origin == .migration && $0.old?.schemaVersion == 1 && $0.new?.schemaVersion == 3 })
    try await places.close()
  }

  private final class Listener: ChangeObserver {
    let changes = Mutex<[RecordChange]>([])
    func receive(_ changes: [RecordChange], commit: Revision) { self.changes.withLock { $0 += changes } }
    func finish() {}
  }

  @Test func twoRepositoriesOfACollectionShareOneRewrite() async throws {
    let shelf = try MigrationShelf(.memory)
    try await shelf.fill(first: 20, second: 0)
    let disk = FaultInjectingBackend(try shelf.place.makeBackend())
    let store = try await Store.open(disk, options: MigrationShelf.options(.manual, batchSize: 20))
    let first = try await store.repository(MigrationShelf.schema)
    let second = try await store.repository(MigrationShelf.schema)
    async let one: Void = first.finishMigration()
    try await second.finishMigration()
    try await one
    #expect(first.migrationProgress.rewritten == 20)
    #expect(second.migrationProgress.rewritten == 20)
    #expect(disk.batches.map(\.records.count) == [20])
    try await store.close()
  }
}
