import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

@Suite("SQLite: the digest that a commit's last row carries", .timeLimit(.minutes(15)))
struct SQLiteDigestTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  private func logSize() throws -> Int { try directory.contents()["spots.sqlite-wal"]?.count ?? 0 }

  private func storedCommit() throws -> Int64 { try ForeignDatabase(url).number("SELECT commit_number FROM larder_store") }

  private let contents: Contents = [
    key("spot-1"): "1 1 \"1\"", key("spot-2"): "2 1 \"2\"", key("spot-3"): "3 1 \"3\"",
  ]

  private static func key(_ id: String) -> RecordAddress { RecordAddress(collection: "spots", key: RecordKey(id)) }

  // MARK: What is written

  @Test func aCommitOfOneRecordWritesOnePageBehindTheFirstOfALog() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    for number: UInt64 in 2...20 {
      let before = try logSize()
      try backend.commit([record("a", "\(number)", at: number)], at: number)
      #expect(try logSize() - before == 24 + 4_096)
    }
    #expect(try storedCommit() == 1)
    // A record that a migration rewrites keeps its revision, so no row tells of the commit.
    try backend.commit([record("a", "x", at: 20)], at: 21)
    #expect(try storedCommit() == 21)
    try backend.commit([record("a", "2", at: 22)], at: 22, .buffered)
    #expect(try storedCommit() == 22)
    try backend.commit([record("a", "3", at: 23)], at: 23, .buffered)
    #expect(try storedCommit() == 22)
    #expect(backend.verify().isSound && backend.verify().commit == Revision(23))
    try backend.checkpoint()
    #expect(try storedCommit() == 23)
    try backend.close()
    #expect(try readBack(url).report.commit == Revision(23))
  }

  @Test func aLogThatBeganWithoutTheRowGetsItWithTheNextCommit() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    for number: UInt64 in 1...3 { try backend.commit([record("a", "\(number)", at: number)], at: number) }
    // So the next commit begins the log anew, and nothing has told this process so.
    #expect(try ForeignDatabase(url).number("PRAGMA wal_checkpoint") == 0)
    try backend.commit([record("a", "4", at: 4)], at: 4)
    #expect(try storedCommit() == 1)
    try backend.commit([record("a", "5", at: 5)], at: 5)
    #expect(try storedCommit() == 5)
    try backend.close()
  }

  @Test func aSharedStoreWritesItsRowInEveryCommit() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll(StoreOptions(access: .shared))
    for number: UInt64 in 1...3 {
      _ = try backend.beginCommit(after: Revision(number - 1), .durable)
      try backend.commit([record("a", "\(number)", at: number)], at: number)
      #expect(try storedCommit() == Int64(number))
    }
    try backend.close()
  }

  @Test func aRevisionAboveItsBatchIsRefused() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    #expect(code { try backend.commit([record("a", "1", at: 2)], at: 1) } == .unsupported)
    let deletion = WriteBatch(records: [record("a", nil, at: 2)], commits: 1...1, durability: .durable)
    #expect(code { try backend.commitOnFullDisk(deletion) } == .unsupported)
    try backend.commit([record("a", "1", at: 1)], at: 1)
    try backend.close()
  }

  @Test func aCopyHasTheRowOfItsNewestCommit() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    for number: UInt64 in 1...3 { try backend.commit([record("spot-\(number)", "\"\(number)\"", at: number)], at: number) }
    let copy = directory.file("copy.sqlite")
    try backend.backup(to: copy)
    #expect(try ForeignDatabase(copy).number("SELECT commit_number FROM larder_store") == 3)
    #expect(try readBack(copy).contents == contents)
    // Another program writes: its lock keeps nothing from being copied.
    try backend.commit([record("spot-1", "4", at: 4)], at: 4)
    try backend.commit([record("spot-1", "5", at: 5)], at: 5)
    let other = try ForeignDatabase(url)
    try other.run("BEGIN IMMEDIATE")
    let second = directory.file("second.sqlite")
    try backend.backup(to: second)
    try other.run("ROLLBACK")
    try backend.close()
    #expect(try readBack(second).contents[Self.key("spot-1")] == "5 1 5")
  }

  // MARK: What a killed process leaves

  @Test(arguments: [StoreOptions.Access.exclusive, .shared, .readOnly])
  func aKilledStoreIsReadUpToItsNewestCommit(_ access: StoreOptions.Access) throws {
    try makeUnclosedStore(3)
    let backend = SQLiteBackend(file: url)
    let (report, found) = try backend.openAll(StoreOptions(access: access))
    #expect(report.commit == Revision(3) && report.recordCount == 3 && report.cutTail == nil && found == contents)
    // Before anything else is written: processes that share the store ask its row.
    #expect(try storedCommit() == (access == .readOnly ? 1 : 3))
    try backend.close()
  }

  @Test func aDeletionCarriesTheDigestToo() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    for number: UInt64 in 1...3 { try backend.commit([record("spot-\(number)", "\"\(number)\"", at: number)], at: number) }
    try backend.commit([record("spot-1", nil, at: 4)], at: 4)
    let files = try directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") }
    try backend.close()
    try directory.replace(with: files)
    #expect(try storedCommit() == 1)
    try directory.replace(with: files)
    let (report, found) = try readBack(url)
    #expect(report.commit == Revision(4) && found[Self.key("spot-1")] == "4 1 deleted" && found.count == 3)
  }

  /// A program that folds the log of a killed store leaves the row behind for good.
  @Test(arguments: [StoreOptions.Access.exclusive, .shared, .readOnly])
  func aLogThatAnotherProgramFoldedIsNoDamage(_ access: StoreOptions.Access) throws {
    try makeUnclosedStore(3)
    #expect(try storedCommit() == 1)  // opens, reads, and folds as it closes
    #expect(try directory.contents()["spots.sqlite-wal"] == nil)
    let (report, found) = try readBack(url, StoreOptions(access: access))
    #expect(report.commit == Revision(3) && found == contents)
  }

  @Test(arguments: [
    "DELETE FROM spots WHERE id = 'spot-1'", "UPDATE spots SET crc = crc + (1 << 32) WHERE revision = 3",
    "UPDATE spots SET crc = crc & 4294967295 WHERE revision = 3", "UPDATE spots SET revision = 4 WHERE revision = 3",
    "INSERT INTO spots SELECT 'spot-4', revision, version, crc, value FROM spots WHERE revision = 3",
  ])
  func aChangeOfAKilledStoreIsDamage(_ sql: String) throws {
    try makeUnclosedStore(3)
    do { try ForeignDatabase(url).run(sql) }
    for access in [StoreOptions.Access.exclusive, .readOnly] {
      #expect(code { _ = try readBack(url, StoreOptions(access: access)) } == .corrupted)
    }
  }

  @Test func aReaderFollowsCommitsThatTheStoresRowDoesNotTellOf() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    let reader = SQLiteBackend(file: url)
    #expect(try reader.openAll(StoreOptions(access: .readOnly)).report.commit == Revision(1))
    #expect(try reader.foreignCommits(after: Revision(1)) == nil)
    try backend.commit([record("a", "2", at: 2), record("b", "2", at: 2)], at: 2)
    try backend.commit([record("a", nil, at: 3)], at: 3)
    let commits = try #require(try reader.foreignCommits(after: Revision(1)))
    #expect(commits.commit == Revision(3) && commits.records.map(text).sorted() == ["2 1 2", "3 1 deleted"])
    #expect(try reader.foreignCommits(after: Revision(3)) == nil)
    // The process is killed, and another program folds its log.
    let files = try directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") }
    try backend.close()
    try directory.replace(with: files)
    #expect(try storedCommit() == 1)
    #expect(try reader.foreignCommits(after: Revision(3)) == nil)
    #expect(try reader.foreignCommits(after: Revision(2))?.commit == Revision(3))
    #expect(code { _ = try reader.foreignCommits(after: Revision(4)) } == .corrupted)
    try reader.close()
  }

  @Test(arguments: ["spots", "notes"]) func commitsOfAnotherProgramAreNotWrittenOver(_ collection: String) throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    for number: UInt64 in 1...2 { try backend.commit([record("a", "\(number)", at: number)], at: number) }
    do {
      // Another writer of stores, as where no lock keeps it away.
      let opened = try SQLiteConnection(path: main, .readWrite)
      let other = try #require(opened)
      let scan = try SQLiteScan(other)
      while try scan.next() != nil {}
      let writer = try SQLiteWriter(other, row: scan.row, collections: scan.collections, disk: .system)
      other.logPages.pointee = 3
      try writer.write(WriteBatch(records: [record("b", "3", at: 3, in: collection)], commits: 3...3, durability: .durable))
      #expect(writer.storedRow.commit == 1)
      other.keepLogOnClose()
    }
    #expect(code { try backend.commit([record("a", "3", at: 3)], at: 3) } == .locked)
    try backend.close()
    #expect(try readBack(url).contents.values.sorted() == ["2 1 2", "3 1 3"])
  }

  /// A commit of one record is one frame; without its header nothing else of it is left.
  @Test func aLastFrameWithoutItsHeaderIsReported() throws {
    try makeUnclosedStore(3)
    var files = try directory.contents()
    let start = try logSize() - (24 + 4_096)
    files["spots.sqlite-wal"]?.replaceSubrange(start..<start + 24, with: Data(count: 24))
    try directory.replace(with: files)
    #expect(code { _ = try readBack(url, StoreOptions(recovery: .strict)) } == .corrupted)
    let (report, found) = try readBack(url)
    #expect(report.commit == Revision(2) && report.cutTail?.offset == UInt64(start) && found.count == 2)
  }

  /// The rows of the records say nothing of these: only the checksum of the store's row does.
  @Test(arguments: [
    "commit_number = commit_number + 1", "tombstones_since = 1", "buffered = 1", "id = '00000000-0000-4000-8000-000000000000'",
  ])
  func aChangedRowOfTheStoreIsDamage(_ change: String) throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    for number: UInt64 in 1...3 { try backend.commit([record("spot-\(number)", "\"\(number)\"", at: number)], at: number) }
    try backend.close()
    try ForeignDatabase(url).run("UPDATE larder_store SET \(change)")
    for access in [StoreOptions.Access.exclusive, .readOnly] {
      #expect(code { _ = try readBack(url, StoreOptions(access: access)) } == .corrupted, "\(access)")
    }
  }
}
