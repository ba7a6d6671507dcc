import CSQLite
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

/// SQLite takes the salts of a log's next generation from its header, also from one that a kill has cut short.
@Suite("SQLite: a folded log with half a header", .timeLimit(.minutes(15)))
struct TornHeaderTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  /// Leaves a store of four commits that are folded, and a log in which a kill has cut the next header after some bytes.
  ///
  /// From 19 bytes on, the frames that are left are at most five generations ahead of the salt that this header lends.
  private func makeStore(withHeaderCutTo count: Int) throws {
    let backend = SQLiteBackend(file: url, disk: SQLiteDisk { _ in 1 << 40 })
    _ = try backend.openAll()
    for number: UInt64 in 1...4 { try backend.commit([record("a", "\(number)", at: number)], at: number) }
    try backend.checkpoint()
    var files = try leftByKill()
    try backend.close()
    var log = try #require(files["spots.sqlite-wal"])
    for frame in 0..<((log.count - 32) / 4_120) { log[32 + frame * 4_120 + 11] = 5 }
    // The salt of the frames, less two.
    let salt = log[40..<43] + [3]
    let header = Data([0x37, 0x7F, 0x06, 0x82, 0, 0x2D, 0xE2, 0x18, 0, 0, 0x10, 0, 0, 0, 0, 1]) + salt + Data(repeating: 0xAB, count: 12)
    log.replaceSubrange(0..<count, with: header.prefix(count))
    files["spots.sqlite-wal"] = log
    try directory.replace(with: files)
  }

  private func leftByKill() throws -> [String: Data] {
    try directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") }
  }

  @Test(arguments: [16, 17, 19, 20, 23, 24, 31]) func halfAHeaderDoesNotMakeOlderFramesLookTorn(_ count: Int) throws {
    try makeStore(withHeaderCutTo: count)
    let backend = SQLiteBackend(file: url)
    let report = try backend.openAll().report
    #expect(report.isClean && report.commit == Revision(4), "\(report)")
    try backend.commit([record("a", "5", at: 5)], at: 5)
    let left = try leftByKill()
    try backend.close()
    for recovery in [StoreOptions.Recovery.strict, .cutAndReport] {
      try directory.replace(with: left)
      let (report, found) = try readBack(url, StoreOptions(recovery: recovery))
      #expect(report.commit == Revision(5) && report.cutTail == nil)
      #expect(Array(found.values) == ["5 1 5"])
    }
  }

  #if os(Linux)
    /// A descriptor of the database that is closed drops every lock that this process has on it.
    @Test func emptyingTheLogKeepsTheLocksOfAnotherConnectionOfTheProcess() throws {
      try makeStore(withHeaderCutTo: 20)
      let reader = try ForeignDatabase(url)
      try reader.run("BEGIN; SELECT * FROM spots")
      let before = try heldLocks()
      try #require(!before.isEmpty)
      let backend = SQLiteBackend(file: url)
      _ = try backend.openAll()
      #expect(before.isSubset(of: try heldLocks()))
      #expect(try reader.number("SELECT count(*) FROM spots") == 1)
      try reader.run("COMMIT")
      try backend.commit([record("a", "5", at: 5)], at: 5)
      #expect(try reader.text("SELECT value FROM spots", column: 0) == "5")
      try backend.close()
    }

    /// Returns the POSIX locks of this process on the database: for each the mode and the range.
    private func heldLocks() throws -> Set<String> {
      var locks: Set<String> = []
      for descriptor in try directory.descriptors() {
        guard try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)") == main else { continue }
        for line in try String(contentsOfFile: "/proc/self/fdinfo/\(descriptor)", encoding: .utf8).split(separator: "\n") {
          let columns = line.split(whereSeparator: \.isWhitespace)
          if columns.count > 3, columns[0] == "lock:", columns[2] == "POSIX" { locks.insert(columns[3...].joined(separator: " ")) }
        }
      }
      return locks
    }
  #endif

  /// The commit is none of Larder's, so the row of the store does not show it.
  @Test func aCommitOfAnotherProgramIsNotEmptiedAway() throws {
    try makeStore(withHeaderCutTo: 20)
    let backend = SQLiteBackend(file: url)
    let report = try backend.open(.init()) { _ in }
    let other = try ForeignDatabase(url)
    other.keepLog()
    try other.run("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')")
    #expect(code { _ = try backend.recover(report) } == .locked)
    #expect(try other.text("SELECT text FROM notes", column: 0) == "mine")
    backend.abandon()
  }
}
