import Foundation
import LarderSQLite
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// A store that gives up its locks for a while.
///
/// Another store of this process stands for another process.
@Suite(.timeLimit(.minutes(15))) struct SuspendingTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func open(
    _ backend: TestBackend, _ options: StoreOptions = .init(), version: Int = 1
  ) async throws(RepositoryError) -> LocalRepository<Measurement> {
    try await LocalRepository(
      backend: backend.backend(directory.file("store")),
      schema: RepositorySchema("measurements", version: version, migrations: version > 1 ? [.init(from: 1) { _ in }] : []), options: options
    )
  }

  /// Waits until the system lists a lock: a list that is read while others change it may lack some.
  private func untilLocked() async throws { try await until { (try? directory.locks().isEmpty) == false } }

  // MARK: Suspended

  @Test(
    .enabled(if: FileManager.default.fileExists(atPath: "/proc/locks"), "the system lists no locks"),
    arguments: [TestBackend.json, .sqlite])
  func aSuspendedStoreHoldsNoLock(_ backend: TestBackend) async throws {
    let items = try await open(backend)
    for number in 0..<20 { try await items.save(Measurement(id: number, value: 1)) }
    try await untilLocked()
    await items.suspend()
    #expect(try directory.locks() == [])
    try await items.resume()
    try await untilLocked()
    try await items.close()
  }

  @Test(arguments: TestBackend.allCases)
  func readsGoOnAndWritesWait(_ backend: TestBackend) async throws {
    let items = try await open(backend)
    try await items.save(Measurement(id: 1, value: 1))
    var results = items.results(of: Query()).makeAsyncIterator()
    #expect(try await results.next()?.count == 1)
    await items.suspend()
    await items.suspend()
    #expect(try await items.find(by: 1)?.value == 1)
    #expect(items.snapshot.count == 1)
    let saves = Task {
      try await items.save(Measurement(id: 2, value: 1))
      try await items.update(2) { $0.value += 1 }
    }
    let cancelled = Task { try await items.save(Measurement(id: 9, value: 1)) }
    try await until { items.core.waitingWriteCount == 2 }
    cancelled.cancel()
    #expect(await code(of: cancelled) == .cancelled)
    #expect(items.snapshot.count == 1)
    try await items.resume()
    try await items.resume()
    _ = try await saves.value
    #expect(try await items.find(by: 2)?.value == 2)
    #expect(try await items.find(by: 9) == nil)
    #expect(try await results.next()?.isEmpty == false)
    try await items.close()
  }

  @Test(arguments: TestBackend.allCases)
  func whatNeedsTheFilesIsRefused(_ backend: TestBackend) async throws {
    let items = try await open(backend, .init(suspensionTimeout: .zero))
    try await items.save(Measurement(id: 1, value: 1))
    await items.suspend()
    #expect(await code { try await items.save(Measurement(id: 2, value: 1)) } == .suspended)
    #expect(await code { _ = try await items.transaction { try $0.save(Measurement(id: 2, value: 1), in: items) } } == .suspended)
    #expect(await code { try await items.flush() } == .suspended)
    #expect(await code { try await items.checkpoint() } == .suspended)
    #expect(await code { try await items.refresh() } == .suspended)
    #expect(await items.core.verify().problems.map(\.code) == [.suspended])
    try await items.resume()
    #expect(try await items.find(by: 2) == nil)
    try await items.save(Measurement(id: 2, value: 1))
    #expect(await items.core.verify().problems.isEmpty)
    try await items.close()
    #expect(await code { try await items.resume() } == .closed)
  }

  @Test func aWriteGivesUpAtItsDeadline() async throws {
    let items = try await open(.json, .init(suspensionTimeout: .milliseconds(20)))
    await items.suspend()
    #expect(await code { try await items.save(Measurement(id: 1, value: 1)) } == .suspended)
    #expect(items.core.waitingWriteCount == 0)
    try await items.resume()
    try await items.save(Measurement(id: 1, value: 2))
    try await items.close()
  }

  @Test(arguments: TestBackend.onDisk)
  func closingOrDroppingASuspendedStoreLosesNothing(_ backend: TestBackend) async throws {
    for closes in [true, false] {
      let items = try await open(backend)
      try await items.save(Measurement(id: closes ? 1 : 2, value: 1), durability: .buffered)
      await items.suspend()
      guard closes else { continue }
      let save = Task { try await items.save(Measurement(id: 9, value: 1)) }
      try await until { items.core.waitingWriteCount == 1 }
      try await items.close()
      #expect(await code(of: save) == .suspended)
    }
    let items = try await open(backend)
    #expect(try await items.loadAll().map(\.id) == [1, 2])
    try await items.close()
  }

  // MARK: Resumed

  @Test(arguments: TestBackend.onDisk)
  func resumingShowsWhatOthersDid(_ backend: TestBackend) async throws {
    let items = try await open(backend)
    try await items.save(contentsOf: (1...5).map { Measurement(id: $0, value: 0) })
    var changes = items.changes(since: items.snapshot.revision).makeAsyncIterator()
    await items.suspend()
    let others = try await open(backend)
    try await others.save(Measurement(id: 1, value: 1))
    try await others.delete(2)
    try await others.save(Measurement(id: 6, value: 1))
    try await others.delete(6)
    try await others.delete(3)
    try await others.save(Measurement(id: 3, value: 3))
    #expect(await code { try await items.resume() } == .alreadyOpen)
    #expect(try await items.find(by: 1)?.value == 0)
    try await others.close()
    try await items.resume()
    #expect(try await items.loadAll().map(\.value) == [1, 3, 0, 0])
    let told = try #require(try await changes.next())
    #expect(Set(told.changes.compactMap { $0.new?.id }) == [1, 3])
    #expect(told.changes.contains { $0.kind == .deleted && $0.id == 2 })
    #expect(told.changes.allSatisfy { $0.origin == .anotherProcess })
    try await items.update(1) { $0.value += 1 }
    try await items.close()
    let again = try await open(backend)
    #expect(try await again.find(by: 1)?.value == 2)
    #expect(try await again.count() == 4)
    try await again.close()
  }

  @Test(arguments: TestBackend.onDisk)
  func deletionsWithoutATombstoneAreFound(_ backend: TestBackend) async throws {
    let options = StoreOptions(limits: .init(tombstones: 0))
    let items = try await open(backend, options)
    try await items.save(contentsOf: (1...50).map { Measurement(id: $0, value: 0) })
    await items.suspend()
    let others = try await open(backend, options)
    for number in 1...40 { try await others.delete(number) }
    try await others.checkpoint()
    try await others.close()
    try await items.resume()
    #expect(try await items.loadAll().map(\.id) == Array(41...50))
    try await items.close()
  }

  @Test(arguments: [TestBackend.json, .sqlite])
  func whatReplacedTheStoreIsRefused(_ backend: TestBackend) async throws {
    let items = try await open(backend)
    try await items.save(Measurement(id: 1, value: 1))
    try await items.checkpoint()
    await items.suspend()
    let older = try directory.copy(except: "store-lock").contents()
    try await items.resume()
    try await items.save(Measurement(id: 1, value: 2))
    await items.suspend()
    let newer = try directory.copy(except: "store-lock").contents()

    try directory.replace(with: [:])
    #expect(await code { try await items.resume() } == .dataMissing)
    try directory.replace(with: older)
    #expect(await code { try await items.resume() } == .dataMissing)
    // With as many commits as it has lost, and more.
    let others = try await open(backend)
    for value in 3...5 { try await others.save(Measurement(id: 2, value: Double(value))) }
    try await others.close()
    #expect(await code { try await items.resume() } == .dataMissing)
    #expect(try items.snapshot.find(by: 1)?.value == 2)
    try directory.replace(with: [:])
    let stranger = try await open(backend)
    for number in 1...9 { try await stranger.save(Measurement(id: number, value: 3)) }
    try await stranger.close()
    #expect(await code { try await items.resume() } == .dataMissing)
    #expect(try items.snapshot.find(by: 1)?.value == 2)
    if backend == .json {
      try directory.replace(with: newer)
      try await items.resume()
      try await items.save(Measurement(id: 1, value: 4))
    }
    try await items.close()
  }

  // MARK: Going on

  @Test func aMigrationGoesOn() async throws {
    let old = try await open(.sqlite)
    try await old.save(contentsOf: (0..<2_000).map { Measurement(id: $0, value: 1) })
    try await old.close()
    let items = try await open(.sqlite, .init(suspensionTimeout: .zero, migration: .init(backup: .declined, batchSize: 10)), version: 2)
    for _ in 0..<5 {
      await items.suspend()
      try await items.resume()
    }
    try await items.finishMigration()
    #expect(items.migrationProgress.phase == .finished)
    try await items.close()
  }

  /// A migration may receive the error of a suspension only after the store was resumed.
  @Test func aMigrationThatFailsAfterTheStoreWasResumedGoesOn() async throws {
    let old = try await open(.json)
    try await old.save(contentsOf: (0..<100).map { Measurement(id: $0, value: 1) })
    try await old.close()
    let disk = FaultInjectingBackend(TestBackend.json.backend(directory.file("store")))
    disk.hold(.commit)
    let phases = Mutex<[MigrationProgress.Phase]>([])
    let items = try await LocalRepository<Measurement>(
      backend: disk, schema: RepositorySchema("measurements", version: 2, migrations: [.init(from: 1) { _ in }]),
      options: .init(
        migration: .init(backup: .declined, batchSize: 10, progress: { progress in phases.withLock { $0.append(progress.phase) } })))
    await disk.waitUntilHeld(.commit)
    let waits = (0..<100).map { _ in Task { await code { try await items.finishMigration() } } }
    disk.fail(.commit, with: .storeSuspended)
    disk.release(.commit)
    for wait in waits { #expect(await wait.value == nil) }
    #expect(phases.withLock { $0 } == Array(repeating: .running, count: 9) + [.finished])
    try await items.close()
  }

  /// What came first is committed first, also when another write came between.
  @Test func heldWritesKeepTheirOrder() async throws {
    let items = try await open(.json)
    for round in 0..<50 {
      await items.suspend()
      let first = Task { try await items.save(Measurement(id: 1, value: Double(2 * round))) }
      try await until { items.core.waitingWriteCount == 1 }
      async let resumed: Void = items.resume()
      try await until { !items.core.state.isSuspended }
      try await items.save(Measurement(id: 1, value: Double(2 * round + 1)))
      _ = try await (first.value, resumed)
      #expect(try await items.find(by: 1)?.value == Double(2 * round + 1))
    }
    try await items.close()
  }

  @Test func aStoreWhoseSyncHasFailedStaysSuspended() async throws {
    let disk = FaultInjectingBackend(TestBackend.json.backend(directory.file("store")))
    let items = try await LocalRepository<Measurement>(backend: disk)
    disk.fail(.commit, with: RepositoryError(.outcomeUnknown))
    #expect(await code { try await items.save(Measurement(id: 1, value: 1)) } == .outcomeUnknown)
    await items.suspend()
    #expect(try directory.locks() == [])
    #expect(await code { try await items.save(Measurement(id: 1, value: 1)) } == .poisoned)
    #expect(await code { try await items.resume() } == .poisoned)
    #expect(await items.core.verify().problems.map(\.code) == [.poisoned])
    #expect(try await items.count() == 0)
    try await items.close()
  }

  @Test func aCheckpointThatRunsIsGivenUp() async throws {
    let items = try await open(.json, .init(checkpoint: .manual))
    try await items.save(contentsOf: (0..<3_000).map { Measurement(id: $0, value: 1) })
    for round in 0..<10 {
      try await items.save(Measurement(id: round, value: 2))
      async let checkpoint = code { try await items.checkpoint() }
      await items.suspend()
      #expect(try directory.locks() == [])
      try await items.resume()
      _ = await checkpoint
    }
    try await items.close()
    let again = try await open(.json)
    #expect(try await again.count() == 3_000)
    #expect(try await again.count(Query().filter { $0.value == 2 }) == 10)
    try await again.close()
  }

  @Test(arguments: [(TestBackend.json, StoreOptions.Access.exclusive), (.log, .exclusive), (.sqlite, .exclusive), (.sqlite, .shared)])
  func storesThatTakeTurnsLoseNoUpdate(_ backend: TestBackend, _ access: StoreOptions.Access) async throws {
    let rounds = Torture.count(100, full: 10_000)
    for seed in Seeds.list(1, for: "taking turns") {
      var random = SeededGenerator(seed)
      let options = StoreOptions(access: access, limits: .init(tombstones: 3), checkpoint: .manual, pollInterval: nil)
      let stores = [try await open(backend, options)]
      try await stores[0].save(Measurement(id: 0, value: 0))
      await stores[0].suspend()
      let all = stores + [try await open(backend, options)]
      await all[1].suspend()
      var model: [Int: Double] = [0: 0]
      for round in 0..<rounds {
        let items = all[random.int(0..<2)]
        try await items.resume()
        try await items.update(0) { $0.value += 1 }
        model[0, default: 0] += 1
        let id = random.int(1..<9)
        if random.chance(40) {
          #expect(try await items.delete(id) == (model.removeValue(forKey: id) != nil), "seed \(seed), round \(round)")
        } else {
          model[id] = Double(round)
          try await items.save(Measurement(id: id, value: Double(round)), durability: random.chance(30) ? .buffered : .durable)
        }
        if random.chance(10) { try await items.checkpoint() }
        let found = Dictionary(uniqueKeysWithValues: try await items.loadAll().map { ($0.id, $0.value) })
        try #require(found == model, "seed \(seed), round \(round)")
        await items.suspend()
      }
      for items in all {
        try await items.resume()
        #expect(try await items.find(by: 0)?.value == Double(rounds))
        #expect(await items.core.verify().problems.isEmpty)
        try await items.close()
      }
    }
  }
}
