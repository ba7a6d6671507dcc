import CSQLite
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

@Suite("SQLite: logs that do not belong to their database", .timeLimit(.minutes(15)))
struct LogDefectTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  private func expectRefusal(_ access: StoreOptions.Access, _ what: String) throws {
    let before = try directory.contents().filter { !$0.key.hasSuffix("-shm") }
    #expect(code { _ = try readBack(url, StoreOptions(access: access)) } == .corrupted, "\(what), \(access)")
    #expect(try directory.contents().filter { !$0.key.hasSuffix("-shm") } == before, "\(what), \(access)")
  }

  @Test(arguments: [false, true]) func aReaderRefusesTheLogOfAnotherStore(hasIndex: Bool) throws {
    try makeUnclosedStore(8)
    let log = try #require(directory.contents()["spots.sqlite-wal"])
    try directory.replace(with: [:])
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("mine", "1", at: 1)], at: 1)
    try backend.close()
    try log.write(to: URL(filePath: main + "-wal"))
    if hasIndex { try Data(count: 32_768).write(to: URL(filePath: main + "-shm")) }
    for access in [StoreOptions.Access.readOnly, .exclusive, .shared] { try expectRefusal(access, "index \(hasIndex)") }
  }

  /// Without an index SQLite would try for ten seconds to read such a log, and say that the store is in use.
  @Test func aReaderOfALogWithoutAHeaderRefusesWhatWasLostAndNothingElse() throws {
    try makeUnclosedStore(8)
    let whole = try #require(directory.contents()["spots.sqlite-wal"])
    for offset in [0, 17, 25] {
      var log = whole
      log[offset] ^= 1
      try log.write(to: URL(filePath: main + "-wal"))
      try expectRefusal(.readOnly, "byte \(offset)")
    }
    // A header that was never written whole had no commit behind it.
    for count in [1, 31] {
      try whole.prefix(count).write(to: URL(filePath: main + "-wal"))
      let before = try directory.contents()
      let found = try readBack(url, StoreOptions(access: .readOnly)).contents.count
      #expect(found < 8, "\(count) bytes")
      #expect(try directory.contents() == before, "\(count) bytes")
    }
  }

  @Test func aReaderRefusesALogThatItsDatabaseHasOutgrown() throws {
    try makeUnclosedStore(3)
    let log = try #require(directory.contents()["spots.sqlite-wal"])
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("spot-4", "1", at: 4)], at: 4)
    try backend.close()
    try log.write(to: URL(filePath: main + "-wal"))
    try expectRefusal(.readOnly, "an older log")
  }

  @Test func aSharedOpenThatIsRefusedKeepsAnEmptyLog() throws {
    let options = StoreOptions(access: .shared, lockTimeout: .milliseconds(20))
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll(options)
    _ = try backend.beginCommit(after: .zero, .durable)
    try backend.commit([record("a", "1", at: 1)], at: 1)
    try backend.close()
    do {
      let foreign = try ForeignDatabase(url)
      try foreign.run("DROP INDEX larder_revisions_spots; CREATE INDEX larder_revisions_spots ON spots (revision) WHERE revision < 0")
    }
    try Data().write(to: URL(filePath: log))
    #expect(code { _ = try readBack(url, options) } != nil)
    #expect(try directory.contents()["spots.sqlite-wal"] == Data())
  }

  /// A disk brings back the first bytes of the log as they were before it began anew: SQLite takes such a log for an empty one.
  @Test(arguments: [32, 512, 4_096]) func anOlderHeaderDoesNotHideTheCommitsBehindIt(count: Int) throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    for number: UInt64 in 1...3 { try backend.commit([record("spot-\(number)", "\"\(number)\"", at: number)], at: number) }
    let older = try #require(directory.contents()["spots.sqlite-wal"])
    try backend.checkpoint()
    for number: UInt64 in 4...9 { try backend.commit([record("spot-\(number)", "\"\(number)\"", at: number)], at: number) }
    var files = try directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") }
    try backend.close()
    files["spots.sqlite-wal"]?.replaceSubrange(0..<count, with: older.prefix(count))
    try directory.replace(with: files)
    try expectRefusal(.exclusive, "\(count) bytes")
  }
}
