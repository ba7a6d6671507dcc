import Foundation
import LarderTesting
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15))) struct ChangesTests {
  private typealias Registers = LocalRepository<Register>

  private func repository() async throws -> Registers {
    try await Registers(backend: InMemoryBackend(), options: StoreOptions(checkpoint: .manual))
  }

  // MARK: What is told

  @Test func aReaderThatKeepsUpGetsASetForEachCommit() async throws {
    let registers = try await repository()
    var changes = registers.changes().makeAsyncIterator()
    try await registers.save(Register(id: 1, value: 10))
    let inserted = try #require(try await changes.next())
    #expect(Told(inserted) == Told(1, [.inserted(1, to: 10)]))
    #expect(inserted.changes.first?.origin == .thisProcess)
    #expect(inserted.changes.first?.id == 1)
    try await registers.save(Register(id: 1, value: 11))
    let updated = try #require(try await changes.next())
    #expect(Told(updated) == Told(2, [.updated(1, from: 10, to: 11)]))
    try await registers.delete(1)
    let deleted = try #require(try await changes.next())
    #expect(Told(deleted) == Told(3, [.deleted(1, from: 11)]))
    #expect(deleted.changes.first?.id == 1)
    try await registers.save(contentsOf: [Register(id: 2, value: 20), Register(id: 3, value: 30)])
    let batch = try #require(try await changes.next())
    #expect(Told(batch) == Told(4, [.inserted(2, to: 20), .inserted(3, to: 30)]))
  }

  @Test func nothingIsLostBetweenTheCallAndTheFirstNext() async throws {
    let registers = try await repository()
    let changes = registers.changes()
    try await registers.save(Register(id: 1, value: 1))
    var first = changes.makeAsyncIterator()
    try await registers.save(Register(id: 2, value: 2))
    var second = changes.makeAsyncIterator()
    try await registers.save(Register(id: 3, value: 3))
    let firstSets = try await [first.next(), first.next(), first.next()].compactMap { $0.map(Told.init) }
    #expect(firstSets.map(\.revision) == [1, 2, 3])
    let secondSet = try await second.next()
    #expect(secondSet.map(Told.init) == Told(3, [.inserted(3, to: 3)]), "a second iterator begins where it is made, with its own buffer")
  }

  @Test func onlyTheOwnCollectionIsTold() async throws {
    let store = try await Store.open(InMemoryBackend(), options: StoreOptions(checkpoint: .manual))
    let (ones, others) = try await (
      store.repository(RepositorySchema<Register>("ones")), store.repository(RepositorySchema<Register>("others"))
    )
    var changes = ones.changes().makeAsyncIterator()
    try await others.save(Register(id: 1, value: 1))
    try await store.transaction { transaction in
      try transaction.save(Register(id: 2, value: 2), in: ones)
      try transaction.save(Register(id: 3, value: 3), in: others)
    }
    let set = try await changes.next()
    #expect(set.map(Told.init) == Told(2, [.inserted(2, to: 2)]))
  }

  @Test func aCommitThatFailsIsNotTold() async throws {
    let disk = FaultInjectingBackend(InMemoryBackend())
    let registers = try await Registers(backend: disk, options: StoreOptions(checkpoint: .manual))
    var changes = registers.changes().makeAsyncIterator()
    try await registers.save(Register(id: 7, value: 0))
    disk.fail(.commit, with: RepositoryError(.full))
    let failure = await code { try await registers.delete(7) }
    #expect(failure == .full)
    try await registers.save(Register(id: 2, value: 2))
    let sets = try await [changes.next(), changes.next()].compactMap { $0.map(Told.init) }
    #expect(sets == [Told(1, [.inserted(7, to: 0)]), Told(2, [.inserted(2, to: 2)])])
    var resumed = registers.changes(since: Revision(1)).makeAsyncIterator()
    let since = try await resumed.next()
    #expect(since.map(Told.init) == Told(2, [.upserted(2, to: 2)]), "nor is the deletion told to who resumes")
  }

  @Test func aValueThatDoesNotDecodeDoesNotEndTheFeed() async throws {
    let backend = InMemoryBackend()
    let old = try await Registers(backend: backend, options: StoreOptions(checkpoint: .manual))
    try await old.save(contentsOf: [Register(id: 1, value: 1), Register(id: 2, value: 2)])
    try await old.close()
    let measurements = try await LocalRepository<Renamed>(backend: backend, options: StoreOptions(checkpoint: .manual))
    var resumed = measurements.changes(since: .zero).makeAsyncIterator()
    let found = try #require(try await resumed.next())
    #expect(found.changes.map(\.id) == [1, 2], "the key says the id")
    #expect(found.changes.allSatisfy { $0.kind == .upserted && $0.new == nil && $0.error?.code == .decodingFailed })
    try await measurements.save(Renamed(id: 1, number: 5))
    let next = try #require(try await resumed.next()?.changes.first)
    #expect(next.kind == .updated && next.old == nil && next.new == Renamed(id: 1, number: 5) && next.error == nil)
  }

  private struct Renamed: Codable, Identifiable, Hashable, Sendable {
    let id: Int
    let number: Int
  }

  // MARK: A slow reader

  @Test func changesOfOneRecordMergeWhileTheReaderIsSlow() async throws {
    let registers = try await repository()
    try await registers.save(contentsOf: [Register(id: 1, value: 0), Register(id: 2, value: 0)])
    var changes = registers.changes().makeAsyncIterator()
    for value in 1...500 { try await registers.save(Register(id: 1, value: value)) }
    try await registers.flush()  // behind the announcement of the last
    #expect(changes.feed.waitingCount == 1)
    try await registers.delete(2)
    let sets = try await [changes.next(), changes.next()].compactMap { $0.map(Told.init) }
    #expect(sets == [Told(501, [.updated(1, from: 0, to: 500)]), Told(502, [.deleted(2, from: 0)])])
  }

  @Test func whatCameAndWentIsNotToldButADeletionOfWhatWasSeenIs() async throws {
    let registers = try await repository()
    var changes = registers.changes().makeAsyncIterator()
    try await registers.save(Register(id: 1, value: 1))
    _ = try await changes.next()
    for id in 2...400 {
      try await registers.save(Register(id: id, value: 2))
      try await registers.delete(id)
    }
    try await registers.flush()  // behind the announcement of the last
    #expect(changes.feed.waitingCount == 0)
    try await registers.update(1) { $0.value = 9 }
    try await registers.delete(1)
    try await registers.save(Register(id: 3, value: 3))
    try await registers.delete(3)
    try await registers.save(Register(id: 3, value: 4))
    let sets = try await [changes.next(), changes.next()].compactMap { $0.map(Told.init) }
    #expect(sets == [Told(801, [.deleted(1, from: 1)]), Told(804, [.inserted(3, to: 4)])])
  }

  @Test func commitsStayApartUntilARecordChangesTwice() async throws {
    let registers = try await repository()
    var changes = registers.changes().makeAsyncIterator()
    for id in 1...4 { try await registers.save(Register(id: id, value: id)) }
    try await registers.save(Register(id: 2, value: 22))
    try await registers.save(Register(id: 5, value: 5))
    let sets = try await [changes.next(), changes.next(), changes.next()].compactMap { $0.map(Told.init) }
    #expect(
      sets == [
        Told(1, [.inserted(1, to: 1)]), Told(5, [.inserted(2, to: 22), .inserted(3, to: 3), .inserted(4, to: 4)]),
        Told(6, [.inserted(5, to: 5)]),
      ])
  }

  @Test func theOriginOfMergedChangesIsTheLastThatIsNoMigration() {
    func change(_ origin: ChangeOrigin) -> RecordChange {
      let slot = RecordSlot(key: RecordKey("a"), revision: Revision(1), schemaVersion: 1, value: .init())
      return RecordChange(collection: 0, key: slot.key, revision: slot.revision, origin: origin, old: slot, new: slot)
    }
    let cases: [([ChangeOrigin], ChangeOrigin)] = [
      ([.thisProcess, .anotherProcess], .anotherProcess), ([.anotherProcess, .thisProcess, .migration], .thisProcess),
      ([.migration, .migration], .migration), ([.migration, .anotherProcess], .anotherProcess),
    ]
    for (origins, merged) in cases {
      var buffer = ChangeBuffer()
      for origin in origins { buffer.add(change(origin)) }
      #expect(buffer.takeFirst()?.changes.map(\.origin) == [merged])
    }
  }

  private final class SecondCommit: ChangeFilter {
    func passes(_ change: RecordChange) -> Bool { change.revision.number == 2 }
  }

  @Test func aFilteredChangeStillTakesBackWhatIsBuffered() async throws {
    let feed = ChangeFeed()
    feed.begin(after: .zero)
    let slots = (1...3).map { RecordSlot(key: RecordKey("a"), revision: Revision($0), schemaVersion: 1, value: .init()) }
    func change(_ old: RecordSlot?, _ new: RecordSlot, key: String = "a") -> RecordChange {
      RecordChange(collection: 0, key: RecordKey(key), revision: new.revision, origin: .thisProcess, old: old, new: new)
    }
    let reader = Task { await feed.nextAll(passing: SecondCommit()) }
    try await until { feed.isAwaited }
    feed.receive([change(nil, slots[0])], commit: Revision(1))
    #expect(feed.isAwaited && feed.waitingCount == 0, "it does not matter to who waits")
    feed.receive([change(slots[0], slots[1]), change(slots[1], slots[2]), change(nil, slots[2], key: "b")], commit: Revision(3))
    let taken = await reader.value
    #expect(taken?.map(\.revision.number) == [3], "the newest of the record that mattered, nothing of the other")
    feed.receive([change(nil, slots[2], key: "c")], commit: Revision(3))
    #expect(feed.waitingCount == 1, "until the reader waits again everything matters")
  }

  @Test func commitsOfAnotherProcessThatAreReadTogetherAreOneSet() async throws {
    let feed = ChangeFeed()
    feed.begin(after: Revision(1))
    func change(_ key: String, _ revision: UInt64, _ origin: ChangeOrigin) -> RecordChange {
      let slot = RecordSlot(key: RecordKey(key), revision: Revision(revision), schemaVersion: 1, value: .init())
      return RecordChange(collection: 0, key: slot.key, revision: slot.revision, origin: origin, old: nil, new: slot)
    }
    feed.receive([change("a", 2, .thisProcess), change("b", 3, .thisProcess)], commit: Revision(3))
    feed.receive([change("c", 4, .anotherProcess), change("d", 6, .anotherProcess)], commit: Revision(7))
    let sets = await [feed.next(), feed.next(), feed.next()]
    #expect(sets.map { $0?.revision.number } == [2, 3, 7], "what another process made in between is not known commit by commit")
    #expect(sets.map { $0?.changes.count } == [1, 1, 2])
  }

  // MARK: The end

  @Test func closeDeliversWhatIsBufferedAndEnds() async throws {
    let registers = try await repository()
    var changes = registers.changes().makeAsyncIterator()
    let waiting = registers.changes()
    let reader = Task {
      var count = 0
      for try await _ in waiting { count += 1 }
      return count
    }
    try await registers.save(Register(id: 1, value: 1))
    try await registers.close()
    let sets = try await [changes.next(), changes.next(), changes.next()]
    #expect(sets.map { $0?.revision.number } == [1, nil, nil])
    let count = try await reader.value
    #expect(count == 1)
    var late = registers.changes(since: .zero).makeAsyncIterator()
    let last = try await [late.next(), late.next()]
    #expect(last.map { $0?.revision.number } == [1, nil])
    var live = registers.changes().makeAsyncIterator()
    let nothing = try await live.next()
    #expect(nothing == nil)
  }

  @Test func aCancelledReaderEndsAndLosesNothing() async throws {
    let registers = try await repository()
    let changes = registers.changes()
    let feed = Slot<ChangeFeed>()
    let reader = Task {
      var iterator = changes.makeAsyncIterator()
      feed.set(iterator.feed)
      return try await iterator.next()
    }
    try await until { feed.value?.isAwaited == true }
    reader.cancel()
    let set = try await reader.value
    #expect(set == nil)
    #expect(feed.value?.isAwaited == false)
    try await registers.save(Register(id: 1, value: 1))
    try await registers.flush()  // behind the announcement
    #expect(feed.value?.waitingCount == 1, "what comes later is still there")
    let early = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      var iterator = registers.changes(since: .zero).makeAsyncIterator()
      return try await iterator.next()
    }
    let none = try await early.value
    #expect(none == nil)
  }

  @Test func aStoreThatIsDroppedEndsItsReaders() async throws {
    let feed = Slot<ChangeFeed>()
    var registers: Registers? = try await repository()
    let changes = try #require(registers?.changes())
    let reader = Task {
      var iterator = changes.makeAsyncIterator()
      feed.set(iterator.feed)
      return try await iterator.next()
    }
    try await until { feed.value?.isAwaited == true }
    registers = nil
    let end = try await reader.value
    #expect(end == nil)
    var late = changes.makeAsyncIterator()
    let nothing = try await late.next()
    #expect(nothing == nil)
  }

  @Test func aReaderThatGoesAwayIsForgotten() async throws {
    let registers = try await repository()
    weak var feed: ChangeFeed?
    do {
      let iterator = registers.changes().makeAsyncIterator()
      feed = iterator.feed
      #expect(registers.core.hub.isObserved(registers.collection))
      _ = consume iterator
    }
    #expect(feed == nil)
    #expect(!registers.core.hub.isObserved(registers.collection))
    let unread = registers.changes()
    #expect(registers.core.hub.isObserved(registers.collection))
    _ = consume unread
    #expect(!registers.core.hub.isObserved(registers.collection))
  }
}
