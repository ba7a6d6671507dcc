import Foundation
import Larder
import Synchronization
import TestSupport
import Testing

@testable import LarderSQLite

/// On Apple platforms a sync of SQLite may end in the drive's cache, and the log is synced once more through a descriptor of Larder's.
///
/// A setting takes the same way here.
@Suite("SQLite: the log's own sync", .timeLimit(.minutes(15)))
struct SQLiteOwnSyncTests: SQLiteSuite {
  let directory: TemporaryDirectory
  private let files = RecordingFileSystem()

  init() throws { directory = try Self.makeDirectory() }

  private func openStore(
    _ access: StoreOptions.Access = .exclusive, needsOwnSync: Bool = true, files: (any FileSystem)? = nil
  ) throws -> SQLiteBackend {
    let disk = SQLiteDisk(freeBytes: { _ in 1 << 40 }, needsOwnSync: needsOwnSync)
    let backend = SQLiteBackend(file: url, fileSystem: files ?? self.files, disk: disk)
    _ = try backend.openAll(StoreOptions(access: access, lockTimeout: .milliseconds(50)))
    return backend
  }

  /// Returns how often a body has synced the log: SQLite, and Larder.
  private func syncs(_ body: () throws -> Void) rethrows -> [Int] {
    let ownSync = "sync spots.sqlite-wal"
    let before = (FaultyFiles.count(.sync, at: log), files.steps.count { $0 == ownSync })
    try body()
    return [FaultyFiles.count(.sync, at: log) - before.0, files.steps.count { $0 == ownSync } - before.1]
  }

  private func commit(_ backend: SQLiteBackend, _ number: UInt64, _ durability: Durability) throws {
    _ = try backend.beginCommit(after: Revision(number - 1), durability)
    try backend.commit([record("a", "\(number)", at: number)], at: number, durability)
  }

  @Test(arguments: [StoreOptions.Access.exclusive, .shared])
  func eachDurableCommitAndFlushIsFollowedByOne(_ access: StoreOptions.Access) throws {
    let backend = try openStore(access)
    try commit(backend, 1, .durable)
    #expect(try syncs { try commit(backend, 2, .durable) } == [1, 1])
    #expect(try syncs { try commit(backend, 3, .ordered) } == [1, 0], "a sync of SQLite is a barrier at least")
    #expect(try syncs { try backend.flush() } == [1, 1], "an ordered commit is flushed")
    #expect(try syncs { try backend.flush() } == [0, 0])
    #expect(try syncs { try commit(backend, 4, .buffered) } == [1, 1], "the first one marks the log, durably")
    #expect(try syncs { try commit(backend, 5, .buffered) } == [0, 0])
    #expect(try syncs { try backend.flush() } == [1, 1])
    #expect(try syncs { try commit(backend, 6, .buffered) } == [0, 0])
    #expect(try syncs { try backend.checkpoint() }[1] >= 1, "what is folded survives a power cut, too")
    try backend.close()
    #expect(try readBack(url).contents.count == 1)
    #expect(try directory.contents().keys.sorted() == ["spots.sqlite"])
  }

  /// The last process folds the log on a connection of its own, and a recovery folds before the first commit.
  @Test func whatAShareFoldsAtItsEndAndARecoveryAtItsBeginningIsSyncedToo() throws {
    let backend = try openStore(.shared)
    try commit(backend, 1, .durable)
    #expect(try syncs { try backend.close() }[1] == 1)

    let killed = try openStore()
    try commit(killed, 2, .durable)
    let image = try directory.contents().filter { !$0.key.hasSuffix("-shm") && !$0.key.hasSuffix("-lock") }
    try killed.close()
    var counts: [Int] = []
    for needsOwnSync in [false, true] {
      try directory.replace(with: image)
      var backend: SQLiteBackend?
      counts.append(try syncs { backend = try openStore(needsOwnSync: needsOwnSync) }[1])
      try backend?.close()
      #expect(try readBack(url).report.commit == Revision(2))
    }
    #expect(counts[1] > counts[0], "\(counts)")
  }

  @Test func elsewhereSQLitesOwnSyncIsEnough() throws {
    let backend = try openStore(needsOwnSync: false)
    try commit(backend, 1, .durable)
    #expect(try syncs { try commit(backend, 2, .durable) } == [1, 0])
    #expect(try syncs { try commit(backend, 3, .ordered) } == [1, 0])
    try backend.close()
    #expect(!files.steps.contains("sync spots.sqlite-wal"))
  }

  /// Closing the descriptor of a log must leave the locks of other connections of this process alone.
  @Test func closingTheDescriptorDropsNoLock() throws {
    let (one, two) = (try openStore(.shared), try openStore(.shared))
    try commit(one, 1, .durable)
    #expect(try one.beginCommit(after: Revision(1), .durable) == nil)
    try two.close()
    let three = try openStore(.shared)
    #expect(code { _ = try three.beginCommit(after: Revision(1), .durable) } == .locked)
    try one.commit([record("b", "1", at: 2)], at: 2)
    try three.close()
    try one.close()
    #expect(try readBack(url).contents.count == 2)
  }

  @Test(arguments: [true, false]) func oneThatFailsPoisonsAsAFailedSyncOfSQLite(_ flushes: Bool) throws {
    let failing = FailingLog()
    let backend = try openStore(files: failing)
    try commit(backend, 1, .durable)
    if flushes { try commit(backend, 2, .ordered) }
    failing.fails.store(true, ordering: .sequentiallyConsistent)
    #expect(code { if flushes { try backend.flush() } else { try commit(backend, 2, .durable) } } == .outcomeUnknown)
    failing.fails.store(false, ordering: .sequentiallyConsistent)
    #expect(code { try commit(backend, 3, .durable) } == .poisoned)
    try backend.close()
    let found = try readBack(url).report.commit
    #expect(found == Revision(1) || found == Revision(2))
  }
}

/// The real file system, whose syncs of a log fail on request.
private final class FailingLog: ForwardingFileSystem {
  let base: any FileSystem = POSIXFileSystem()
  let fails = Atomic(false)

  func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
    try base.open(path, writable: writable).map { File($0, self) }
  }

  private final class File: ForwardingFile {
    let base: any OpenFile
    private let files: FailingLog

    init(_ base: any OpenFile, _ files: FailingLog) {
      self.base = base
      self.files = files
    }

    func sync() throws(RepositoryError) {
      if files.fails.load(ordering: .sequentiallyConsistent) { throw RepositoryError(.inputOutput, "a planned fault", file: path) }
      try base.sync()
    }
  }
}
