import CSQLite
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

@Suite("SQLite: a log that is marked as empty, and keeps its space", .timeLimit(.minutes(15)))
struct SQLiteMarkedLogTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  private static let address = RecordAddress(collection: "spots", key: RecordKey("a"))

  private func logSize() throws -> Int { try directory.contents()["spots.sqlite-wal"]?.count ?? 0 }

  /// A store on a disk with so many bytes free, whatever disk the tests run on.
  private func backend(free: Int = 1 << 40) -> SQLiteBackend { SQLiteBackend(file: url, disk: SQLiteDisk { _ in free }) }

  /// Leaves the files of an open store as a killed process does.
  private func kill(_ backend: SQLiteBackend) throws {
    let files = try directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") }
    try backend.close()
    try directory.replace(with: files)
  }

  private func expectSound(_ newest: UInt64, _ what: String) throws {
    let files = try directory.contents()
    for recovery in [StoreOptions.Recovery.strict, .cutAndReport] {
      try directory.replace(with: files)
      let (report, found) = try readBack(url, StoreOptions(recovery: recovery))
      #expect(report.commit == Revision(newest) && report.cutTail == nil, "\(what)")
      #expect(found == [Self.address: "\(newest) 1 \(newest)"], "\(what)")
    }
  }

  @Test func aScarceDiskGetsTheSpaceOfTheLogBack() throws {
    let backend = backend(free: 500 << 20)
    _ = try backend.openAll()
    for number: UInt64 in 1...3 { try backend.commit([record("a", "\(number)", at: number)], at: number) }
    try backend.checkpoint()
    #expect(try logSize() == 0)
    try backend.close()
  }

  /// Before, SQLite and Larder both took the log for one that ends with its first frame, and six commits were gone without a word.
  @Test func anOlderFirstSectorIsDamage() throws {
    let backend = backend()
    _ = try backend.openAll()
    for number: UInt64 in 1...6 { try backend.commit([record("a", "\(number)", at: number)], at: number) }
    let older = try #require(try directory.contents()["spots.sqlite-wal"])
    try backend.checkpoint()
    for number: UInt64 in 7...12 { try backend.commit([record("a", "\(number)", at: number)], at: number) }
    try kill(backend)
    var files = try directory.contents()
    files["spots.sqlite-wal"]?.replaceSubrange(..<512, with: older.prefix(512))
    try directory.replace(with: files)
    for recovery in [StoreOptions.Recovery.strict, .cutAndReport] {
      #expect(code { _ = try readBack(url, StoreOptions(recovery: recovery)) } == .corrupted)
    }
    #expect(try directory.contents() == files)
  }

  /// Some builds of SQLite, and other programs, shorten a log that begins anew within a frame of the one before.
  @Test func partOfAnOlderFrameIsNoTornWrite() throws {
    let backend = backend()
    _ = try backend.openAll()
    try backend.execute("PRAGMA journal_size_limit = 32768")
    for number: UInt64 in 1...30 { try backend.commit([record("a", "\(number)", at: number)], at: number) }
    try backend.checkpoint()
    for number: UInt64 in 31...36 { try backend.commit([record("a", "\(number)", at: number)], at: number) }
    #expect(try logSize() == 32_768)
    try kill(backend)
    try expectSound(36, "seven whole frames, and part of an older one")
  }

  /// The header is there, and the frame behind it is one of the generation before: on a full disk, or by a kill between the two.
  @Test func aHeaderWithoutItsFrameIsNoDamage() throws {
    for marksAgain in [false, true] {
      try directory.replace(with: [:])
      let backend = backend()
      _ = try backend.openAll()
      for number: UInt64 in 1...5 { try backend.commit([record("a", "\(number)", at: number)], at: number) }
      try backend.checkpoint()
      FaultyFiles.set(.init(operation: .write, countdown: 2, result: SQLITE_FULL), at: log)
      #expect(code { try backend.commit([record("a", "6", at: 6)], at: 6) } == .full)
      FaultyFiles.set(nil, at: log)
      if marksAgain { try backend.checkpoint() }
      #expect(try directory.contents()["spots.sqlite-wal"]?.starts(with: SQLiteLogInspection.emptyMark) == marksAgain)
      try kill(backend)
      try expectSound(5, "marks again: \(marksAgain)")
    }
  }

  @Test func aMarkedLogOfAKilledStoreIsUsedAgain() throws {
    var backend = backend()
    _ = try backend.openAll()
    for number: UInt64 in 1...9 { try backend.commit([record("a", "\(number)", at: number)], at: number) }
    try backend.checkpoint()
    try kill(backend)
    for round: UInt64 in 1...3 {
      backend = self.backend()
      _ = try backend.openAll()
      try backend.commit([record("a", "\(9 + round)", at: 9 + round)], at: 9 + round)
      if round == 2 { try backend.checkpoint() }
      try kill(backend)
      let files = try directory.contents()
      try expectSound(9 + round, "round \(round)")
      try directory.replace(with: files)
    }
  }

  @Test func aCheckpointMarksTheLogAsEmptyAndKeepsItsSpace() throws {
    let backend = backend()
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
      #expect(report.commit == Revision(30) && report.replayedCommits == 0 && found == [Self.address: "30 1 30"])
      try directory.replace(with: later)
      // What the earlier generation has left behind the newest frame is no damage.
      let (next, newest) = try readBack(url, StoreOptions(access: access))
      #expect(next.commit == Revision(33) && next.cutTail == nil && newest == [Self.address: "33 1 33"])
    }
  }

  /// A header that was written over the mark, and that the disk lost: behind the mark are frames that it does not know.
  @Test func aMarkBeforeNewerFramesIsDamage() throws {
    let backend = backend()
    _ = try backend.openAll()
    for number: UInt64 in 1...3 { try backend.commit([record("a", "\(number)", at: number)], at: number) }
    try backend.checkpoint()
    let mark = try #require(directory.contents()["spots.sqlite-wal"]).prefix(32)
    try backend.checkpoint()
    #expect(try directory.contents()["spots.sqlite-wal"]?.prefix(32) == mark)
    var kept: [[String: Data]] = []
    for number: UInt64 in 4...6 {
      try backend.commit([record("a", "\(number)", at: number)], at: number)
      var files = try directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") }
      files["spots.sqlite-wal"]?.replaceSubrange(0..<32, with: mark)
      kept.append(files)
    }
    try backend.close()
    try directory.replace(with: kept[0])
    #expect(try readBack(url).report.cutTail != nil)
    for files in kept {
      try directory.replace(with: files)
      #expect(code { _ = try readBack(url, StoreOptions(recovery: .strict)) } == .corrupted)
    }
    let error = #expect(throws: RepositoryError.self) { _ = try readBack(url) }
    #expect(error?.code == .corrupted && error?.file?.hasSuffix("-wal") == true)
  }

  @Test func aLongLogIsShortenedToAThousandPages() throws {
    let backend = backend()
    _ = try backend.openAll()
    let value = "\"" + String(repeating: "v", count: 2_000) + "\""
    try backend.commit((0..<4_000).map { record("\($0)", value, at: 1) }, at: 1)
    #expect(try logSize() > 6_000_000)
    try backend.checkpoint()
    try backend.commit([record("0", "1", at: 2)], at: 2)
    #expect(try logSize() == 32 + 1_000 * (24 + 4_096))
    try backend.close()
    #expect(try readBack(url).contents.count == 4_000)
  }
}
