import Foundation
import LarderTesting
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15))) struct CommitQueueTests {
  private struct Stop: Error {}

  // MARK: Group commit

  @Test func writersThatArriveDuringACommitShareTheNext() async throws {
    let disk = try await BusyDisk<Spot>()
    let first = await disk.occupy { try await $0.save(Spot("first")) }
    var waiting: [Task<Revision, any Error>] = []
    for number in 0..<10 { waiting.append(try await disk.enqueue { try await $0.save(Spot("\(number)")) }) }
    disk.backend.release(.commit)
    try await first.value
    for (number, task) in waiting.enumerated() { #expect(try await task.value == Revision(UInt64(number) + 2)) }
    #expect(disk.backend.calls(.commit) == 2)
    #expect(disk.backend.batches.map(\.commits) == [1...1, 2...11])
    #expect(disk.backend.batches.last?.records.map(\.revision.number) == Array(2...11))
    #expect(try await disk.items.count() == 11)
  }

  @Test func aWriteReturnsOnlyAfterItsOwnCommit() async throws {
    let disk = try await BusyDisk<Spot>()
    let returned = Flag()
    let first = await disk.occupy { try await $0.save(Spot("first")) }
    let second = try await disk.enqueue { spots in
      try await spots.save(Spot("second"))
      returned.set()
    }
    disk.backend.step(.commit)
    try await first.value
    await disk.backend.waitUntilHeld(.commit)
    #expect(!returned.isSet)
    #expect(try await disk.items.count() == 1)
    disk.backend.release(.commit)
    try await second.value
    #expect(returned.isSet)
  }

  @Test func aBatchIsAsDurableAsItsMostDurableWrite() async throws {
    let disk = try await BusyDisk<Spot>(options: StoreOptions(durability: .buffered, checkpoint: .manual))
    let first = await disk.occupy { try await $0.save(Spot("by default")) }
    let second = try await disk.enqueue { try await $0.save(Spot("buffered"), durability: .buffered) }
    let third = try await disk.enqueue { try await $0.save(Spot("durable"), durability: .durable) }
    let fourth = try await disk.enqueue { try await $0.save(Spot("ordered"), durability: .ordered) }
    disk.backend.release(.commit)
    try await first.value
    _ = try await (second.value, third.value, fourth.value)
    #expect(disk.backend.batches.map(\.durability) == [.buffered, .durable])
  }

  @Test func aWriteThatChangesNothingCostsNoCommit() async throws {
    let disk = try await BusyDisk<Spot>()
    #expect(try await disk.items.delete(UUID()) == false)
    #expect(try await disk.items.save(contentsOf: []) == .zero)
    try await disk.items.transaction { _ in }
    #expect(disk.backend.calls(.commit) == 0)
  }

  // MARK: Failures

  @Test func anErrorOfTheDiskFailsEveryWriteOfItsBatchAndChangesNothing() async throws {
    let disk = try await BusyDisk<Spot>()
    let kept = Spot("kept")
    let first = await disk.occupy { try await $0.save(kept) }
    let save = try await disk.enqueue { try await $0.save(Spot("lost", id: kept.id)) }
    let insert = try await disk.enqueue { try await $0.insert(Spot("lost too")) }
    let deletion = try await disk.enqueue { try await $0.delete(kept.id) }
    disk.backend.fail(.commit, call: 2, with: RepositoryError(.full))
    disk.backend.release(.commit)
    try await first.value
    #expect(await code(of: save) == .full)
    #expect(await code(of: insert) == .full)
    #expect(await code(of: deletion) == .full)
    #expect(try await disk.items.loadAll() == [kept])
    #expect(disk.items.snapshot.revision == Revision(1))
    #expect(try await disk.items.save(Spot("next")) == Revision(2))
  }

  @Test func whatAStagedWriteMadeFailSharesItsFate() async throws {
    for fails in [true, false] {
      let disk = try await BusyDisk<Spot>()
      let spot = Spot("contended")
      let first = await disk.occupy { try await $0.save(Spot("first")) }
      let insert = try await disk.enqueue { try await $0.insert(spot) }
      let again = try await disk.enqueue { try await $0.insert(spot) }
      let found = try await disk.enqueue { spots in try await spots.transaction { try $0.find(by: spot.id, in: spots) } }
      if fails { disk.backend.fail(.commit, call: 2, with: RepositoryError(.inputOutput)) }
      disk.backend.release(.commit)
      try await first.value
      #expect(await code(of: insert) == (fails ? .inputOutput : nil))
      #expect(await code(of: again) == (fails ? .inputOutput : .alreadyExists))
      #expect(await code(of: found) == (fails ? .inputOutput : nil))
      #expect(try await disk.items.find(by: spot.id) == (fails ? nil : spot))
    }
  }

  @Test func whatFailedAgainstTheCommittedStateKeepsItsOwnError() async throws {
    let disk = try await BusyDisk<Spot>()
    let spot = Spot("there")
    let first = await disk.occupy { try await $0.save(spot) }
    let insert = try await disk.enqueue { try await $0.insert(spot) }
    let save = try await disk.enqueue { try await $0.save(Spot("lost")) }
    disk.backend.fail(.commit, call: 2, with: RepositoryError(.inputOutput))
    disk.backend.release(.commit)
    try await first.value
    #expect(await code(of: insert) == .alreadyExists)
    #expect(await code(of: save) == .inputOutput)
  }

  @Test func aWriteThatCannotBeStagedFailsAlone() async throws {
    let disk = try await BusyDisk<Measurement>()
    let first = await disk.occupy { try await $0.save(Measurement(id: 1, value: 1)) }
    let before = try await disk.enqueue { try await $0.save(Measurement(id: 2, value: 2)) }
    let wrong = try await disk.enqueue { items in
      try await items.transaction { transaction in
        try transaction.save(Measurement(id: 3, value: 3), in: items)
        try transaction.delete(2, in: items)
        try transaction.save(Measurement(id: 4, value: .nan), in: items)
      }
    }
    let stopped = try await disk.enqueue { items in
      try await items.update(2) { item in
        item.value = 9
        throw Stop()
      }
    }
    let after = try await disk.enqueue { try await $0.save(Measurement(id: 5, value: 5)) }
    let alone = await code { try await disk.items.save(Measurement(id: 6, value: .infinity)) }
    #expect(alone == .encodingFailed)
    disk.backend.release(.commit)
    try await first.value
    #expect(try await before.value == Revision(2))
    #expect(await code(of: wrong) == .encodingFailed)
    await #expect(throws: Stop.self) { try await stopped.value }
    #expect(try await after.value == Revision(3))
    #expect(try await disk.items.loadAll().map(\.value) == [1, 2, 5])
    #expect(disk.backend.calls(.commit) == 2)
  }

  @Test(arguments: [FaultInjectingBackend.Moment.before, .after])
  func anUnknownOutcomePoisonsUntilReopening(_ moment: FaultInjectingBackend.Moment) async throws {
    let memory = InMemoryBackend()
    let backend = FaultInjectingBackend(memory)
    let spots = try await LocalRepository<Spot>(backend: backend, options: StoreOptions(checkpoint: .manual))
    let (kept, unknown) = (Spot("kept"), Spot("unknown"))
    try await spots.save(kept)
    backend.fail(.commit, with: RepositoryError(.outcomeUnknown), moment)
    #expect(await code { try await spots.save(unknown) } == .outcomeUnknown)
    #expect(await code { try await spots.save(Spot("later")) } == .poisoned)
    #expect(await code { try await spots.delete(kept.id) } == .poisoned)
    #expect(await code { try await spots.flush() } == .poisoned)
    #expect(await code { try await spots.checkpoint() } == .poisoned)
    #expect(backend.calls(.commit) == 2)
    #expect(try await spots.loadAll() == [kept])
    #expect(try await spots.find(by: unknown.id) == nil)
    try await spots.close()
    let reopened = try await LocalRepository<Spot>(backend: memory)
    #expect(Set(try await reopened.loadAll()) == (moment == .after ? [kept, unknown] : [kept]))
    try await reopened.save(Spot("again"))
  }

  @Test func writesThatWaitWhileTheStoreIsPoisonedAreRefused() async throws {
    let disk = try await BusyDisk<Spot>()
    let first = await disk.occupy { try await $0.save(Spot("first")) }
    let second = try await disk.enqueue { try await $0.save(Spot("second")) }
    disk.backend.fail(.commit, with: RepositoryError(.outcomeUnknown))
    disk.backend.release(.commit)
    #expect(await code(of: first) == .outcomeUnknown)
    #expect(await code(of: second) == .poisoned)
    #expect(disk.backend.batches.isEmpty)
  }

  @Test func aFailedFlushPoisonsAndAFailedCheckpointDoesNot() async throws {
    let disk = try await BusyDisk<Spot>()
    disk.backend.fail(.checkpoint, with: RepositoryError(.full))
    #expect(await code { try await disk.items.checkpoint() } == .full)
    try await disk.items.save(Spot("still writable"))
    disk.backend.fail(.flush, with: RepositoryError(.outcomeUnknown))
    #expect(await code { try await disk.items.flush() } == .outcomeUnknown)
    #expect(await code { try await disk.items.save(Spot("refused")) } == .poisoned)
  }

  // MARK: Visibility

  @Test func readersDuringACommitSeeTheStateBefore() async throws {
    let disk = try await BusyDisk<Spot>()
    let spot = Spot("old", rating: 1)
    try await disk.items.save(spot)
    let change = await disk.occupy { spots in
      try await spots.transaction { transaction in
        try transaction.update(spot.id, in: spots) { $0.rating = 2 }
        try transaction.save(Spot("new"), in: spots)
      }
    }
    #expect(try await disk.items.find(by: spot.id)?.rating == 1)
    #expect(try await disk.items.loadAll() == [spot])
    #expect(disk.items.snapshot.revision == Revision(1))
    #expect(disk.items.revision(of: spot.id) == Revision(1))
    disk.backend.release(.commit)
    try await change.value
    #expect(try await disk.items.find(by: spot.id)?.rating == 2)
    #expect(try await disk.items.count() == 2)
  }

  @Test func aRepositoryMadeDuringACommitIsNotLost() async throws {
    let backend = FaultInjectingBackend(InMemoryBackend())
    let store = try await Store.open(backend)
    let spots = try await store.repository(RepositorySchema<Spot>("spots"))
    backend.hold(.commit)
    let task = Task { try await spots.save(Spot("first")) }
    await backend.waitUntilHeld(.commit)
    let numbers = try await store.repository(RepositorySchema<Measurement>("numbers"))
    backend.release(.commit)
    _ = try await task.value
    try await numbers.save(Measurement(id: 1, value: 1))
    #expect(try await numbers.count() == 1)
    #expect(try await spots.count() == 1)
  }

  // MARK: Cancellation

  @Test func cancellingAWriteThatWaitsEndsItAtOnce() async throws {
    let disk = try await BusyDisk<Spot>()
    let spot = Spot("cancelled")
    let first = await disk.occupy { try await $0.save(Spot("first")) }
    let second = try await disk.enqueue { try await $0.save(spot) }
    let third = try await disk.enqueue { try await $0.save(Spot("third")) }
    second.cancel()
    #expect(await code(of: second) == .cancelled)  // while the disk is still busy
    #expect(disk.backend.batches.isEmpty)
    disk.backend.release(.commit)
    try await first.value
    #expect(try await third.value == Revision(3 - 1))
    #expect(try await disk.items.find(by: spot.id) == nil)
    #expect(disk.backend.batches.flatMap(\.records).count == 2)
  }

  @Test func cancellingAfterTheCommitPointIsTooLate() async throws {
    let disk = try await BusyDisk<Spot>()
    let spot = Spot("saved")
    let first = await disk.occupy { try await $0.save(spot) }
    first.cancel()
    disk.backend.release(.commit)
    try await first.value
    #expect(try await disk.items.find(by: spot.id) == spot)
  }

  @Test func aTaskThatIsCancelledAlreadyWritesNothing() async throws {
    let disk = try await BusyDisk<Spot>()
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await disk.items.save(Spot("never"))
    }
    #expect(await code(of: task) == .cancelled)
    #expect(disk.backend.calls(.commit) == 0)
    #expect(try await disk.items.count() == 0)
  }

  // MARK: Ends

  @Test func closeCommitsWhatIsQueued() async throws {
    let disk = try await BusyDisk<Spot>()
    let first = await disk.occupy { try await $0.save(Spot("first")) }
    let second = try await disk.enqueue { try await $0.save(Spot("second")) }
    let close = Task { try await disk.items.close() }
    disk.backend.release(.commit)
    try await first.value
    _ = try await second.value
    try await close.value
    #expect(disk.backend.batches.flatMap(\.records).count == 2)
    #expect(disk.backend.calls(.close) == 1)
    #expect(await code { try await disk.items.save(Spot("late")) } == .closed)
  }

  @Test func aFailedCloseIsToldAndTheStoreIsClosed() async throws {
    let disk = try await BusyDisk<Spot>()
    try await disk.items.save(Spot("kept"))
    disk.backend.fail(.close, with: RepositoryError(.full))
    #expect(await code { try await disk.items.close() } == .full)
    #expect(await code { _ = try await disk.items.loadAll() } == .closed)
    #expect(await code { try await disk.items.close() } == nil)
    #expect(disk.backend.calls(.close) == 1)
  }

  @Test func aStoreOpenedReadOnlyRefusesWrites() async throws {
    let directory = try TemporaryDirectory()
    let backend = FaultInjectingBackend(LogBackend(file: directory.file("store.log"), defect: .ignoresAccess))
    let spots = try await LocalRepository<Spot>(backend: backend, options: StoreOptions(access: .readOnly))
    #expect(await code { try await spots.save(Spot("refused")) } == .unsupported)
    #expect(backend.calls(.commit) == 0)
    try await spots.close()
  }
}
