import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

/// A disk that gives fewer bytes than there are.
@Suite("SQLite: reads that are too short", .timeLimit(.minutes(1)))
struct SQLiteShortReadTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  /// Before, the whole log was taken for torn and was cut, and zeros were folded from it into the database.
  @Test func aLogThatIsReadTooShortIsNotTakenForATornOne() throws {
    try makeUnclosedStore()
    for count in 1...4 {
      let files = FaultyFileSystem(POSIXFileSystem())
      files.script(.read, "-wal", Fault(0, .shortRead), skipping: count)
      let backend = SQLiteBackend(file: url, fileSystem: files)
      let failure = code { _ = try backend.openAll() }
      #expect(files.scriptedHits == 1 && failure == .inputOutput, "read \(count)")
      backend.abandon()
    }
    let (report, contents) = try readBack(url)
    #expect(report.cutTail == nil && contents.count == 3)
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
