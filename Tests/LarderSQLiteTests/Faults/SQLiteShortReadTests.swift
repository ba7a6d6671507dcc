import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

/// A disk that gives fewer bytes than there are.
@Suite("SQLite: reads that are too short", .timeLimit(.minutes(15)))
struct SQLiteShortReadTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  /// Before, the whole log was taken for torn and was cut, and zeros were folded from it into the database.
  @Test func aLogThatIsReadTooShortTwiceIsNotTakenForATornOne() throws {
    try makeUnclosedStore()
    for count in 1...4 {
      let (failure, _) = try openShortening(2, behind: count)
      #expect(failure == .inputOutput, "read \(count)")
    }
    let (report, contents) = try readBack(url)
    #expect(report.cutTail == nil && contents.count == 3)
  }

  /// A log that grows meanwhile looks the same.
  @Test func aLogThatIsReadTooShortOnceIsReadAgain() throws {
    for count in 1...4 {
      try directory.replace(with: [:])
      try makeUnclosedStore()
      let (failure, records) = try openShortening(1, behind: count)
      #expect(failure == nil && records == 3, "read \(count)")
    }
  }

  /// Opens the store with some reads of the log too short, behind some that are not.
  private func openShortening(_ reads: Int, behind count: Int) throws -> (failure: RepositoryError.Code?, records: Int) {
    let files = FaultyFileSystem(POSIXFileSystem())
    for number in 0..<reads { files.script(.read, "-wal", Fault(0, .shortRead), skipping: number == 0 ? count : 0) }
    let backend = SQLiteBackend(file: url, fileSystem: files)
    var records = 0
    let failure = code { records = try backend.openAll().contents.count }
    #expect(files.scriptedHits == reads)
    backend.abandon()
    return (failure, records)
  }

  /// Before, the beginning of its header was taken for a file that a creation has not finished, and it was removed.
  @Test func aDatabaseThatIsReadTooShortIsNoLeftover() throws {
    let other = directory.file("spots.sqlite-new")
    let mine = SQLiteBackend(file: other)
    _ = try mine.openAll()
    try mine.commit([record("a", "1", at: 1)], at: 1)
    try mine.close()
    let files = FaultyFileSystem(POSIXFileSystem())
    files.script(.read, "spots.sqlite-new", Fault(0, .shortRead))
    let backend = SQLiteBackend(file: url, fileSystem: files)
    _ = try backend.openAll()
    try backend.close()
    #expect(files.scriptedHits == 1)
    #expect(try readBack(other).contents.count == 1)
  }
}
