import Dispatch
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Larder
@testable import LarderSQLite

/// Stores whose records stay in the database, and change there while the records before can no longer be read.
@Suite("SQLite: records in the database that changed meanwhile", .timeLimit(.minutes(5)))
struct RenewedPagingTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  private struct Boat: Codable, Identifiable, Equatable, Sendable {
    let id: Int
    var name: String
    var length: Int
  }

  private static let schema = RepositorySchema<Boat>("boats", indexes: [.unique(\.name), .ordered(\.length)])

  private func open(
    _ access: StoreOptions.Access, tombstones: Int = 10_000, residency: Residency = .onDisk(cache: .bytes(0))
  ) async throws -> LocalRepository<Boat> {
    let options = StoreOptions(
      access: access, limits: .init(tombstones: tombstones), checkpoint: .manual, residency: residency, pollInterval: nil)
    return try await LocalRepository(sqliteFile: url, schema: Self.schema, options: options)
  }

  private func boats(_ ids: some Sequence<Int>, length: Int = 0) -> [Boat] {
    ids.map { Boat(id: $0, name: "boat \($0)", length: length == 0 ? $0 : length) }
  }

  /// Suspends a store, and writes to it as another process.
  private func writeBetween(_ boats: LocalRepository<Boat>, _ access: StoreOptions.Access, tombstones: Int = 10_000) async throws {
    await boats.suspend()
    let other = try await open(access, tombstones: tombstones, residency: .full)
    try await other.save(contentsOf: self.boats([2, 90], length: 100))
    for id in 3..<9 { try await other.delete(id) }
    try await other.insert(Boat(id: 95, name: "gone", length: 1))
    try await other.delete(95)
    try await other.checkpoint()
    try await other.close()
  }

  @Test(arguments: [StoreOptions.Access.exclusive, .shared]) func aResumedStoreHasWhatOthersWrote(_ access: StoreOptions.Access)
    async throws
  {
    let boats = try await open(access)
    try await boats.save(contentsOf: self.boats(0..<20))
    let long = Query<Boat>().where(\.length, .greaterOrEqual, 10)
    #expect(try await boats.count(long) == 10)
    try await boats.checkpoint()
    let before = boats.snapshot
    var iterator = boats.changes().makeAsyncIterator()
    var results = boats.results(of: long.sorted(by: \.length)).makeAsyncIterator()
    #expect(try await results.next()?.count == 10)
    try await boats.save(Boat(id: 5, name: "boat 5", length: 50))
    #expect(try await results.next()?.last?.id == 5)
    #expect(try await iterator.next()?.changes.map(\.kind) == [.updated])

    try await writeBetween(boats, access)
    try await boats.resume()

    #expect(try await boats.count() == 15)
    let found = try await [boats.find(by: 2), boats.find(by: 5), boats.find(by: 95)]
    #expect(found.map { $0?.length } == [100, nil, nil] && boats.snapshot.count == 15)
    // Two entered the results of the live query, and one that had entered is gone: as a query of the same moment finds it.
    #expect(try await results.next() == boats.fetch(long.sorted(by: \.length)))
    #expect(try await boats.count(long) == 12)
    let told = try #require(try await iterator.next())
    #expect(Set(told.changes.filter { $0.kind == .upserted }.compactMap(\.id)) == [2, 90])
    #expect(told.changes.filter { $0.kind == .upserted }.allSatisfy { $0.old == nil && $0.new != nil && $0.origin == .anotherProcess })
    #expect(Set(told.changes.filter { $0.kind == .deleted }.compactMap(\.id)) == Set([3, 4, 5, 6, 7, 8, 95]))
    #expect(told.changes.count == 9 && told.revision == boats.snapshot.revision)
    let gone = #expect(throws: RepositoryError.self) { try before.find(by: 1) }
    #expect(gone?.code == .superseded)

    let taken = await #expect(throws: RepositoryError.self) { try await boats.insert(Boat(id: 91, name: "boat 90", length: 1)) }
    #expect(taken?.code == .uniqueViolation)
    try await boats.insert(Boat(id: 91, name: "boat 3", length: 30))
    #expect(try await results.next()?.map(\.id).contains(91) == true)
    try await boats.close()
    let again = try await open(.exclusive, residency: .full)
    #expect(try await (again.count(), again.count(long)) == (16, 13))
    try await again.close()
  }

  @Test(arguments: [StoreOptions.Access.exclusive, .shared]) func aCollectionInMemoryGoesOnBesideOneOnTheDisk(_ access: StoreOptions.Access)
    async throws
  {
    let options = StoreOptions(access: access, checkpoint: .manual, pollInterval: nil)
    let store = try await Store.open(SQLiteBackend(file: url), options: options)
    let boats = try await store.repository(RepositorySchema<Boat>("boats", residency: .onDisk(cache: .bytes(0))))
    let piers = try await store.repository(RepositorySchema<Pier>("piers"))
    try await boats.save(contentsOf: self.boats(0..<10))
    try await piers.save(contentsOf: [Pier(id: "a", length: 1), Pier(id: "b", length: 1)])
    await store.suspend()
    let other = try await Store.open(SQLiteBackend(file: url), options: options)
    let (others, otherPiers) = (try await other.repository(Self.schema), try await other.repository(RepositorySchema<Pier>("piers")))
    try await others.save(Boat(id: 1, name: "one", length: 1))
    try await otherPiers.delete("a")
    try await otherPiers.save(Pier(id: "b", length: 2))
    try await other.repository(RepositorySchema<Pier>("jetties")).save(Pier(id: "new", length: 3))
    try await other.close()
    try await store.resume()
    #expect(try await (boats.find(by: 1)?.name, boats.count()) == ("one", 10))
    #expect(try await piers.loadAll() == [Pier(id: "b", length: 2)])
    #expect(try await store.repository(RepositorySchema<Pier>("jetties")).find(by: "new")?.length == 3)
    try await store.close()
  }

  /// Only the earlier records would show which ones were deleted.
  @Test(arguments: [StoreOptions.Access.exclusive, .shared]) func forgottenDeletionsKeepTheStoreSuspended(_ access: StoreOptions.Access)
    async throws
  {
    let boats = try await open(access, tombstones: 2)
    try await boats.save(contentsOf: self.boats(0..<20))
    try await writeBetween(boats, access, tombstones: 2)
    for _ in 0..<2 {
      let error = await #expect(throws: RepositoryError.self) { try await boats.resume() }
      #expect(error?.code == .superseded)
      #expect(try directory.locks() == [])
    }
    try await boats.close()
    let again = try await open(access)
    #expect(try await again.count() == 15)
    try await again.close()
  }

  @Test func anotherStoreInPlaceOfTheSuspendedOneIsRefused() async throws {
    let boats = try await open(.exclusive)
    try await boats.save(contentsOf: self.boats(0..<3))
    await boats.suspend()
    let bytes = try Data(contentsOf: url)
    let other = try await open(.exclusive)
    try await other.save(Boat(id: 9, name: "nine", length: 9))
    try await other.close()
    // In place: it is the same file for the store that comes back, with fewer commits than that of another writer.
    let handle = try FileHandle(forWritingTo: url)
    try handle.truncate(atOffset: 0)
    try handle.write(contentsOf: bytes.prefix(100) + Data(repeating: 0, count: bytes.count - 100))
    try handle.close()
    await #expect(throws: RepositoryError.self) { try await boats.resume() }
    try bytes.write(to: url)
    try await boats.close()
  }

  /// Another process holds the write lock, so that the store cannot move to the newest commit before it is suspended.
  @Test func aSuspensionBesideACommitOfAnotherProcess() async throws {
    let options = StoreOptions(
      access: .shared, checkpoint: .manual, residency: .onDisk(cache: .bytes(0)), pollInterval: nil, lockTimeout: .zero)
    let boats = try await LocalRepository(sqliteFile: url, schema: Self.schema, options: options)
    let other = SQLiteBackend(file: url)
    _ = try other.openAndRecover(.init(access: .shared)) { _ in }
    try await boats.save(contentsOf: self.boats(0..<5))
    try await boats.checkpoint()
    try await boats.save(Boat(id: 1, name: "own", length: 1))
    _ = try other.beginCommit(after: .zero, .durable)
    await boats.suspend()
    let suspended = await #expect(throws: RepositoryError.self) { try await boats.find(by: 3) }
    #expect(suspended?.code == .suspended)
    // The base is of an older commit, so the store cannot read its records before it has a newer one.
    let locked = await #expect(throws: RepositoryError.self) { try await boats.resume() }
    #expect(locked?.code == .locked)
    let again = await #expect(throws: RepositoryError.self) { try await boats.find(by: 3) }
    #expect(again?.code == .suspended)
    other.cancelCommit()
    try await boats.resume()
    #expect(try await (boats.find(by: 1)?.name, boats.find(by: 3)?.name) == ("own", "boat 3"))
    try await boats.close()
    try other.close()
  }

  /// The base is lost while another process commits, so that it cannot be replaced before the write waits for that process.
  @Test func aWriteAfterALostBaseBesideACommitOfAnotherProcess() async throws {
    let backend = SQLiteBackend(file: url)
    let options = StoreOptions(access: .shared, checkpoint: .manual, residency: .onDisk(cache: .bytes(0)), pollInterval: nil)
    let boats = try await LocalRepository(backend: backend, schema: Self.schema, options: options)
    try await boats.save(contentsOf: self.boats(0..<5))
    try await boats.checkpoint()
    let other = SQLiteBackend(file: url)
    _ = try other.openAndRecover(.init(access: .shared)) { _ in }
    // The ninth base supersedes the first one, and the last one is lost, too.
    var bases: [any StoredBase] = []
    for _ in 0..<9 { bases.append(try backend.keepBase()) }
    (bases.last as? SQLiteBase)?.supersede()
    _ = try other.beginCommit(after: .zero, .durable)
    backend.wait.deadline.store(0, ordering: .relaxed)
    let save = Task { try await boats.save(Boat(id: 3, name: "own", length: 1)) }
    // Only the commit waits longer than a second, after the attempt to take a newer base was given up.
    try await until { backend.wait.deadline.load(ordering: .relaxed) > Int64(DispatchTime.now().uptimeNanoseconds) + 1_000_000_000 }
    other.cancelCommit()
    _ = try await save.value
    #expect(try await (boats.find(by: 3)?.name, boats.count()) == ("own", 5))
    withExtendedLifetime(bases) {}
    try await boats.close()
    try other.close()
  }

  /// A move to a newer base, for which nobody waits, does not wait for another process.
  @Test func noMoveWaitsForAnotherProcess() async throws {
    let backend = SQLiteBackend(file: url)
    let options = StoreOptions(
      access: .shared, checkpoint: .manual, residency: .onDisk(cache: .bytes(0)), pollInterval: nil, lockTimeout: .seconds(600))
    let boats = try await LocalRepository(backend: backend, schema: Self.schema, options: options)
    // More changes than a base keeps, so that each look for commits moves to a newer base.
    try await boats.save(contentsOf: self.boats(0..<5_000))
    let other = SQLiteBackend(file: url)
    _ = try other.openAndRecover(.init(access: .shared)) { _ in }
    _ = try other.beginCommit(after: .zero, .durable)
    #expect(!backend.canKeepBase)
    // With a wait, this call would take ten minutes.
    try await boats.refresh()
    #expect(boats.snapshot.count == 5_000)
    other.cancelCommit()
    #expect(backend.canKeepBase)
    try await boats.close()
    try other.close()
  }

  /// A copy with another history takes the place of the store, and has more commits.
  @Test func anotherHistoryIsFoundInMemory() async throws {
    let options = StoreOptions(checkpoint: .manual, pollInterval: nil)
    func open() async throws -> (store: Store, boats: LocalRepository<Boat>, piers: LocalRepository<Pier>) {
      let store = try await Store.open(SQLiteBackend(file: url), options: options)
      let boats = try await store.repository(RepositorySchema<Boat>("boats", residency: .onDisk(cache: .bytes(0))))
      return (store, boats, try await store.repository(RepositorySchema<Pier>("piers")))
    }
    let first = try await open()
    try await first.boats.save(contentsOf: self.boats(0..<5))
    try await first.piers.save(Pier(id: "a", length: 1))
    try await first.store.checkpoint()
    let copy = directory.file("copy.sqlite")
    try await first.store.backup(to: copy)
    try await first.piers.save(Pier(id: "b", length: 1))
    await first.store.suspend()
    // In place: it is the same file for the store that comes back.
    let handle = try FileHandle(forWritingTo: url)
    try handle.truncate(atOffset: 0)
    try handle.write(contentsOf: Data(contentsOf: copy))
    try handle.close()
    let second = try await open()
    try await second.piers.save(Pier(id: "c", length: 1))
    try await second.piers.save(Pier(id: "d", length: 1))
    try await second.store.close()
    let error = await #expect(throws: RepositoryError.self) { try await first.store.resume() }
    #expect(error?.code == .dataMissing)
    try await first.store.close()
  }

  /// The backend gives up the base that the store reads, and another process commits before the store has a new one.
  @Test func aStoreThatHasLostItsBaseGoesOn() async throws {
    let backend = SQLiteBackend(file: url)
    let options = StoreOptions(access: .shared, checkpoint: .manual, residency: .onDisk(cache: .bytes(0)), pollInterval: nil)
    let boats = try await LocalRepository(backend: backend, schema: Self.schema, options: options)
    let other = try await open(.shared, residency: .full)
    try await boats.save(contentsOf: self.boats(0..<5))
    for round in 0..<4 {
      // The ninth base supersedes the first one.
      var bases: [any StoredBase] = []
      for _ in 0..<9 { bases.append(try backend.keepBase()) }
      try await other.save(Boat(id: 1, name: "round \(round)", length: round))
      try await other.delete(4)
      if round.isMultiple(of: 2) { try await boats.refresh() } else { try await boats.save(Boat(id: 3, name: "own \(round)", length: 1)) }
      #expect(try await (boats.find(by: 1)?.name, boats.count()) == ("round \(round)", 4))
      withExtendedLifetime(bases) {}
    }
    try await boats.close()
    try await other.close()
  }
}
