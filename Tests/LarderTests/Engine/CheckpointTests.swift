import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15))) struct CheckpointTests {
  @Test func aCheckpointHappensWhenTheBackendAsksForIt() async throws {
    let disk = try await BusyDisk<Spot>(options: StoreOptions(checkpoint: .init(idle: nil, bySize: true)))
    try await disk.items.save(Spot("small"))
    try await disk.items.flush()
    #expect(disk.backend.calls(.checkpoint) == 0)
    disk.backend.setWantsCheckpoint(true)
    try await disk.items.save(Spot("large"))
    try await disk.items.flush()  // behind the checkpoint on the executor
    #expect(disk.backend.calls(.checkpoint) == 1)
  }

  @Test func aManualPolicyNeverCheckpointsByItself() async throws {
    let disk = try await BusyDisk<Spot>(options: StoreOptions(checkpoint: .manual))
    disk.backend.setWantsCheckpoint(true)
    try await disk.items.save(Spot("large"))
    try await disk.items.flush()
    #expect(disk.backend.calls(.checkpoint) == 0)
    try await disk.items.checkpoint()
    #expect(disk.backend.calls(.checkpoint) == 1)
  }

  /// Deleting ever new keys without a pause leaves no more tombstones than the limit allows for.
  @Test(arguments: [TestBackend.memory, .sqlite]) func tombstonesAreForgottenWithoutAPause(_ backend: TestBackend) async throws {
    let place = try backend.factory.makePlace()
    defer { place.remove() }
    let options = StoreOptions(
      durability: .buffered, limits: .init(tombstones: 10), checkpoint: .init(idle: nil, bySize: true))
    let store = try await Store.open(try place.makeBackend(), options: options)
    let spots = try await store.repository(RepositorySchema<Register>("spots"))
    for round in 0..<6 {
      try await spots.save(contentsOf: (0..<400).map { Register(id: round * 400 + $0, value: 0) })
      try await spots.deleteAll()
    }
    #expect(await store.verify().tombstoneCount <= 1_021 + 400)
    try await store.close()
  }

  @Test func aCheckpointHappensWhenWritingHasPaused() async throws {
    let disk = try await BusyDisk<Spot>(options: StoreOptions(checkpoint: .init(idle: .zero, bySize: false)))
    disk.backend.hold(.checkpoint)
    try await disk.items.save(Spot("first"))
    await disk.backend.waitUntilHeld(.checkpoint)
    #expect(try await disk.items.count() == 1)  // reads do not wait for it
    disk.backend.step(.checkpoint)
    try await disk.items.save(Spot("second"))
    await disk.backend.waitUntilHeld(.checkpoint)
    disk.backend.release(.checkpoint)
    try await disk.items.close()
    #expect(disk.backend.calls(.checkpoint) == 2)
  }

  @Test func aFailedAutomaticCheckpointFailsNoWriteAndIsTold() async throws {
    let backend = FaultInjectingBackend(InMemoryBackend())
    let store = try await Store.open(backend, options: StoreOptions(checkpoint: .init(idle: nil, bySize: true)))
    let spots = try await store.repository(RepositorySchema<Spot>())
    backend.setWantsCheckpoint(true)
    backend.fail(.checkpoint, with: RepositoryError(.full))
    #expect(try await spots.save(Spot("first")) == Revision(1))
    #expect(await store.verify().problems.map(\.code) == [.full])
    #expect(try await spots.save(Spot("second")) == Revision(2))
    try await store.flush()
    #expect(backend.calls(.checkpoint) == 1)  // a full disk is not asked again after every write
    try await store.checkpoint()
    #expect(await store.verify().isSound)
    try await spots.save(Spot("third"))
    try await store.flush()
    #expect(backend.calls(.checkpoint) == 3)
    try await store.close()
  }

  @Test func anAutomaticCheckpointIsTriedAgainAThousandCommitsLater() async throws {
    let disk = try await BusyDisk<Measurement>(options: StoreOptions(checkpoint: .init(idle: nil, bySize: true)))
    disk.backend.setWantsCheckpoint(true)
    disk.backend.fail(.checkpoint, with: RepositoryError(.full))
    for number in 0...1_000 { try await disk.items.save(Measurement(id: number, value: 0)) }
    try await disk.items.flush()
    #expect(disk.backend.calls(.checkpoint) == 2)
  }

  @Test func anIdleCheckpointThatFailedIsTriedAgainThoughNobodyWrites() async throws {
    let disk = try await BusyDisk<Spot>(options: StoreOptions(checkpoint: .init(idle: .zero, bySize: false)))
    disk.backend.fail(.checkpoint, call: 1, with: RepositoryError(.full))
    disk.backend.fail(.checkpoint, call: 2, with: RepositoryError(.full))
    disk.backend.hold(.checkpoint)
    try await disk.items.save(Spot("lone"))
    for _ in 0..<2 {
      await disk.backend.waitUntilHeld(.checkpoint)
      disk.backend.step(.checkpoint)
    }
    await disk.backend.waitUntilHeld(.checkpoint)  // the third
    disk.backend.release(.checkpoint)
    try await disk.items.flush()
    #expect(disk.backend.calls(.checkpoint) == 3)
    #expect(!disk.items.core.checkpointer.isIdleTimerSet)
    try await disk.items.close()
  }

  @Test func thePauseGrowsWithEachFailureAndIsBounded() {
    let pauses = (0..<9).map { Checkpointer.pause(.seconds(5), afterFailures: $0) }
    #expect(pauses == [5, 10, 20, 40, 80, 160, 320, 320, 320])
    #expect(Checkpointer.pause(.zero, afterFailures: 1) > 0)  // a disk that is full is not asked again and again
  }

  @Test func aSyncThatFailsInAnAutomaticCheckpointPoisons() async throws {
    let disk = try await BusyDisk<Spot>(options: StoreOptions(checkpoint: .init(idle: nil, bySize: true)))
    disk.backend.setWantsCheckpoint(true)
    disk.backend.fail(.checkpoint, with: RepositoryError(.outcomeUnknown))
    try await disk.items.save(Spot("kept"))
    #expect(await code { try await disk.items.flush() } == .poisoned)
    #expect(try await disk.items.count() == 1)
  }

  @Test func whatIsWrittenBehindACheckpointIsLeftForTheTimer() async throws {
    let disk = try await BusyDisk<Spot>(options: StoreOptions(checkpoint: .init(idle: .seconds(3_600), bySize: false)))
    disk.backend.hold(.checkpoint)
    let checkpoint = Task { try await disk.items.checkpoint() }
    await disk.backend.waitUntilHeld(.checkpoint)
    let save = try await disk.enqueue { try await $0.save(Spot("behind")) }
    disk.backend.release(.checkpoint)
    _ = try await save.value
    try await checkpoint.value
    try await disk.items.flush()
    #expect(disk.items.core.checkpointer.isIdleTimerSet)
  }

  @Test func aPauseAsksTheBackendWhetherACheckpointIsWorthIt() async throws {
    let directory = try TemporaryDirectory()
    let options = StoreOptions(checkpoint: .init(idle: .seconds(3_600), bySize: false))
    let backend = JSONFileBackend(file: directory.file("spots.json"), fileSystem: POSIXFileSystem(), tuning: .init(smallFile: 1_024))
    let spots = try await LocalRepository<Spot>(backend: backend, options: options)
    let queue = spots.core
    try await spots.save(contentsOf: (0..<2_000).map { Spot("spot \($0)") })
    try await spots.checkpoint()
    let document = try Data(contentsOf: directory.file("spots.json"))
    try await spots.save(Spot("lone"))
    await queue.executor.run { queue.checkpointer.idleTimerFired(.zero, of: queue) }
    #expect(try Data(contentsOf: directory.file("spots.json")) == document)
    #expect(!queue.checkpointer.isIdleTimerSet)  // asked again after the next commit only
    try await spots.save(contentsOf: (0..<4_000).map { Spot("more \($0)") })
    try await spots.flush()
    #expect(queue.checkpointer.isIdleTimerSet)
    await queue.executor.run { queue.checkpointer.idleTimerFired(.zero, of: queue) }
    try await until { !queue.checkpointer.isRunning }
    #expect(try Data(contentsOf: directory.file("spots.json")) != document)
    try await spots.close()
  }

  @Test func savesGoOnBesideACheckpoint() async throws {
    let directory = try TemporaryDirectory()
    let options = StoreOptions(durability: .buffered, checkpoint: .init(idle: .seconds(3_600), bySize: false))
    let spots = try await LocalRepository<Measurement>(jsonFile: directory.file("spots.json"), options: options)
    let queue = spots.core
    try await spots.save(contentsOf: (0..<5_000).map { Measurement(id: $0, value: 0) })
    for round in 1...4 {
      let document = try Data(contentsOf: directory.file("spots.json"))
      try await spots.save(Measurement(id: round, value: 1))
      let isRunning = await queue.executor.run {
        queue.checkpointer.idleTimerFired(.zero, of: queue)
        return queue.checkpointer.isRunning
      }
      #expect(isRunning)
      for id in 0..<200 { try await spots.save(Measurement(id: id, value: Double(round))) }
      if round == 3 { try await spots.checkpoint() }
      try await until { !queue.checkpointer.isRunning }
      #expect(try Data(contentsOf: directory.file("spots.json")) != document)
      let left = try directory.copy(except: "spots.json-lock")
      let crashed = try await LocalRepository<Measurement>(jsonFile: left.file("spots.json"))
      #expect(try await crashed.loadAll().map(\.value).reduce(0, +) == Double(200 * round) && crashed.openReport.isClean)
      try await crashed.close()
    }
    await queue.executor.run { queue.checkpointer.idleTimerFired(.zero, of: queue) }
    try await spots.close()
    #expect(try directory.names == ["spots.json"])
    let reopened = try await LocalRepository<Measurement>(jsonFile: directory.file("spots.json"))
    #expect(try await reopened.count() == 5_000)
    try await reopened.close()
  }

  @Test func noTimerGoesOnAfterClose() async throws {
    let disk = try await BusyDisk<Spot>(options: StoreOptions(checkpoint: .init(idle: .seconds(3_600), bySize: false)))
    let queue = disk.items.core
    try await disk.items.save(Spot("first"))
    await queue.executor.run { queue.checkpointer.idleTimerFired(.seconds(3_600), of: queue) }
    #expect(queue.checkpointer.isIdleTimerSet)
    try await disk.items.close()
    await queue.executor.run { queue.checkpointer.idleTimerFired(.zero, of: queue) }
    #expect(!queue.checkpointer.isIdleTimerSet)
    #expect(disk.backend.calls(.checkpoint) == 0)
  }
}
