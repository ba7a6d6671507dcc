import CSQLite
import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderSQLite

@Suite("SQLite: reading and copying leave no trace, and cuts are reported", .timeLimit(.minutes(15)))
struct SQLiteTraceTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  // MARK: Reading

  @Test(arguments: [0, 100]) func readingAStoreThatWasKilledLeavesNoTrace(cutting count: Int) throws {
    try makeUnclosedStore(cutting: count)
    let before = try directory.contents()
    let backend = SQLiteBackend(file: url)
    let (report, contents) = try backend.openAll(StoreOptions(access: .readOnly))
    #expect(contents.count == (count == 0 ? 3 : 2))
    #expect(try directory.contents() == before, "while it is open")
    #expect(try backend.foreignCommits(after: report.commit) == nil)
    #expect(try backend.foreignCommits(after: Revision(1))?.records.isEmpty == false)
    #expect(backend.verify().isSound)
    try backend.close()
    #expect(try directory.contents() == before)
    #expect(try readBack(url).contents == contents)
  }

  @Test func aReaderBesideAWriterSeesWhatItCommits() throws {
    try makeUnclosedStore()
    let reader = SQLiteBackend(file: url)
    let report = try reader.openAll(StoreOptions(access: .readOnly)).report
    let writer = SQLiteBackend(file: url)
    _ = try writer.openAll()
    try writer.commit([record("spot-4", "\"4\"", at: 4)], at: 4)
    #expect(try reader.foreignCommits(after: report.commit)?.records.map(\.key.text) == ["spot-4"])
    #expect(FileManager.default.fileExists(atPath: main + "-shm"))
    // The writer's locks are as they were.
    try writer.commit([record("spot-5", "\"5\"", at: 5)], at: 5)
    try writer.close()
    #expect(try reader.foreignCommits(after: Revision(4))?.commit == Revision(5))
    try reader.close()
    #expect(try readBack(url).contents.count == 5)
  }

  /// A recovery that was killed after it had cut the log once, and left a torn commit of its own.
  @Test func aCutBehindAnEarlierOneIsTheLastThatIsReported() throws {
    try makeUnclosedStore(cutting: 100)
    let earlier = main + "-quarantine-2-24752"
    try Data(count: 24_753).write(to: URL(filePath: earlier + "-due"))
    let (report, contents) = try readBack(url)
    let quarantine = try #require(report.cutTail?.quarantineFile)
    #expect(contents.count == 2 && quarantine != earlier)
    #expect(try readBack(url).report.isClean)
    for file in [quarantine, earlier] { #expect(FileManager.default.fileExists(atPath: file)) }
    #expect(!FileManager.default.fileExists(atPath: earlier + "-due"))
  }

  // MARK: A torn log on a full disk

  @Test(arguments: [StoreOptions.Access.exclusive, .shared])
  func aTornLogOnAFullDiskCanBeReadAndStaysAsItWas(_ access: StoreOptions.Access) throws {
    try makeUnclosedStore(cutting: 100)
    let before = try directory.contents()
    // The copy of what is cut cannot be made.
    let files = FullFileSystem()
    let backend = SQLiteBackend(file: url, fileSystem: files)
    let (report, contents) = try backend.openAll(StoreOptions(access: access))
    #expect(contents.count == 2 && report.cutTail != nil)
    #expect(code { _ = try backend.beginCommit(after: report.commit, .durable) } == .full)
    #expect(code { try backend.commit([record("a", "1", at: 3)], at: 3) } == .full)
    #expect(try directory.contents().filter { !$0.key.hasSuffix("-lock") } == before)
    files.isFull = false
    _ = try backend.beginCommit(after: report.commit, .durable)
    try backend.commit([record("a", "1", at: 3)], at: 3)
    try backend.close()
    #expect(try directory.contents().keys.filter { $0.contains("-quarantine-") && !$0.hasSuffix("-due") }.count == 1)
    #expect(try readBack(url).contents.count == 3)
  }

  // MARK: Reports of cuts

  /// Left in the log, whole frames of it would be damage to whoever opens the store after later commits.
  @Test func aTornEndIsCutAlsoWhereAReaderKeepsTheLogFromBeingFolded() throws {
    func leftByAKill() throws -> [String: Data] {
      try directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") && !$0.key.contains("-quarantine-") }
    }
    let first = SQLiteBackend(file: url)
    _ = try first.openAll()
    var ends: [Int] = []
    for number: UInt64 in 1...12 {
      try first.commit([record("spot-\(number)", "1", at: number)], at: number, .buffered)
      ends.append(try #require(try directory.contents()["spots.sqlite-wal"]).count)
    }
    var files = try leftByAKill()
    try first.close()
    files["spots.sqlite-wal"]?[ends[1] + 200] ^= 1
    try directory.replace(with: files)
    let reader = try ForeignDatabase(url)
    reader.keepLog()
    try reader.run("BEGIN")
    #expect(try reader.number("SELECT count(*) FROM spots") == 2)
    let backend = SQLiteBackend(file: url)
    #expect(try backend.openAll().report.cutTail?.offset == UInt64(ends[1]))
    // Notes that nothing is buffered any more, and cannot fold it.
    try backend.checkpoint()
    files = try leftByAKill()
    try reader.run("ROLLBACK")
    try backend.close()
    try directory.replace(with: files)
    #expect(try readBack(url).contents.count == 2)
  }

  @Test func aCutIsReportedByTheOpenThatSucceeds() throws {
    try makeUnclosedStore(cutting: 100)
    let torn = try directory.contents()
    let expected = try #require(try readBack(url).report.cutTail)
    #expect(try readBack(url).report.cutTail == nil)
    // Killed or failed after the log was folded: the log is gone, and the copy of it is there.
    var files = try directory.contents()
    let quarantine = try #require(files.keys.first { $0.contains("-quarantine-") })
    files[quarantine + "-due"] = files.removeValue(forKey: quarantine)
    try directory.replace(with: files)
    let (report, contents) = try readBack(url)
    #expect(report.cutTail?.quarantineFile == expected.quarantineFile && report.cutTail?.offset == expected.offset)
    #expect(report.cutTail?.isAmbiguous == true && contents.count == 2)
    #expect(try directory.contents().keys.sorted() == [quarantine, "spots.sqlite"].sorted())
    #expect(try readBack(url).report.cutTail == nil)
    // Failed before: it is found again in the log.
    try directory.replace(with: torn)
    FaultyFiles.set(.init(operation: .map, countdown: 1, result: SQLITE_IOERR | 19 << 8, lasts: true, errorNumber: EIO), at: main)
    #expect(code { _ = try readBack(url) } == .inputOutput)
    FaultyFiles.set(nil, at: main)
    #expect(try readBack(url).report.cutTail == expected)
    #expect(try readBack(url).report.cutTail == nil)
  }

  // MARK: Copies

  @Test func theNextCopyToTheNameRemovesThoseThatWereCutShort() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    let cut = "copy.sqlite-copy-0123456789abcdef-tmp"
    let others = ["copy.sqlite-tmp", "copy.sqlite-copy-0123-tmp", "copy.sqlite-new", "other.sqlite-copy-0123456789abcdef-tmp"]
    for name in others + [cut, cut + "-journal"] { try Data("half".utf8).write(to: directory.file(name)) }
    let live = "copy.sqlite-copy-00000000000000ff-tmp"
    try Data("half".utf8).write(to: directory.file(live))
    let lock = try #require(try SQLiteFileLock.lock(directory.file(live).path, .exclusive))
    try backend.backup(to: directory.file("copy.sqlite"))
    func left() throws -> [String] {
      try directory.contents().keys.filter { !$0.hasPrefix("spots.sqlite") && $0 != live }.sorted()
    }
    #expect(try left() == (others + ["copy.sqlite"]).sorted())
    #expect(try directory.contents()[live] != nil)
    lock.release()
    // As long as a name can be.
    let long = String(repeating: "n", count: 236) + ".sqlite"
    try backend.backup(to: directory.file(long))
    try backend.close()
    for name in ["copy.sqlite", long] { #expect(try readBack(directory.file(name)).contents.count == 1) }
  }
}

/// The real file system, on a full disk: no file can be created.
private final class FullFileSystem: ForwardingFileSystem, @unchecked Sendable {
  let base: any FileSystem = POSIXFileSystem()
  // Set between calls, by the thread that makes them.
  var isFull = true

  func create(_ path: String) throws(RepositoryError) -> any OpenFile {
    if isFull { throw RepositoryError(.full, file: path) }
    return try base.create(path)
  }
}
