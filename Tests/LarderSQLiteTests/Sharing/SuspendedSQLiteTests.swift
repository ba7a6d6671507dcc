import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Larder
@testable import LarderSQLite

@Suite("SQLite: suspended stores", .timeLimit(.minutes(15)))
struct SuspendedSQLiteTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  private func open(
    _ access: StoreOptions.Access = .shared, residency: Residency = .full
  ) async throws(RepositoryError) -> LocalRepository<Pier> {
    let options = StoreOptions(access: access, checkpoint: .manual, residency: residency, pollInterval: nil)
    return try await LocalRepository(sqliteFile: url, schema: .init("piers"), options: options)
  }

  @Test(arguments: SharedStoreTests.residencies) func aSharerLeavesTheOthersAlone(_ residency: Residency) async throws {
    let (one, two) = (try await open(residency: residency), try await open(residency: residency))
    try await one.save(Pier(id: "a", length: 1))
    await one.suspend()
    try await two.save(Pier(id: "a", length: 2))
    try await two.save(Pier(id: "b", length: 2))
    let report = one.openReport
    try await one.resume()
    #expect(try await one.find(by: "a")?.length == 2)
    #expect(try await one.count() == 2)
    // Nothing was read anew for that.
    #expect(one.openReport.commit == report.commit)
    try await one.update("b") { $0.length += 1 }
    try await two.refresh()
    #expect(try await two.find(by: "b")?.length == 3)
    await two.suspend()
    await one.suspend()
    #expect(try directory.locks() == [])
    #expect(try directory.names == ["spots.sqlite"])
    try await one.close()
    try await two.close()
  }

  /// The locks of a process that waits in `BEGIN IMMEDIATE` are given up, and its write waits for `resume`.
  @Test func aWaitForAnotherWriterIsEnded() async throws {
    let backend = SQLiteBackend(file: url)
    let items = try await LocalRepository<Pier>(
      backend: backend, schema: .init("piers"), options: .init(access: .shared, pollInterval: nil, lockTimeout: .seconds(600)))
    let other = SQLiteBackend(file: url)
    _ = try other.openAndRecover(.init(access: .shared)) { _ in }
    _ = try other.beginCommit(after: .zero, .durable)
    // Opening has waited, too.
    backend.wait.deadline.store(0, ordering: .relaxed)
    let save = Task { try await items.save(Pier(id: "a", length: 1)) }
    try await until { backend.wait.deadline.load(ordering: .relaxed) != 0 }
    await items.suspend()
    other.cancelCommit()
    try other.close()
    #expect(try directory.locks() == [])
    try await items.resume()
    _ = try await save.value
    #expect(try await items.count() == 1)
    try await items.close()
  }

  /// A second `suspend` ends no later wait.
  @Test func waitingIsAllowedAgain() async throws {
    let backend = SQLiteBackend(file: url)
    let items = try await LocalRepository<Pier>(
      backend: backend, schema: .init("piers"), options: .init(access: .shared, pollInterval: nil, lockTimeout: .seconds(600)))
    await items.suspend()
    await items.suspend()
    try await items.resume()
    let other = SQLiteBackend(file: url)
    _ = try other.openAndRecover(.init(access: .shared)) { _ in }
    _ = try other.beginCommit(after: .zero, .durable)
    // Opening has waited, too.
    backend.wait.deadline.store(0, ordering: .relaxed)
    let save = Task { try await items.save(Pier(id: "a", length: 1)) }
    try await until { backend.wait.deadline.load(ordering: .relaxed) != 0 }
    // SQLite asks this each time that it finds the lock taken. Waiting here for a number of attempts would take as long as the machine is busy.
    #expect(!backend.wait.isOver)
    other.cancelCommit()
    _ = try await save.value
    try other.close()
    try await items.close()
  }

  /// A sync that fails in a fold that no caller waits for is known to the writer alone.
  @Test func aFailedSyncIsNotForgotten() async throws {
    let backend = SQLiteBackend(file: url)
    let items = try await LocalRepository<Pier>(backend: backend, schema: .init("piers"))
    try await items.save(Pier(id: "a", length: 1))
    backend.store.withLock { store in
      if case .writing(let writer, _) = store.phase { writer.poison = RepositoryError(.outcomeUnknown) }
    }
    await items.suspend()
    #expect(await code { try await items.resume() } == .poisoned)
    #expect(try await items.count() == 1)
    try await items.close()
    let again = try await open(.exclusive)
    #expect(try await again.count() == 1)
    try await again.close()
  }

  /// Where the row of the store could not be brought up to the last commit, the store is read anew.
  @Test func aRowThatIsBehindIsNoOtherStore() async throws {
    let backend = SQLiteBackend(file: url)
    let items = try await LocalRepository<Pier>(backend: backend, schema: .init("piers"))
    for number in 0..<5 { try await items.save(Pier(id: "\(number)", length: number)) }
    FaultyFiles.setDisk(0, at: main)
    await items.suspend()
    FaultyFiles.setDisk(nil, at: main)
    #expect(try directory.locks() == [])
    try await items.resume()
    #expect(try await items.count() == 5)
    try await items.save(Pier(id: "5", length: 5))
    try await items.close()
    let again = try await open(.exclusive)
    #expect(try await again.count() == 6)
    try await again.close()
  }

  /// A log that takes long to fold stays, and is whole when the store goes on, or when another process takes over.
  @Test(arguments: [StoreOptions.Access.exclusive, .shared], [(true, Residency.full), (true, .onDisk(cache: .bytes(0))), (false, .full)])
  func aLongLogStays(_ access: StoreOptions.Access, _ others: (write: Bool, residency: Residency)) async throws {
    let (othersWrite, items) = (others.write, try await open(access, residency: others.residency))
    // 1,200 rows of more than 900 bytes: at least 1.1 MB of log, and less than what is folded in passing.
    let padding = String(repeating: "x", count: 900)
    for part in 0..<4 {
      try await items.save(contentsOf: (0..<300).map { Pier(id: "pier-\(part)-\($0)-\(padding)", length: part) })
    }
    await items.suspend()
    #expect(try directory.names.contains("spots.sqlite-wal"))
    #expect(try directory.locks() == [])
    if othersWrite {
      let others = try await open(.exclusive)
      #expect(try await others.count() == 1_200)
      try await others.save(Pier(id: "z", length: 9))
      try await others.close()
    }
    try await items.resume()
    #expect(try await items.count() == (othersWrite ? 1_201 : 1_200))
    try await items.save(Pier(id: "zz", length: 9))
    try await items.close()
    let again = try await open(.exclusive)
    #expect(try await again.count() == (othersWrite ? 1_202 : 1_201))
    #expect(await again.core.verify().problems.isEmpty)
    try await again.close()
  }

  /// A process that was killed in a commit leaves a torn log, which is set aside and reported.
  @Test(arguments: [StoreOptions.Access.exclusive, .shared], [Residency.full, .onDisk(cache: .bytes(0))])
  func aLogThatAKilledProcessLeftIsRecovered(_ access: StoreOptions.Access, _ residency: Residency) async throws {
    let items = try await open(access, residency: residency)
    try await items.save(Pier(id: "a", length: 1))
    await items.suspend()
    let others = try await open(access)
    try await others.save(Pier(id: "b", length: 1))
    try await others.save(Pier(id: "c", length: 1))
    let left = try directory.copy(except: "spots.sqlite-lock")
    await others.suspend()
    try await others.close()
    // In place: it is the same file for the store that comes back.
    for (name, data) in try left.contents() where !name.hasSuffix("-shm") {
      let bytes = name.hasSuffix("-wal") ? data.dropLast(100) : data
      if name == "spots.sqlite" {
        let handle = try FileHandle(forWritingTo: directory.file(name))
        try handle.truncate(atOffset: 0)
        try handle.write(contentsOf: bytes)
        try handle.close()
      } else {
        try bytes.write(to: directory.file(name))
      }
    }
    try await items.resume()
    #expect(try await items.loadAll().map(\.id).starts(with: ["a"]))
    #expect(items.openReport.cutTail != nil)
    try await items.save(Pier(id: "d", length: 1))
    try await items.close()
    let again = try await open(.exclusive)
    #expect(try await again.find(by: "d") != nil)
    #expect(await again.core.verify().problems.isEmpty)
    try await again.close()
  }

  /// A sharer that comes back to a table without an index by revision, made by a process that wrote alone.
  @Test func aSharerFindsTheTablesOfAnExclusiveWriter() async throws {
    let one = try await Store.open(SQLiteBackend(file: url), options: .init(access: .shared, pollInterval: nil))
    let piers = try await one.repository(RepositorySchema<Pier>("piers"))
    try await piers.save(Pier(id: "a", length: 1))
    await one.suspend()
    let writer = try await Store.open(SQLiteBackend(file: url))
    let boats = try await writer.repository(RepositorySchema<Pier>("boats"))
    for number in 0..<5 { try await boats.save(Pier(id: "\(number)", length: number)) }
    try await writer.close()
    try await one.resume()
    let found = try await one.repository(RepositorySchema<Pier>("boats"))
    #expect(try await found.count() == 5)
    let two = try await Store.open(SQLiteBackend(file: url), options: .init(access: .shared, pollInterval: nil))
    try await two.repository(RepositorySchema<Pier>("boats")).delete("3")
    try await one.refresh()
    #expect(try await found.count() == 4)
    try await two.close()
    try await one.close()
  }

  @Test func aReaderIsResumedWithWhatWasCommitted() async throws {
    let writer = try await open(.exclusive)
    try await writer.save(Pier(id: "a", length: 1))
    let reader = try await open(.readOnly)
    await reader.suspend()
    try await writer.save(Pier(id: "b", length: 1))
    #expect(try await reader.count() == 1)
    #expect(await code { try await reader.refresh() } == .suspended)
    try await reader.resume()
    #expect(try await reader.count() == 2)
    try await reader.close()
    try await writer.close()
  }
}
