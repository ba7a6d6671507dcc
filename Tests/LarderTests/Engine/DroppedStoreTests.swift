import Foundation
import LarderTesting
import Testing

@testable import Larder

/// A repository that is dropped without closing: who opens the store at once must not be told that it is open.
@Suite(.timeLimit(.minutes(15))) struct DroppedStoreTests {
  @Test(arguments: [TestBackend.json, .sqlite])
  func droppedAndOpenedAgainAtOnce(_ backend: TestBackend) async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("store")
    for number in 0..<60 {
      let items = try await LocalRepository<Measurement>(backend: backend.backend(file))
      #expect(items.snapshot.count == number)
      switch number % 3 {
      case 0: try await items.save(Measurement(id: number, value: 1))
      case 1: try await items.transaction { try $0.save(Measurement(id: number, value: 1), in: items) }
      default:
        try await withThrowingTaskGroup(of: Void.self) { group in
          group.addTask { try await items.save(Measurement(id: number, value: 1)) }
          group.addTask { try await items.save(Measurement(id: number, value: 2)) }
          try await group.waitForAll()
        }
      }
    }
  }

  @Test func droppedInTheMiddleOfAMigration() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("store.json")
    let old = try await LocalRepository<Measurement>(backend: JSONFileBackend(file: file))
    try await old.save(contentsOf: (0..<500).map { Measurement(id: $0, value: 1) })
    try await old.close()
    let schema = RepositorySchema<Measurement>(version: 2, migrations: [.init(from: 1) { _ in }])
    let options = StoreOptions(migration: .init(backup: .declined, batchSize: 1))
    for _ in 0..<10 {
      let items = try await LocalRepository(jsonFile: file, schema: schema, options: options)
      #expect(items.snapshot.count == 500)
    }
  }

  @Test(arguments: [TestBackend.json, .sqlite])
  func aStoreInUseIsStillRefused(_ backend: TestBackend) async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("store")
    let items = try await LocalRepository<Measurement>(backend: backend.backend(file))
    #expect(await code { _ = try await LocalRepository<Measurement>(backend: backend.backend(file)) } == .alreadyOpen)
    try await items.save(Measurement(id: 1, value: 1))
    #expect(await code { _ = try await Store.open(backend.backend(file)) } == .alreadyOpen)
    try await items.close()
    let store = try await Store.open(backend.backend(file))
    let again = try await store.repository(RepositorySchema<Measurement>())
    #expect(await code { _ = try await LocalRepository<Measurement>(backend: backend.backend(file)) } == .alreadyOpen)
    #expect(try await again.count() == 1)
    try await store.close()
  }

  @Test func aStoreInUseIsRefusedWhileItsDiskIsBusy() async throws {
    let memory = InMemoryBackend()
    let disk = FaultInjectingBackend(memory)
    let items = try await LocalRepository<Measurement>(backend: disk)
    disk.hold(.commit)
    let save = Task { try await items.save(Measurement(id: 1, value: 1)) }
    await disk.waitUntilHeld(.commit)
    #expect(await code { _ = try await LocalRepository<Measurement>(backend: memory) } == .alreadyOpen)
    disk.release(.commit)
    _ = try await save.value
    try await items.close()
  }

  @Test func aRepositoryOutlivesItsStoreObject() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("store.json")
    func open() async throws -> LocalRepository<Measurement> {
      try await Store.open(JSONFileBackend(file: file)).repository(RepositorySchema<Measurement>())
    }
    let items = try await open()
    try await items.save(Measurement(id: 1, value: 1))
    #expect(await code { _ = try await open() } == .alreadyOpen)
    #expect(try await items.count() == 1)
  }
}
