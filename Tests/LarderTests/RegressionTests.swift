import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// One test for each defect that was found in other packages of this kind, named after the defect.
@Suite(.timeLimit(.minutes(15))) struct RegressionTests {
  private struct Stop: Error {}
  private struct Named: Codable, Identifiable, Hashable, Sendable {
    let id: String
    var number: Int
  }

  /// A place for a store, opened again and again.
  private final class Shelf<Item: Codable & Identifiable & Sendable> where Item.ID: Hashable & Codable & Sendable {
    let place: BackendPlace
    init(_ backend: TestBackend) throws { place = try backend.factory.makePlace() }
    deinit { place.remove() }

    func open(_ options: StoreOptions = .init(), version: Int = 1) async throws -> LocalRepository<Item> {
      try await LocalRepository(backend: try place.makeBackend(), schema: RepositorySchema(version: version), options: options)
    }

    /// The names and contents of the files beside the main one, and its own.
    func files() throws -> [String: Data] {
      guard let directory = place.file?.deletingLastPathComponent() else { return [:] }
      let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
      return try Dictionary(names.map { ($0, try Data(contentsOf: directory.appending(path: $0))) }) { $1 }
    }

    func openFaulty(_ options: StoreOptions = .init()) async throws -> (FaultInjectingBackend, LocalRepository<Item>) {
      let backend = FaultInjectingBackend(try place.makeBackend())
      return (backend, try await LocalRepository(backend: backend, options: options))
    }
  }

  // MARK: Lost updates

  @Test(arguments: TestBackend.onDisk)
  func concurrentInsertsKeepBoth(_ backend: TestBackend) async throws {
    let shelf = try Shelf<Register>(backend)
    let items = try await shelf.open()
    let barrier = StartBarrier(16)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for id in 0..<16 {
        group.addTask {
          await barrier.wait()
          try await items.insert(Register(id: id, value: id))
        }
      }
      try await group.waitForAll()
    }
    #expect(Set(try await items.loadAll().map(\.id)) == Set(0..<16))
    try await items.close()
    let reopened = try await shelf.open()
    #expect(Set(try await reopened.loadAll().map(\.id)) == Set(0..<16))
    try await reopened.close()
  }

  @Test(arguments: TestBackend.onDisk)
  func insertBeforeLoad(_ backend: TestBackend) async throws {
    let shelf = try Shelf<Register>(backend)
    let items = try await shelf.open()
    try await items.save(contentsOf: (0..<2_000).map { Register(id: $0, value: 0) })
    try await items.close()
    // Nothing was read yet: writes, and then reads, meet records that are still encoded.
    let reopened = try await shelf.open()
    async let all = reopened.loadAll()
    try await reopened.insert(Register(id: 2_000, value: 1))
    try await reopened.save(Register(id: 7, value: 1))
    #expect(try await all.count >= 2_000)
    #expect(try await reopened.count() == 2_001)
    #expect(try await reopened.loadAll().map(\.value).reduce(0, +) == 2)
    try await reopened.close()
  }

  @Test(arguments: TestBackend.onDisk)
  func foreignWriteNotInMyTransaction(_ backend: TestBackend) async throws {
    let shelf = try Shelf<Register>(backend)
    let items = try await shelf.open()
    try await items.save(Register(id: 0, value: 0))
    let barrier = StartBarrier(2)
    async let failing: Void = {
      await barrier.wait()
      for _ in 0..<50 {
        await #expect(throws: Stop.self) {
          try await items.transaction { transaction in
            let before = try transaction.count(in: items)
            try transaction.save(Register(id: -1, value: 0), in: items)
            #expect(try transaction.count(in: items) == before + 1)
            throw Stop()
          }
        }
      }
    }()
    await barrier.wait()
    for id in 1...50 { try await items.save(Register(id: id, value: id)) }
    await failing
    #expect(Set(try await items.loadAll().map(\.id)) == Set(0...50))
    try await items.close()
    let reopened = try await shelf.open()
    #expect(Set(try await reopened.loadAll().map(\.id)) == Set(0...50))
    try await reopened.close()
  }

  @Test(arguments: TestBackend.onDisk)
  func lostWakeupStress(_ backend: TestBackend) async throws {
    let shelf = try Shelf<Register>(backend)
    let items = try await shelf.open(StoreOptions(durability: .buffered))
    try await items.save(Register(id: 0, value: 0))
    for _ in 0..<20 {
      let barrier = StartBarrier(32)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<32 {
          group.addTask {
            await barrier.wait()
            try await items.transaction { transaction in _ = try transaction.update(0, in: items) { $0.value += 1 } }
          }
        }
        try await group.waitForAll()
      }
    }
    #expect(try await items.find(by: 0)?.value == 640)
    try await items.close()
  }

  // MARK: What comes back

  @Test(arguments: TestBackend.onDisk)
  func oneBadRowKeepsTheRest(_ backend: TestBackend) async throws {
    let shelf = try Shelf<Named>(backend)
    let raw = try shelf.place.makeBackend()
    _ = try raw.openAndRecover(.init()) { _ in }
    let values = [#"{"id":"a","number":1}"#, #"{"id":"b","number":"not a number"}"#, #"{"id":"c","number":3}"#]
    let records = zip(["a", "b", "c"], values).map {
      StoredRecord(collection: "records", key: RecordKey($0), revision: Revision(1), schemaVersion: 1, value: Data($1.utf8))
    }
    try raw.commit(WriteBatch(records: records, commits: 1...1))
    try raw.close()
    let items = try await shelf.open()
    #expect(try await items.loadAll().map(\.number) == [1, 3])
    #expect(items.snapshot.undecodable.map(\.key.text) == ["b"])
    try await items.save(Named(id: "d", number: 4))
    try await items.checkpoint()
    try await items.close()
    let reopened = try await shelf.open()
    #expect(try await reopened.count() == 3)
    #expect(reopened.snapshot.undecodable.map(\.key.text) == ["b"])
    try await reopened.close()
  }

  @Test(arguments: TestBackend.onDisk)
  func removeThenRelaunch(_ backend: TestBackend) async throws {
    let shelf = try Shelf<Named>(backend)
    let items = try await shelf.open()
    try await items.save(contentsOf: ["a", "b", "c", "d"].map { Named(id: $0, number: 1) })
    try await items.delete("a")
    try await items.transaction { transaction in
      try transaction.delete("b", in: items)
      try transaction.insert(Named(id: "e", number: 2), in: items)
    }
    try await items.close()
    let reopened = try await shelf.open()
    #expect(try await reopened.loadAll().map(\.id) == ["c", "d", "e"])
    try await reopened.replaceAll(with: [])
    try await reopened.close()
    let emptied = try await shelf.open()
    #expect(try await emptied.loadAll().isEmpty)
    try await emptied.close()
  }

  /// The version that wrote a record is stored with it, and changes only when the record is written.
  @Test(arguments: TestBackend.onDisk)
  func createdAtStable(_ backend: TestBackend) async throws {
    let shelf = try Shelf<Named>(backend)
    let items = try await shelf.open()
    let first = try await items.save(Named(id: "a", number: 1))
    let batch = try await items.save(contentsOf: [Named(id: "b", number: 1), Named(id: "c", number: 1)])
    try await items.save(Named(id: "c", number: 2))
    try await items.checkpoint()
    try await items.close()
    let reopened = try await shelf.open()
    #expect(reopened.revision(of: "a") == first)
    #expect(reopened.revision(of: "b") == batch)
    #expect(reopened.revision(of: "c") == Revision(3))
    try await reopened.close()
  }

  @Test(arguments: TestBackend.onDisk.filter { $0 != .log })
  func hundredsOfThousandsOfIdsAreRead(_ backend: TestBackend) async throws {
    let shelf = try Shelf<Register>(backend)
    let raw = try shelf.place.makeBackend()
    _ = try raw.openAndRecover(.init()) { _ in }
    // SQLite takes at most 250,000 values in a statement on Debian.
    let batches = backend == .sqlite ? 6 : Torture.count(2, full: 6)
    for batch in 0..<batches {
      let revision = UInt64(batch) + 1
      let records = (batch * 50_000..<(batch + 1) * 50_000).map { id in
        StoredRecord(
          collection: "records", key: RecordKey("\(id)"), revision: Revision(revision), schemaVersion: 1,
          value: Data(#"{"id":\#(id),"value":1}"#.utf8))
      }
      try raw.commit(WriteBatch(records: records, commits: revision...revision, durability: .buffered))
    }
    try raw.close()
    let items = try await shelf.open()
    #expect(items.openReport.recordCount == batches * 50_000)
    #expect(items.snapshot.count == batches * 50_000)
    for id in [0, 32_766, batches * 50_000 * 5 / 6, batches * 50_000 - 1] { #expect(try await items.find(by: id)?.id == id) }
    try await items.close()
  }

  @Test(arguments: TestBackend.onDisk)
  func keyWithSlash(_ backend: TestBackend) async throws {
    let shelf = try Shelf<Named>(backend)
    let items = try await shelf.open()
    let ids = ["a/b", "../escape", "/absolute", "..", "a\\b", "a\0b"]
    for (number, id) in ids.enumerated() { try await items.save(Named(id: id, number: number)) }
    try await items.close()
    let reopened = try await shelf.open()
    for (number, id) in ids.enumerated() { #expect(try await reopened.find(by: id)?.number == number) }
    try await reopened.close()
    if let file = shelf.place.file {
      let directory = file.deletingLastPathComponent()
      #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == [file.lastPathComponent])
    }
  }

  @Test(arguments: TestBackend.onDisk)
  func hashesThatCollideAreApart(_ backend: TestBackend) async throws {
    let shelf = try Shelf<Named>(backend)
    let (one, other) = ("spot-1232061777", "spot-7644464108")
    #expect(RecordKey(one).hash == RecordKey(other).hash)
    let items = try await shelf.open()
    try await items.save(Named(id: one, number: 1))
    #expect(try await items.find(by: other) == nil)
    try await items.save(Named(id: other, number: 2))
    try await items.close()
    let reopened = try await shelf.open()
    #expect(try await reopened.find(by: one)?.number == 1)
    #expect(try await reopened.find(by: other)?.number == 2)
    try await reopened.close()
  }

  // MARK: Failures

  @Test(arguments: TestBackend.onDisk)
  func writeAfterRollbackSurvivesClose(_ backend: TestBackend) async throws {
    let shelf = try Shelf<Named>(backend)
    let items = try await shelf.open()
    await #expect(throws: Stop.self) {
      try await items.transaction { transaction in
        try transaction.save(Named(id: "rolled back", number: 1), in: items)
        throw Stop()
      }
    }
    try await items.save(Named(id: "after", number: 2))
    try await items.close()
    let reopened = try await shelf.open()
    #expect(try await reopened.loadAll().map(\.id) == ["after"])
    try await reopened.close()
  }

  @Test(arguments: TestBackend.onDisk)
  func failedWriteIsNotReadable(_ backend: TestBackend) async throws {
    let shelf = try Shelf<Named>(backend)
    let (disk, items) = try await shelf.openFaulty()
    disk.fail(.commit, with: RepositoryError(.full))
    #expect(await code { try await items.save(Named(id: "lost", number: 1)) } == .full)
    #expect(try await items.find(by: "lost") == nil)
    #expect(try await items.loadAll().isEmpty)
    try await items.close()
    let reopened = try await shelf.open()
    #expect(try await reopened.find(by: "lost") == nil)
    try await reopened.close()
  }

  @Test(arguments: TestBackend.onDisk)
  func memoryEqualsDiskAfterAFailedSave(_ backend: TestBackend) async throws {
    let shelf = try Shelf<Named>(backend)
    let (disk, items) = try await shelf.openFaulty()
    try await items.save(contentsOf: [Named(id: "changed", number: 1), Named(id: "deleted", number: 1)])
    for call in 1...3 { disk.fail(.commit, call: call, with: RepositoryError(.inputOutput)) }
    #expect(await code { try await items.save(Named(id: "changed", number: 2)) } == .inputOutput)
    #expect(await code { try await items.delete("deleted") } == .inputOutput)
    #expect(await code { try await items.replaceAll(with: [Named(id: "new", number: 3)]) } == .inputOutput)
    try await items.save(Named(id: "after", number: 4))
    let memory = try await items.loadAll()
    #expect(memory.map(\.number) == [4, 1, 1])
    try await items.close()
    let reopened = try await shelf.open()
    #expect(try await reopened.loadAll() == memory)
    try await reopened.close()
  }

  @Test(arguments: TestBackend.onDisk)
  func aRefusedValueIsNotCalledADuplicate(_ backend: TestBackend) async throws {
    let shelf = try Shelf<Measurement>(backend)
    let items = try await shelf.open()
    try await items.insert(Measurement(id: 1, value: 1))
    #expect(await code { try await items.insert(Measurement(id: 2, value: .nan)) } == .encodingFailed)
    #expect(await code { try await items.insert(Measurement(id: 1, value: 2)) } == .alreadyExists)
    try await items.close()
  }

  @Test(arguments: TestBackend.onDisk)
  func deferredWriteErrorReachesSomeone(_ backend: TestBackend) async throws {
    let shelf = try Shelf<Named>(backend)
    let (disk, items) = try await shelf.openFaulty(StoreOptions(durability: .buffered, checkpoint: .manual))
    try await items.save(Named(id: "buffered", number: 1))
    disk.fail(.flush, with: RepositoryError(.outcomeUnknown))
    #expect(await code { try await items.flush() } == .outcomeUnknown)
    #expect(await code { try await items.save(Named(id: "later", number: 2)) } == .poisoned)
    try await items.close()
  }

  @Test(arguments: TestBackend.onDisk)
  func failedCreateIsReported(_ backend: TestBackend) async throws {
    let directory = try TemporaryDirectory()
    let blocked = directory.file("a file")
    try Data("in the way".utf8).write(to: blocked)  // a test file: nobody needs it after a crash
    let file = blocked.appending(path: "store", directoryHint: .notDirectory)
    let seen = await code { _ = try await LocalRepository<Named>(backend: backend.backend(file)) }
    #expect(seen == .inputOutput)
    #expect(try Data(contentsOf: blocked) == Data("in the way".utf8))
  }

  @Test(arguments: TestBackend.onDisk)
  func openNewerThenOlderLosesNothing(_ backend: TestBackend) async throws {
    let shelf = try Shelf<Named>(backend)
    let old = try await shelf.open(version: 1)
    try await old.save(Named(id: "old", number: 1))
    try await old.close()
    let new = try await shelf.open(version: 2)
    try await new.save(Named(id: "new", number: 2))
    try await new.close()
    let before = try shelf.files()
    for _ in 0..<2 {
      do {
        _ = try await shelf.open(version: 1)
        Issue.record("a newer record was opened")
      } catch {
        #expect((error as? RepositoryError)?.code == .newerSchema)
        #expect((error as? RepositoryError)?.versions == .init(found: 2, supported: 1))
      }
      #expect(try shelf.files() == before)
    }
    let again = try await shelf.open(version: 2)
    #expect(try await again.loadAll() == [Named(id: "new", number: 2), Named(id: "old", number: 1)])
    try await again.close()
  }

  @Test(arguments: TestBackend.onDisk)
  func cancelMidTransactionLeavesStoreUsable(_ backend: TestBackend) async throws {
    let shelf = try Shelf<Register>(backend)
    let items = try await shelf.open()
    try await items.save(Register(id: 0, value: 0))
    var succeeded = 0
    for number in 1...60 {
      let isInside = Flag()
      let task = Task {
        try await items.transaction { transaction in
          isInside.set()
          try transaction.save(Register(id: number, value: number), in: items)
          _ = try transaction.update(0, in: items) { $0.value += 1 }
        }
      }
      if number.isMultiple(of: 3) { try await until { isInside.isSet } }
      if number.isMultiple(of: 2) { await Task.yield() }
      task.cancel()
      switch await code(of: task) {
      case nil: succeeded += 1
      case .cancelled: #expect(!isInside.isSet)
      case let other: Issue.record("\(String(describing: other))")
      }
    }
    #expect(try await items.find(by: 0)?.value == succeeded)
    #expect(try await items.count() == succeeded + 1)
    #expect(succeeded >= 20)
    try await items.save(Register(id: 100, value: 1))
    try await items.close()
    let reopened = try await shelf.open()
    #expect(try await reopened.count() == succeeded + 2)
    try await reopened.close()
  }

  @Test func duplicateIdInFileDoesNotTrap() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("store.log")
    let items = try await LocalRepository<Named>(backend: LogBackend(file: file))
    try await items.save(contentsOf: [Named(id: "a", number: 1), Named(id: "b", number: 2)])
    try await items.close()
    let doubled = try await LocalRepository<Named>(backend: LogBackend(file: file, defect: .handsOutTwice))
    #expect(try await doubled.loadAll().map(\.id) == ["a", "b"])
    #expect(try await doubled.count() == 2)
    try await doubled.delete("a")
    #expect(try await doubled.find(by: "a") == nil)
    try await doubled.close()
  }

  /// Readers on other threads, while batches are written, see each batch whole or not at all.
  @Test(arguments: TestBackend.onDisk)
  func readersDuringWritesSeeWholeBatches(_ backend: TestBackend) async throws {
    let shelf = try Shelf<Register>(backend)
    let items = try await shelf.open(StoreOptions(durability: .buffered))
    try await items.save(contentsOf: (0..<8).map { Register(id: $0, value: 0) })
    let isOver = Flag()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<3 {
        group.addTask {
          while !isOver.isSet {
            let values = Set(items.snapshot.loadAll().map(\.value))
            #expect(values.count == 1)
            await Task.yield()
          }
        }
      }
      for value in 1...200 { try await items.save(contentsOf: (0..<8).map { Register(id: $0, value: value) }) }
      isOver.set()
      try await group.waitForAll()
    }
    try await items.close()
  }
}
