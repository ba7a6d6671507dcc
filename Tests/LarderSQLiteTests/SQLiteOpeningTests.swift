import CSQLite
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#endif

@Suite("SQLite: opening reads, and only then writes", .timeLimit(.minutes(15)))
struct SQLiteOpeningTests: SQLiteSuite {
  let directory: TemporaryDirectory
  let copies: TemporaryDirectory

  init() throws {
    directory = try Self.makeDirectory()
    copies = try TemporaryDirectory()
  }

  private func makeStore(_ commits: UInt64 = 1) throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    for number in 1...commits { try backend.commit([record("spot-\(number)", "\"\(number)\"", at: number)], at: number) }
    try backend.close()
  }

  // MARK: What is refused after it was read

  /// Opens, refuses, and expects every file as it was, before and after.
  private func expectNoTrace(_ what: String) throws {
    let before = try directory.contents()
    for access in [StoreOptions.Access.exclusive, .shared] {
      let backend = SQLiteBackend(file: url)
      _ = try backend.open(StoreOptions(access: access)) { _ in }
      #expect(try directory.contents().filter { !$0.key.hasSuffix("-lock") } == before, "\(what), \(access), while it is open")
      backend.abandon()
      #expect(try directory.contents() == before, "\(what), \(access)")
    }
  }

  @Test func anOpeningThatIsRefusedAfterReadingLeavesEveryFileAsItWas() throws {
    try expectNoTrace("nothing there")
    try makeStore()
    try expectNoTrace("closed")
    try Data(count: 32_768).write(to: URL(filePath: main + "-shm"))
    try expectNoTrace("closed, with an index of a log")
    try directory.replace(with: [:])
    try makeUnclosedStore()
    try expectNoTrace("killed")
    try Data(repeating: 7, count: 32_768).write(to: URL(filePath: main + "-shm"))
    try expectNoTrace("killed, with an index")
    var torn = try directory.contents()
    torn["spots.sqlite-wal"]?.removeLast(100)
    torn["spots.sqlite-shm"] = nil
    torn["spots.sqlite-new"] = Data()
    try directory.replace(with: torn)
    try expectNoTrace("torn")
    let (report, contents) = try readBack(url)
    #expect(report.cutTail != nil && report.cutTail?.quarantineFile.isEmpty == false && contents.count == 2)
  }

  @Test func anOpeningBesideAProgramThatReadsLeavesTheLogAsItWas() throws {
    try makeUnclosedStore()
    let foreign = try ForeignDatabase(url)
    foreign.keepLog()
    #expect(try foreign.number("SELECT count(*) FROM spots") == 3)
    let before = try directory.contents().filter { !$0.key.hasSuffix("-shm") }
    let backend = SQLiteBackend(file: url)
    _ = try backend.open(.init()) { _ in }
    backend.abandon()
    #expect(try directory.contents().filter { !$0.key.hasSuffix("-shm") } == before)
    #expect(try readBack(url).contents.count == 3)
  }

  @Test func aStoreThatChangesBetweenTheTwoStepsIsNotWrittenTo() throws {
    try makeStore()
    let backend = SQLiteBackend(file: url)
    let report = try backend.open(.init()) { _ in }
    do { try ForeignDatabase(url).run("DELETE FROM larder_store") }
    #expect(code { _ = try backend.recover(report) } == .corrupted)
    backend.abandon()
    #expect(code { try backend.commit([record("a", "1", at: 2)], at: 2) } == .closed)
  }

  // MARK: After a sync that failed

  @Test func whatIsAcknowledgedAfterAFailedSyncDoesNotRestOnWhatIsNotOnTheDisk() throws {
    let files = RecordingFileSystem()
    FaultyFiles.follow(main + "-wal")
    try makeStoreWithLostPages(files)
    let backend = SQLiteBackend(file: url, fileSystem: files)
    _ = try backend.openAll()
    try backend.commit([record("c", "3", at: 3)], at: 3)
    try backend.commit([record("d", "4", at: 4)], at: 4)
    let contents = try afterPowerCut().contents
    #expect(contents.count == 4)
    try backend.close()
  }

  @Test func aPowerCutWhileALogIsFoldedFindsTheLogOnTheDisk() throws {
    for countdown in 1...8 {
      try directory.replace(with: [:])
      let files = RecordingFileSystem()
      FaultyFiles.follow(main + "-wal")
      try makeStoreWithLostPages(files)
      FaultyFiles.set(.init(operation: .write, countdown: countdown, result: SQLITE_IOERR | 3 << 8, lasts: true), at: main)
      let backend = SQLiteBackend(file: url, fileSystem: files)
      let failed = code { _ = try backend.openAll() } != nil
      FaultyFiles.set(nil, at: main)
      let contents = try afterPowerCut().contents
      #expect(contents.count == 2, "after \(countdown) writes")
      try backend.close()
      if !failed { break }
    }
  }

  /// Two commits, of which the second one's sync fails, and the end of the process.
  private func makeStoreWithLostPages(_ files: RecordingFileSystem) throws {
    let backend = SQLiteBackend(file: url, fileSystem: files)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    FaultyFiles.set(.init(operation: .sync, countdown: 1, result: SQLITE_IOERR | 4 << 8), at: main + "-wal")
    let value = "\"" + String(repeating: "x", count: 20_000) + "\""
    #expect(code { try backend.commit([record("b", value, at: 2)], at: 2) } == .outcomeUnknown)
    FaultyFiles.set(nil, at: main + "-wal")
    try backend.close()
  }

  private func afterPowerCut() throws -> (report: OpenReport, contents: Contents) {
    var files = try directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") }
    if let log = files["spots.sqlite-wal"] { files["spots.sqlite-wal"] = FaultyFiles.afterPowerCut(log, at: main + "-wal") }
    try copies.replace(with: files)
    return try readBack(copies.file("spots.sqlite"))
  }

  // MARK: What lies beside a store

  /// Opens in every mode and expects one refusal, that names a file, and no change.
  private func expectRefusal(_ expected: RepositoryError.Code, naming suffix: String, _ what: String) throws {
    func listing() throws -> [String: Data] {
      var listing: [String: Data] = [:]
      for name in try FileManager.default.contentsOfDirectory(atPath: directory.url.path) {
        let type = try FileManager.default.attributesOfItem(atPath: directory.file(name).path)[.type] as? FileAttributeType
        listing[name] = type == .typeRegular ? try Data(contentsOf: directory.file(name)) : Data()
      }
      return listing
    }
    let before = try listing()
    for access in [StoreOptions.Access.exclusive, .shared, .readOnly] {
      do {
        _ = try readBack(url, StoreOptions(access: access))
        Issue.record("\(what), \(access): opened")
      } catch {
        let error = try #require(error as? RepositoryError)
        #expect(error.code == expected && error.file?.hasSuffix("spots.sqlite" + suffix) == true, "\(what), \(access): \(error)")
      }
      #expect(try listing() == before, "\(what), \(access)")
    }
  }

  @Test func aRollbackJournalOfAnotherCopyIsRefusedUntouched() throws {
    try makeStore(3)
    let journal = URL(filePath: main + "-journal")
    let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
    try Data(magic + [UInt8](repeating: 1, count: 5_000)).write(to: journal)
    try expectRefusal(.notOurStore, naming: "-journal", "a journal")
    // SQLite leaves these alone.
    for harmless in [Data(), Data(count: 600)] {
      try harmless.write(to: journal)
      #expect(try readBack(url).contents.count == 3)
      #expect(try Data(contentsOf: journal) == harmless)
    }
  }

  @Test func aLogOfAnEarlierCopyIsRefusedUntouched() throws {
    try makeUnclosedStore(3)
    let log = try #require(directory.contents()["spots.sqlite-wal"])
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    for number: UInt64 in 4...6 { try backend.commit([record("spot-\(number)", "1", at: number)], at: number) }
    try backend.close()
    try log.write(to: URL(filePath: main + "-wal"))
    let before = try directory.contents()
    let error = #expect(throws: RepositoryError.self) { _ = try readBack(url) }
    #expect(error?.code == .corrupted && error?.file?.hasSuffix("-wal") == true)
    #expect(try directory.contents() == before)
    try FileManager.default.removeItem(atPath: main + "-wal")
    #expect(try readBack(url).contents.count == 6)
  }

  @Test func aLogOfAnotherStoreIsRefusedUntouched() throws {
    try makeUnclosedStore(8)
    let log = try #require(directory.contents()["spots.sqlite-wal"])
    try directory.replace(with: [:])
    try makeStore(3)
    try log.write(to: URL(filePath: main + "-wal"))
    let before = try directory.contents()
    #expect(code { _ = try readBack(url) } == .corrupted)
    #expect(try directory.contents() == before)
  }

  @Test(arguments: ["", "-wal", "-shm", "-journal", "-lock"])
  func whatIsNotAPlainFileIsUnsupportedAndNeverWaitedFor(_ suffix: String) throws {
    if !suffix.isEmpty { try makeStore() }
    let path = main + suffix
    try #require(mkfifo(path, 0o600) == 0)
    try expectRefusal(.unsupported, naming: suffix, "a pipe")
    try #require(unlink(path) == 0)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    try expectRefusal(.unsupported, naming: suffix, "a directory")
    try #require(rmdir(path) == 0)
    try #require(symlink("/dev/zero", path) == 0)
    try expectRefusal(.unsupported, naming: suffix, "a link to a device")
  }

  @Test func aNameThatLeavesNoRoomForThoseBesideItIsRefused() throws {
    for (count, expected) in [(243, nil), (244, RepositoryError.Code.unsupported), (245, .unsupported), (255, .unsupported)] {
      let url = directory.file(String(repeating: "n", count: count))
      #expect(code { _ = try readBack(url) } == expected, "\(count)")
      if expected != nil { continue }
      let backend = SQLiteBackend(file: url)
      _ = try backend.openAll()
      try backend.commit([record("a", "1", at: 1)], at: 1)
      var files = try directory.contents().filter { !$0.key.hasSuffix("-shm") && !$0.key.hasSuffix("-lock") }
      try backend.close()
      for name in files.keys where name.hasSuffix("-wal") { files[name]?.removeLast(50) }
      try directory.replace(with: files)
      let tail = try #require(readBack(url).report.cutTail)
      #expect(FileManager.default.fileExists(atPath: tail.quarantineFile) && tail.quarantineFile.contains("-quarantine-0-"))
      try directory.replace(with: [:])
    }
  }

  // MARK: A disk that is full or fails

  @Test func aFullDiskOpensAStoreForReadingAndSaysSoAtEachWrite() throws {
    try makeStore(3)
    for access in [StoreOptions.Access.exclusive, .shared] {
      FaultyFiles.set(.init(operation: .map, countdown: 1, result: SQLITE_IOERR | 19 << 8, lasts: true, errorNumber: ENOSPC), at: main)
      let backend = SQLiteBackend(file: url)
      let (report, contents) = try backend.openAll(StoreOptions(access: access))
      #expect(contents.count >= 3 && report.isClean)
      let next = report.commit.number + 1
      for _ in 0..<2 { #expect(code { _ = try backend.beginCommit(after: report.commit, .durable) } == .full) }
      #expect(code { try backend.commit([record("a", "1", at: next)], at: next) } == .full)
      #expect(code { try backend.checkpoint() } == .full)
      #expect(backend.verify().isSound)
      try backend.flush()
      FaultyFiles.set(nil, at: main)
      _ = try backend.beginCommit(after: report.commit, .durable)
      try backend.commit([record("a-\(next)", "1", at: next)], at: next)
      try backend.close()
    }
    #expect(try readBack(url).contents.count == 5)
    #expect(try directory.contents().keys.sorted() == ["spots.sqlite"])
  }

  @Test func aReadThatFailsIsNoDamage() throws {
    try makeStore(3)
    for countdown in 1...6 {
      for access in [StoreOptions.Access.exclusive, .readOnly] {
        FaultyFiles.set(
          .init(operation: .read, countdown: countdown, result: SQLITE_IOERR | 33 << 8, lasts: true, errorNumber: EIO), at: main)
        let found = code { _ = try readBack(url, StoreOptions(access: access)) }
        FaultyFiles.set(nil, at: main)
        #expect(found == .inputOutput || found == nil && countdown > 3, "\(access) at read \(countdown): \(String(describing: found))")
      }
    }
  }

  @Test func strictMeansThatALogEndsWithAWholeCommit() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    let value = "\"" + String(repeating: "x", count: 20_000) + "\""
    try backend.commit([record("b", value, at: 2)], at: 2)
    var files = try directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") }
    try backend.close()
    files["spots.sqlite-wal"]?.removeLast(4_120)
    try directory.replace(with: files)
    let error = #expect(throws: RepositoryError.self) { _ = try readBack(url, StoreOptions(recovery: .strict)) }
    #expect(error?.code == .corrupted && error?.offset != nil)
    #expect(try directory.contents() == files)
    #expect(try readBack(url).contents.count == 1)
  }
}
