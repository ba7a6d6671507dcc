import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

@Suite("SQLite: the backend of a shared store", .timeLimit(.minutes(15)))
struct SharedBackendTests: SQLiteSuite {
  let directory: TemporaryDirectory
  let shared = StoreOptions(access: .shared, lockTimeout: .milliseconds(50))

  init() throws { directory = try Self.makeDirectory() }

  private func open() throws -> SQLiteBackend {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll(shared)
    return backend
  }

  @Test func aWriteLockThatIsNotLetGoIsLockedAfterTheTimeoutAndNothingElse() throws {
    let (one, two) = (try open(), try open())
    #expect(try one.beginCommit(after: .zero, .durable) == nil)
    let start = ContinuousClock.now
    #expect(code { _ = try two.beginCommit(after: .zero, .durable) } == .locked)
    #expect(ContinuousClock.now - start >= .milliseconds(50))
    #expect(try two.foreignCommits(after: .zero) == nil)
    one.cancelCommit()
    #expect(try two.beginCommit(after: .zero, .durable) == nil)
    try two.commit([record("a", "1", at: 1)], at: 1)
    #expect(try one.beginCommit(after: .zero, .durable)?.records.count == 1)
    try one.commit([record("b", "1", at: 2)], at: 2)
    try two.close()
    try one.close()
  }

  @Test func aCommitThatFailsLetsTheOthersGoOn() throws {
    let (one, two) = (try open(), try open())
    _ = try one.beginCommit(after: .zero, .durable)
    #expect(code { try one.commit([record("a", "1", at: 5)], at: 5) } == .unsupported)
    _ = try two.beginCommit(after: .zero, .durable)
    try two.commit([record("a", "1", at: 1)], at: 1)
    try two.close()
    try one.close()
  }

  @Test func whatOthersChangedFromOutsideIsDamage() throws {
    let (one, two) = (try open(), try open())
    _ = try one.beginCommit(after: .zero, .durable)
    try one.commit([record("a", "1", at: 1)], at: 1)
    do { try ForeignDatabase(url).run("UPDATE spots SET value = '2'") }
    #expect(code { _ = try two.foreignCommits(after: .zero) } == .corrupted)
    #expect(code { _ = try two.beginCommit(after: .zero, .durable) } == .corrupted)
    #expect(code { _ = try one.beginCommit(after: Revision(1), .durable) } == nil)
    one.cancelCommit()
    try two.close()
    try one.close()
  }

  @Test func readingByRevisionUsesAnIndex() throws {
    let one = try open()
    _ = try one.beginCommit(after: .zero, .durable)
    try one.commit([record("a", "1", at: 1), record("b", nil, at: 1)], at: 1)
    try one.close()
    let database = try ForeignDatabase(url)
    for table in ["spots", "larder_tombstones"] {
      let plan = try database.text("EXPLAIN QUERY PLAN SELECT * FROM \(table) WHERE revision > 5", column: 3)
      #expect(plan.contains("USING INDEX larder_revisions_\(table)"), "\(plan)")
    }
  }

  /// Runs statements while the index is one of no rows, and makes it what it was.
  private func withoutIndex(_ sql: String) throws {
    let index = "WHERE name = 'larder_revisions_spots'"
    let text = try ForeignDatabase(url).text("SELECT sql FROM sqlite_schema \(index)", column: 0)
    try ForeignDatabase(url).run("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = sql || ' WHERE revision < 0' \(index)")
    try ForeignDatabase(url).run(sql)
    try ForeignDatabase(url).run("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = '\(text)' \(index)")
    // So that connections that are open look at it again.
    let database = try ForeignDatabase(url)
    try database.run("PRAGMA schema_version = \(database.number("PRAGMA schema_version") + 1)")
  }

  @Test func anIndexThatHasLostItsEntriesIsNoticedWhenItIsUsed() throws {
    let (one, two) = (try open(), try open())
    _ = try one.beginCommit(after: .zero, .durable)
    try one.commit([record("a", "1", at: 1)], at: 1)
    try withoutIndex("REINDEX")
    #expect(code { _ = try two.foreignCommits(after: .zero) } == .corrupted)
    #expect(code { _ = try two.beginCommit(after: .zero, .durable) } == .corrupted)
    try ForeignDatabase(url).run("REINDEX")
    #expect(try two.foreignCommits(after: .zero)?.records.count == 1)
    try two.close()
    try one.close()
  }

  @Test func anEntryThatLeadsNowhereIsNoticedWhenItIsUsed() throws {
    let (one, two) = (try open(), try open())
    _ = try one.beginCommit(after: .zero, .durable)
    try one.commit([record("a", "1", at: 1), record("b", "1", at: 1)], at: 1)
    try withoutIndex("DELETE FROM spots WHERE id = 'b'")
    #expect(code { _ = try two.foreignCommits(after: .zero) } == .corrupted)
    one.abandon()
    two.abandon()
  }

  @Test func anIndexThatHasLostAnEntryIsNoticedWhenTheStoreIsOpened() throws {
    let one = try open()
    for commit in 1...3 as ClosedRange<UInt64> {
      _ = try one.beginCommit(after: Revision(commit - 1), .durable)
      try one.commit([record("\(commit)", "1", at: commit)], at: commit)
    }
    try one.close()
    // The row is taken out and put back as it was, and the index has seen neither.
    try ForeignDatabase(url).run("CREATE TABLE aside AS SELECT * FROM spots WHERE id = '2'; DELETE FROM spots WHERE id = '2'")
    try withoutIndex("INSERT INTO spots SELECT * FROM aside; DROP TABLE aside")
    #expect(try readBack(url).contents.count == 3)
    #expect(code { _ = try SQLiteBackend(file: url).openAll(shared) } == .corrupted)
    try ForeignDatabase(url).run("REINDEX")
    try open().close()
  }

  @Test func anExclusiveStoreGetsTheIndexWhenItIsFirstShared() throws {
    let exclusive = SQLiteBackend(file: url)
    _ = try exclusive.openAll()
    try exclusive.commit([record("a", "1", at: 1)], at: 1)
    try exclusive.close()
    let count = "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name LIKE 'larder_revisions_%'"
    #expect(try ForeignDatabase(url).number(count) == 0)
    try open().close()
    #expect(try ForeignDatabase(url).number(count) == 2)
    #expect(try readBack(url).contents.count == 1)
    #expect(try readBack(url, StoreOptions(access: .readOnly)).contents.count == 1)
  }

  @Test func aBufferedCommitKeepsItsMarkWhileOthersHaveTheStoreOpen() throws {
    let (one, two) = (try open(), try open())
    _ = try one.beginCommit(after: .zero, .buffered)
    try one.commit([record("a", "1", at: 1)], at: 1, .buffered)
    #expect(try two.foreignCommits(after: .zero)?.commit == Revision(1))
    try two.checkpoint()
    #expect(try ForeignDatabase(url).number("SELECT buffered FROM larder_store") == 1)
    try one.close()
    try two.close()
    #expect(try ForeignDatabase(url).number("SELECT buffered FROM larder_store") == 0)
  }

  @Test func aLogThatOthersWriteWithoutPauseStaysBounded() throws {
    let (one, two) = (try open(), try open())
    let value = "\"" + String(repeating: "x", count: 3_000) + "\""
    var commit: UInt64 = 0
    for step in 0..<6_000 {
      let backend = step % 2 == 0 ? one : two
      _ = try backend.beginCommit(after: Revision(commit), .buffered)
      commit += 1
      try backend.commit([record("\(step % 100)", value, at: commit)], at: commit, .buffered)
    }
    let size = try FileManager.default.attributesOfItem(atPath: url.path + "-wal")[.size] as? Int ?? 0
    print("the log of 6,000 commits: \(size) bytes")
    #expect(size > 0 && size < 5_000 * 4_120)
    try one.close()
    try two.close()
  }
}
