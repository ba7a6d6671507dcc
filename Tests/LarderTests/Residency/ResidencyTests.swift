import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// Records that stay in the storage: the calls that read the storage, and the errors of a read that fails.
@Suite(.timeLimit(.minutes(5))) final class ResidencyTests {
  private let disk = FaultInjectingBackend(InMemoryBackend())
  private static let options = StoreOptions(checkpoint: .manual, residency: .onDisk(cache: .megabytes(1)))

  private func open(
    _ schema: RepositorySchema<Spot> = .init("spots", indexes: [.ordered(\.name)]), _ options: StoreOptions = ResidencyTests.options
  ) async throws -> LocalRepository<Spot> {
    try await LocalRepository(backend: disk, schema: schema, options: options)
  }

  /// Saves spots, and opens the store again, so that the records are in the storage only.
  private func reopened(with spots: [Spot]) async throws -> LocalRepository<Spot> {
    let before = try await open()
    try await before.save(contentsOf: spots)
    try await before.close()
    saved.withLock { $0 = disk.calls(.read) }
    return try await open()
  }

  /// Number of reads before the store was opened again.
  private let saved = Mutex(0)
  private var reads: Int { disk.calls(.read) - saved.withLock { $0 } }

  private static let failure = RepositoryError(.inputOutput, "the disk is broken")

  @Test func openingReadsAtMostOneBlockOfRecords() async throws {
    let spots = try await reopened(with: (0..<5_000).map { Spot("spot \($0)") })
    // Opening decodes a record, to find out whether the collection holds another type.
    #expect(reads <= 1)
    #expect(spots.openReport.residency == .onDisk(cache: .megabytes(1)))
    #expect(spots.openReport.recordCount == 5_000 && spots.snapshot.count == 5_000)
  }

  @Test func aSecondReadOfARecordDoesNotReadTheStorage() async throws {
    let spot = Spot("Jogashima")
    let spots = try await reopened(with: [spot])
    #expect(try await spots.find(by: spot.id) == spot)
    let reads = disk.calls(.read)
    #expect(try await spots.find(by: spot.id) == spot)
    #expect(disk.calls(.read) == reads)
  }

  @Test func aReadDoesNotWaitForACommit() async throws {
    let (old, new) = (Spot("old"), Spot("new"))
    let spots = try await reopened(with: [old])
    disk.hold(.commit)
    async let saving = spots.save(new)
    await disk.waitUntilHeld(.commit)
    #expect(try await spots.find(by: old.id) == old)
    #expect(try await spots.fetch(Query().where(\.rating, .equal, 3)) == [old])
    disk.release(.commit)
    _ = try await saving
  }

  @Test func aFailedReadIsNoMissingRecord() async throws {
    let spot = Spot("Jogashima")
    let spots = try await reopened(with: [spot])
    func failing(_ body: () async throws -> Void) async -> RepositoryError.Code? {
      // Every read up to a later one that nobody makes.
      for call in 1...4 { disk.fail(.read, call: call, with: Self.failure) }
      defer { while failsNextRead() {} }
      return await code(body)
    }
    #expect(await failing { _ = try await spots.find(by: spot.id) } == .inputOutput)
    #expect(await failing { _ = try await spots.exists(spot.id) } == .inputOutput)
    #expect(await failing { _ = try await spots.loadAll() } == .inputOutput)
    #expect(await failing { _ = try await spots.count() } == .inputOutput)
    #expect(await failing { _ = try await spots.fetch(Query().where(\.rating, .equal, 3)) } == .inputOutput)
    #expect(await failing { _ = try await spots.fetch(Query().sorted(by: \.name)) } == .inputOutput)
    #expect(await failing { _ = try spots.snapshot.loadAll(strict: true) } == .inputOutput)
    #expect(await failing { _ = try spots.snapshot.find(by: spot.id) } == .inputOutput)
    #expect(await failing { try await spots.save(spot) } == .inputOutput)
    #expect(await failing { try await spots.delete(spot.id) } == .inputOutput)
    #expect(await failing { _ = try await spots.transaction { try $0.find(by: spot.id, in: spots) } } == .inputOutput)
    // Without a `throws`, the error is in the list of records that do not decode.
    disk.fail(.read, with: Self.failure)
    #expect(spots.snapshot.undecodable.map(\.error.code) == [.inputOutput])
    // The store goes on.
    #expect(try await spots.find(by: spot.id) == spot)
    #expect(try await spots.fetch(Query().sorted(by: \.name)) == [spot])
    #expect(spots.snapshot.undecodable.isEmpty)
  }

  /// Makes a read, and returns whether a planned fault has hit it.
  private func failsNextRead() -> Bool {
    do {
      _ = try disk.keepBase().records([RecordKey("none")], of: "spots")
      return false
    } catch {
      return true
    }
  }

  @Test func aRevisionThatCannotBeReadMatchesNoRecord() async throws {
    let spot = Spot("Jogashima")
    let spots = try await reopened(with: [spot])
    disk.fail(.read, with: Self.failure)
    let revision = spots.revision(of: spot.id)
    #expect(await code { try await spots.save(spot, ifRevision: revision) } == .revisionMismatch)
    #expect(spots.revision(of: spot.id) == Revision(1) && spots.revision(of: UUID()) == nil)
  }

  /// Stages a record of its own before each change, as the outbox of LarderSync does.
  private struct Staging: RecordTrigger {
    let collections = ["log"]
    func willChange(_ change: TriggeredChange, in pending: inout PendingState) throws(RepositoryError) {
      guard let log = pending.collection(named: "log") else { return }
      try pending.storeUnread(StoredValue(schemaVersion: 1, json: Data("1".utf8)), for: change.key, in: log)
    }
  }

  @Test func aFailedReadTakesTheRecordsOfATriggerBack() async throws {
    var schema = RepositorySchema<Spot>("spots")
    schema.trigger = Staging()
    let spots = try await open(schema)
    let spot = Spot("Jogashima")
    // The trigger reads the old record, and so does the write after it.
    disk.fail(.read, call: 2, with: Self.failure)
    #expect(await code { try await spots.save(spot) } == .inputOutput)
    #expect(spots.core.state.collections.map(\.records.count) == [0, 0] && spots.core.state.commit == 0)
    try await spots.save(spot)
    #expect(spots.core.state.collections.map(\.records.count) == [1, 1])
  }

  @Test func aSnapshotStaysAtItsCommitWhenTheBaseMovesOn() async throws {
    let (kept, deleted) = (Spot("kept"), Spot("deleted"))
    let spots = try await reopened(with: [kept, deleted])
    let before = spots.snapshot
    var changed = kept
    changed.name = "changed"
    try await spots.save(changed)
    try await spots.delete(deleted.id)
    try await spots.save(Spot("new"))
    let between = spots.snapshot
    try await spots.checkpoint()
    let moved = spots.snapshot
    #expect(moved.records.pagedCommit == moved.revision && between.records.pagedCommit != moved.revision)
    #expect(Set(before.loadAll()) == [kept, deleted])
    #expect(try before.find(by: kept.id) == kept && before.find(by: deleted.id) == deleted)
    #expect(try between.find(by: kept.id) == changed && between.find(by: deleted.id) == nil)
    #expect(between.loadAll() == moved.loadAll() && moved.count == 2)
    #expect(before.revision(of: kept.id) == Revision(1))
  }

  @Test func manyChangesMoveTheBaseOn() async throws {
    let spots = try await open()
    try await spots.save(contentsOf: (0..<RecordMap.changeLimit).map { Spot("\($0)") })
    await spots.core.executor.run {}  // the base moves on after the save has returned
    #expect(spots.snapshot.records.pagedCommit == Revision(1))
    try await spots.save(Spot("one more"))
    await spots.core.executor.run {}
    #expect(spots.snapshot.records.pagedCommit == Revision(1))
  }

  @Test func largeChangesMoveTheBaseOn() async throws {
    let spots = try await open()
    // Each text counts twice, and the changes may take a quarter of the cache and 1 MiB.
    for number in 1...3 { try await spots.save(Spot(String(repeating: "x", count: 300_000), rating: number)) }
    await spots.core.executor.run {}
    #expect(spots.snapshot.records.pagedCommit == Revision(3))
  }

  @Test func oneCollectionOfAStoreStaysInTheStorage() async throws {
    let first = try await Store.open(disk)
    let photos = try await first.repository(RepositorySchema<Spot>("photos", residency: .onDisk(cache: .megabytes(1))))
    let spots = try await first.repository(RepositorySchema<Spot>("spots"))
    let (photo, spot) = (Spot("photo"), Spot("spot"))
    try await first.transaction {
      try $0.save(photo, in: photos)
      try $0.save(spot, in: spots)
    }
    try await first.close()
    let store = try await Store.open(disk)
    #expect(store.openReport.residency == .full)
    let again = try await store.repository(RepositorySchema<Spot>("photos", residency: .onDisk(cache: .megabytes(1))))
    let resident = try await store.repository(RepositorySchema<Spot>("spots"))
    #expect(again.snapshot.records.isPaged && !resident.snapshot.records.isPaged)
    #expect(try await again.loadAll() == [photo])
    #expect(try await resident.loadAll() == [spot])
    try await again.delete(photo.id)
    #expect(try await again.loadAll().isEmpty)
  }

  @Test func oneCollectionOfAStoreOnDiskIsInMemory() async throws {
    let spot = Spot("spot")
    try await reopened(with: [spot, Spot("other")]).close()
    let store = try await Store.open(disk, options: Self.options)
    let spots = try await store.repository(RepositorySchema<Spot>("spots", residency: .full))
    let reads = disk.calls(.read)
    #expect(try await spots.loadAll().count == 2)
    #expect(try await spots.find(by: spot.id) == spot)
    #expect(disk.calls(.read) == reads && !spots.snapshot.records.isPaged)
  }

  @Test func automaticChoosesByTheSizeOfTheValues() async throws {
    let values = (0..<100).map { Spot("spot \($0)") }
    try await reopened(with: values).close()
    for (limit, expected) in [(1_000, Residency.onDisk(cache: .megabytes(16))), (1_000_000, .full)] {
      let spots = try await open(.init("spots"), StoreOptions(residency: .automatic(limit: .bytes(limit))))
      #expect(spots.openReport.residency == expected)
      #expect(spots.snapshot.records.isPaged == (expected != .full))
      #expect(try await spots.count() == 100)
      try await spots.close()
    }
  }

  @Test func aBackendThatReadsEverythingIsRefusedOrOpenedInMemory() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.url.appending(path: "spots.log")
    func open(_ options: StoreOptions) async throws -> LocalRepository<Spot> {
      try await LocalRepository(backend: LogBackend(file: file), schema: .init("spots"), options: options)
    }
    #expect(await code { _ = try await open(Self.options) } == .unsupported)
    #expect(!FileManager.default.fileExists(atPath: file.path))
    let spots = try await open(StoreOptions(residency: .automatic(limit: .bytes(0))))
    #expect(spots.openReport.residency == .full)
    try await spots.close()
  }

  @Test func olderRecordsAreMigratedInBlocks() async throws {
    let spots = try await reopened(with: (0..<600).map { Spot("spot \($0)") })
    try await spots.close()
    let schema = RepositorySchema<Spot>("spots", version: 2, migrations: [.init(from: 1, .set("rating", 5))])
    let options = StoreOptions(
      checkpoint: .manual, residency: .onDisk(cache: .megabytes(1)), migration: .init(mode: .eager, backup: .declined))
    let migrated = try await open(schema, options)
    #expect(migrated.migrationProgress.phase == .finished && migrated.migrationProgress.rewritten == 600)
    #expect(try await migrated.count(Query().where(\.rating, .equal, 5)) == 600)
    try await migrated.close()
    #expect(try await open(schema, options).migrationProgress.phase == .notNeeded)
  }

  @Test func aCountReadsEachRecordOnce() async throws {
    let spots = try await reopened(with: (0..<2_000).map { Spot("spot \($0)") })
    #expect(try await spots.count() == 2_000)
    let reads = disk.calls(.read)
    #expect(try await spots.count() == 2_000)
    #expect(disk.calls(.read) == reads)
    try await spots.save(Spot("one more"))
    try await spots.checkpoint()
    let later = disk.calls(.read)
    #expect(try await spots.count() == 2_001)
    #expect(disk.calls(.read) == later)
  }
}

/// The cache of records keeps its bound, and the records that are used.
@Suite struct SlotCacheTests {
  private static func slot(_ key: Int, _ size: Int = 1_000) -> RecordSlot {
    RecordSlot(key: RecordKey("\(key)"), revision: Revision(1), schemaVersion: 1, value: Data(count: size))
  }

  @Test func theCacheHoldsAtMostItsLimit() {
    let cache = SlotCache(limit: 160_000)
    for key in 0..<10_000 { _ = cache.insertIfAbsent(Self.slot(key)) }
    let count = (0..<10_000).count { cache[RecordKey("\($0)")] != nil }
    #expect(count <= 160_000 / Self.slot(0).cost && count >= 32)
  }

  @Test func aRecordThatIsUsedOutlivesRecordsThatAreReadOnce() {
    let cache = SlotCache(limit: 160_000)
    let used = cache.insertIfAbsent(Self.slot(-1))
    for key in 0..<10_000 {
      #expect(cache[used.key] === used)
      _ = cache.insertIfAbsent(Self.slot(key))
    }
  }

  /// The next page of a query must not evict its own first records.
  @Test func aFullCacheKeepsTheNewestRecords() {
    let cache = SlotCache(limit: 1_600_000)
    for key in 0..<10_000 { _ = cache.insertIfAbsent(Self.slot(key)) }
    let page = 20_000..<20_100
    for key in page { _ = cache.insertIfAbsent(Self.slot(key)) }
    #expect(page.allSatisfy { cache[RecordKey("\($0)")] != nil })
  }

  @Test func aRecordThatIsTooLargeIsNotKept() {
    let cache = SlotCache(limit: 160_000)
    let large = Self.slot(0, 20_000)
    #expect(cache.insertIfAbsent(large) === large)
    #expect(cache[large.key] == nil)
  }

  @Test func theFirstOfTwoInsertionsStays() {
    let cache = SlotCache(limit: 160_000)
    let (first, second) = (Self.slot(0), Self.slot(0))
    #expect(cache.insertIfAbsent(first) === first && cache.insertIfAbsent(second) === first)
  }

  @Test func aCacheThatWasTakenOverIsEmptyAndStaysSo() {
    let old = SlotCache(limit: 160_000)
    let (kept, changed) = (Self.slot(0), Self.slot(1))
    for slot in [kept, changed] { _ = old.insertIfAbsent(slot) }
    let new = SlotCache(takingOver: old) { $0 == changed.key }
    #expect(new[kept.key] === kept && new[changed.key] == nil)
    _ = old.insertIfAbsent(kept)
    #expect(old[kept.key] == nil)
  }
}
