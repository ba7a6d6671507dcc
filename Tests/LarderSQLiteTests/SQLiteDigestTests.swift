import CSQLite
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

@Suite("SQLite: the digest that a commit's last row carries", .timeLimit(.minutes(1)))
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

  @Test func aRevisionBehindItsBatchIsRefused() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    #expect(code { try backend.commit([record("a", "1", at: 2)], at: 1) } == .unsupported)
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
    try backend.close()
    #expect(try readBack(copy).contents == contents)
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

  // MARK: Logs that keep their space

  @Test func aCheckpointMarksTheLogAsEmptyAndKeepsItsSpace() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    for number: UInt64 in 1...30 { try backend.commit([record("a", "\(number)", at: number)], at: number) }
    let size = try logSize()
    try backend.checkpoint()
    #expect(try logSize() == size + 24 + 4_096)  // the row of the store
    #expect(try directory.contents()["spots.sqlite-wal"]?.prefix(24) == Data(SQLiteLogInspection.emptyMark))
    // Where a header has its salts, SQLite expects those of an empty log's index.
    #expect(SQLiteLogInspection.emptyMark.count == 24 && SQLiteLogInspection.emptyMark[16..<24].allSatisfy { $0 == 0 })
    let killed = try directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") }
    for number: UInt64 in 31...33 { try backend.commit([record("a", "\(number)", at: number)], at: number) }
    #expect(try logSize() == size + 24 + 4_096)
    let later = try directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") }
    try backend.close()
    #expect(try logSize() == 0)
    for access in [StoreOptions.Access.exclusive, .shared, .readOnly] {
      try directory.replace(with: killed)
      let (report, found) = try readBack(url, StoreOptions(access: access))
      #expect(report.commit == Revision(30) && report.replayedCommits == 0 && found == [Self.key("a"): "30 1 30"])
      try directory.replace(with: later)
      // What the earlier generation has left behind the newest frame is no damage.
      let (next, newest) = try readBack(url, StoreOptions(access: access))
      #expect(next.commit == Revision(33) && next.cutTail == nil && newest == [Self.key("a"): "33 1 33"])
    }
  }

  /// The beginning of a log that was shortened alone would be taken for a whole log.
  @Test func aLogIsMarkedOnTheDiskBeforeItIsShortened() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    let value = "\"" + String(repeating: "v", count: 2_000) + "\""
    try backend.commit((0..<4_000).map { record("\($0)", value, at: 1) }, at: 1)
    FaultyFiles.set(.init(operation: .sync, countdown: 1, result: SQLITE_IOERR | 4 << 8), at: log)
    #expect(code { try backend.checkpoint() } == .outcomeUnknown)
    FaultyFiles.set(nil, at: log)
    #expect(try logSize() > 6_000_000)
    try backend.close()
    #expect(try readBack(url).contents.count == 4_000)
  }

  /// A header that was written over the mark, and that the disk lost: behind the mark are frames that it does not know.
  @Test func aMarkBeforeNewerFramesIsDamage() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    for number: UInt64 in 1...3 { try backend.commit([record("a", "\(number)", at: number)], at: number) }
    try backend.checkpoint()
    let mark = try #require(directory.contents()["spots.sqlite-wal"]).prefix(32)
    try backend.checkpoint()
    #expect(try directory.contents()["spots.sqlite-wal"]?.prefix(32) == mark)
    for number: UInt64 in 4...6 { try backend.commit([record("a", "\(number)", at: number)], at: number) }
    var files = try directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") }
    try backend.close()
    files["spots.sqlite-wal"]?.replaceSubrange(0..<32, with: mark)
    try directory.replace(with: files)
    let error = #expect(throws: RepositoryError.self) { _ = try readBack(url) }
    #expect(error?.code == .corrupted && error?.file?.hasSuffix("-wal") == true)
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

  @Test func aLongLogIsShortenedToAThousandPages() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    let value = "\"" + String(repeating: "v", count: 2_000) + "\""
    try backend.commit((0..<4_000).map { record("\($0)", value, at: 1) }, at: 1)
    #expect(try logSize() > 6_000_000)
    try backend.checkpoint()
    #expect(try logSize() == 32 + 1_000 * (24 + 4_096))
    try backend.commit([record("0", "1", at: 2)], at: 2)
    try backend.close()
    #expect(try readBack(url).contents.count == 4_000)
  }
}
