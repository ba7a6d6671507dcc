import Foundation
import LarderSQLite
import Synchronization
import TestSupport
import Testing

@testable import Larder

struct Pier: Codable, Identifiable, Equatable, Sendable {
  let id: String
  var length: Int
}

/// The changes that an observer was told, as text, in order: waits for the next without a clock.
final class Heard: ChangeObserver {
  private let stream: AsyncStream<String>
  private let continuation: AsyncStream<String>.Continuation

  init() { (stream, continuation) = AsyncStream.makeStream() }

  func receive(_ changes: [RecordChange], commit: Revision) {
    for change in changes {
      let kind = change.new == nil ? " deleted" : change.old == nil ? " new" : ""
      continuation.yield("\(change.revision) \(change.key.text) \(change.origin)\(kind)")
    }
  }

  func finish() { continuation.finish() }

  /// Returns what was told until the store was closed.
  func all() async -> [String] { await stream.reduce(into: []) { $0.append($1) } }

  func next() async -> String? {
    var iterator = stream.makeAsyncIterator()
    return await iterator.next()
  }
}

@Suite("SQLite: several writers of one store", .timeLimit(.minutes(15)))
struct SharedStoreTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  /// Opens the store as another process would; looks for others' commits only when told, unless an interval is given.
  private func open(
    _ access: StoreOptions.Access = .shared, version: Int = 1, poll: Duration? = nil, tombstones: Int = 10_000,
    residency: Residency = .full
  ) async throws(RepositoryError) -> LocalRepository<Pier> {
    let options = StoreOptions(
      access: access, limits: .init(tombstones: tombstones), checkpoint: .manual, residency: residency, pollInterval: poll,
      lockTimeout: .seconds(30), migration: .init(mode: .manual))
    return try await LocalRepository(sqliteFile: url, schema: .init("piers", version: version), options: options)
  }

  private func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: url.deletingLastPathComponent().path).sorted()
  }

  /// The places of records of the second of two openings: the first one always has them in memory.
  static let residencies = [Residency.full, .onDisk(cache: .bytes(0)), .onDisk(cache: .megabytes(1))]

  @Test(arguments: residencies) func aRefreshShowsWhatOthersSavedAndDeleted(_ residency: Residency) async throws {
    let (one, two) = (try await open(), try await open(residency: residency))
    try await one.save(contentsOf: [Pier(id: "a", length: 1), Pier(id: "b", length: 2)])
    #expect(try await two.loadAll().isEmpty)
    try await two.refresh()
    #expect(try await two.loadAll() == [Pier(id: "a", length: 1), Pier(id: "b", length: 2)])
    try await two.delete("a")
    try await two.save(Pier(id: "b", length: 3))
    try await one.refresh()
    #expect(try await one.loadAll() == [Pier(id: "b", length: 3)])
    #expect(one.revision(of: "b") == two.revision(of: "b"))
    try await one.replaceAll(with: [Pier(id: "c", length: 4)])
    try await two.refresh()
    #expect(try await two.loadAll() == [Pier(id: "c", length: 4)])
    #expect(two.snapshot.revision == one.snapshot.revision)
    try await one.close()
    try await two.close()
  }

  @Test(arguments: residencies) func aWriteIsStagedAgainstWhatOthersCommittedBefore(_ residency: Residency) async throws {
    let (one, two) = (try await open(), try await open(residency: residency))
    let first = try await one.save(Pier(id: "a", length: 1))
    let inserted = await #expect(throws: RepositoryError.self) { _ = try await two.insert(Pier(id: "a", length: 9)) }
    #expect(inserted?.code == .alreadyExists)
    let second = try await two.save(Pier(id: "a", length: 2), ifRevision: first)
    let stale = await #expect(throws: RepositoryError.self) { _ = try await one.save(Pier(id: "a", length: 9), ifRevision: first) }
    #expect(stale?.code == .revisionMismatch)
    try await one.update("a") { $0.length *= 10 }
    #expect(try await one.find(by: "a") == Pier(id: "a", length: 20))
    #expect(try await two.delete("a", ifRevision: second) { _ in } == .revisionMismatch)
    #expect(try await two.transaction { try $0.find(by: "a", in: two)?.length } == 20)
    try await one.close()
    try await two.close()
  }

  @Test func aWriteThatFailsLetsTheOthersWrite() async throws {
    struct Second: Error {}
    let (one, two) = (try await open(), try await open())
    await #expect(throws: Second.self) { try await one.transaction { _ in throw Second() } }
    try await two.save(Pier(id: "a", length: 1))
    try await one.transaction { _ in }
    try await two.save(Pier(id: "a", length: 2))
    try await one.close()
    try await two.save(Pier(id: "a", length: 3))
    try await two.close()
  }

  @Test(arguments: residencies) func manyTasksOfTwoOpeningsLoseNoUpdate(_ residency: Residency) async throws {
    let (one, two) = (try await open(), try await open(residency: residency))
    try await one.save(Pier(id: "a", length: 0))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask {
          for _ in 0..<50 { try await (task % 2 == 0 ? one : two).update("a") { $0.length += 1 } }
        }
      }
      try await group.waitForAll()
    }
    try await one.refresh()
    #expect(try await one.find(by: "a")?.length == 400)
    try await one.close()
    try await two.close()
  }

  @Test(arguments: residencies) func whatOthersCommitIsAnnouncedInTheOrderOfCommits(_ residency: Residency) async throws {
    let (one, two) = (try await open(), try await open(residency: residency))
    let heard = Heard()
    two.core.hub.register(heard, for: two.collection)
    try await one.save(Pier(id: "z", length: 1))
    try await one.save(Pier(id: "m", length: 1))
    try await one.save(Pier(id: "z", length: 2))
    try await one.save(Pier(id: "gone", length: 2))
    try await one.delete("gone")
    try await two.save(Pier(id: "a", length: 1))
    try await one.delete("m")
    try await two.refresh()
    try await one.close()
    try await two.close()
    #expect(
      await heard.all() == ["2 m anotherProcess new", "3 z anotherProcess new", "6 a thisProcess new", "7 m anotherProcess deleted"])
  }

  @Test(arguments: [StoreOptions.Access.shared, .readOnly])
  func aPollAnnouncesWithoutBeingAsked(_ access: StoreOptions.Access) async throws {
    let one = try await open()
    let two = try await open(access, poll: .milliseconds(10))
    let heard = Heard()
    two.core.hub.register(heard, for: two.collection)
    for length in 1...3 {
      try await one.save(Pier(id: "a", length: length))
      #expect(await heard.next()?.hasPrefix("\(length) a anotherProcess") == true)
      #expect(try await two.find(by: "a")?.length == length)
    }
    try await two.close()
    try await one.close()
    #expect(await heard.next() == nil)
  }

  @Test func aReadOnlyStoreFollowsAWriterThatComesAndGoesAndWritesNothing() async throws {
    try await open(.exclusive).close()
    let before = try directory.contents()
    let reader = try await open(.readOnly)
    try await reader.refresh()
    #expect(try directory.contents() == before)
    for (length, access) in [(1, StoreOptions.Access.exclusive), (2, .shared), (3, .exclusive)] {
      let writer = try await open(access)
      try await writer.save(Pier(id: "a", length: length))
      try await writer.save(Pier(id: "\(length)", length: length))
      try await reader.refresh()
      #expect(try await reader.find(by: "a")?.length == length, "while the writer is open")
      try await writer.delete("\(length)")
      try await writer.save(Pier(id: "b", length: length))
      try await writer.close()
      #expect(try names() == ["spots.sqlite"])
      let closed = try directory.contents()
      try await reader.refresh()
      #expect(try await reader.loadAll() == [Pier(id: "a", length: length), Pier(id: "b", length: length)], "after the writer")
      #expect(try directory.contents() == closed)
    }
    let refused = await #expect(throws: RepositoryError.self) { _ = try await reader.save(Pier(id: "a", length: 9)) }
    #expect(refused?.code == .unsupported)
    try await reader.close()
  }

  @Test(arguments: [(StoreOptions.Access.shared, Residency.full), (.shared, .onDisk(cache: .bytes(0))), (.readOnly, .full)])
  func deletionsWhoseTombstonesAreForgottenAreFoundAllTheSame(_ access: StoreOptions.Access, _ residency: Residency) async throws {
    let one = try await open(tombstones: 2)
    try await one.save(contentsOf: (0..<10).map { Pier(id: "\($0)", length: 1) })
    let two = try await open(access, residency: residency)
    let heard = Heard()
    two.core.hub.register(heard, for: two.collection)
    for id in 0..<6 { try await one.delete("\(id)") }
    try await one.save(Pier(id: "9", length: 2))
    try await one.checkpoint()
    try await two.refresh()
    #expect(try await two.loadAll().map(\.id) == ["6", "7", "8", "9"])
    try await two.close()
    try await one.close()
    let told = await heard.all()
    let gone = (0..<6).map { "\($0) anotherProcess deleted" }
    #expect(Set(told.map { $0.split(separator: " ").dropFirst().joined(separator: " ") }) == Set(gone + ["9 anotherProcess"]))
    #expect(told.count == 7)
  }

  @Test(arguments: residencies) func aCollectionThatAnotherProcessMadeAppearsByName(_ residency: Residency) async throws {
    let options = StoreOptions(access: .shared, residency: residency)
    let (one, two) = (try await Store.open(SQLiteBackend(file: url), options: options), try await open(residency: residency))
    let boats = try await one.repository(RepositorySchema<Pier>("boats"))
    try await boats.save(Pier(id: "x", length: 7))
    try await two.save(Pier(id: "a", length: 1))
    let moorings = try await one.repository(RepositorySchema<Pier>("moorings"))
    try await moorings.save(Pier(id: "y", length: 8))
    try await two.refresh()
    #expect(two.core.state.names == ["piers", "boats", "moorings"])
    #expect(try await two.loadAll() == [Pier(id: "a", length: 1)])
    #expect(two.core.state.collections.map(\.records.count) == [1, 1, 1])
    try await two.close()
    try await one.close()
  }

  @Test(arguments: residencies)
  func recordsOfANewerVersionAreRefusedOneByOneAndTheCollectionIsNotWritten(_ residency: Residency) async throws {
    let old = try await open(residency: residency)
    try await old.save(Pier(id: "a", length: 1))
    let new = try await open(version: 2)
    try await new.save(Pier(id: "b", length: 2))
    try await old.refresh()
    #expect(try await old.find(by: "a")?.length == 1)
    let read = await #expect(throws: RepositoryError.self) { _ = try await old.find(by: "b") }
    #expect(read?.code == .newerSchema && read?.versions == .init(found: 2, supported: 1))
    #expect(try await old.loadAll().map(\.id) == ["a"])
    let saved = await #expect(throws: RepositoryError.self) { _ = try await old.save(Pier(id: "c", length: 3)) }
    let deleted = await #expect(throws: RepositoryError.self) { _ = try await old.delete("b") }
    let replaced = await #expect(throws: RepositoryError.self) { try await old.replaceAll(with: []) }
    #expect([saved?.code, deleted?.code, replaced?.code] == [.newerSchema, .newerSchema, .newerSchema])
    try await new.save(Pier(id: "c", length: 3))
    #expect(try await new.count() == 3)
    try await old.close()
    try await new.close()
  }

  @Test func exclusiveAndSharedUseExcludeEachOther() async throws {
    let shared = try await open()
    let exclusive = await #expect(throws: RepositoryError.self) { _ = try await open(.exclusive) }
    #expect(exclusive?.code == .alreadyOpen)
    try await open(.readOnly).close()
    try await open().close()
    try await shared.save(Pier(id: "a", length: 1))
    try await shared.close()
    let alone = try await open(.exclusive)
    let refused = await #expect(throws: RepositoryError.self) { _ = try await open() }
    #expect(refused?.code == .alreadyOpen)
    #expect(try await open(.readOnly).find(by: "a")?.length == 1)
    try await alone.close()
    #expect(try names() == ["spots.sqlite"])
  }

  @Test func theLastOneToCloseLeavesOneFile() async throws {
    let (one, two) = (try await open(), try await open())
    try await one.save(Pier(id: "a", length: 1))
    try await two.save(Pier(id: "b", length: 1), durability: .buffered)
    try await one.close()
    #expect(try names() == ["spots.sqlite", "spots.sqlite-lock", "spots.sqlite-shm", "spots.sqlite-wal"])
    try await two.save(Pier(id: "c", length: 1))
    try await two.close()
    #expect(try names() == ["spots.sqlite"])
    let next = try await open(.exclusive)
    #expect(try await next.loadAll().map(\.id) == ["a", "b", "c"])
    try await next.close()
  }

  @Test func aLargeStoreIsSharedAndGoesBackToOneProcess() async throws {
    let count = Torture.count(20_000, full: 100_000)
    let one = try await open()
    try await one.save(contentsOf: (0..<count).map { Pier(id: "\($0)", length: $0) })
    let two = try await open()
    #expect(try await two.count() == count)
    let clock = ContinuousClock()
    var longest = Duration.zero
    for step in 0..<50 {
      try await one.save(Pier(id: "\(step * count / 50)", length: -1))
      longest = max(longest, try await clock.measure { try await two.refresh() })
    }
    print("following one save among \(count) records: at most \(longest)")
    #expect(two.snapshot.revision == one.snapshot.revision)
    try await one.close()
    try await two.close()
    let store = try await Store.open(SQLiteBackend(file: url))
    let piers = try await store.repository(RepositorySchema<Pier>("piers"))
    try await piers.delete("5")
    #expect(await store.verify().problems.isEmpty)
    try await store.close()
    try await open().close()
  }
}

extension LocalRepository {
  /// The code that a conditional delete fails with.
  fileprivate func delete(_ id: Item.ID, ifRevision: Revision, _ note: (Bool) -> Void) async throws -> RepositoryError.Code? {
    do {
      note(try await delete(id, ifRevision: ifRevision))
      return nil
    } catch {
      return error.code
    }
  }
}
