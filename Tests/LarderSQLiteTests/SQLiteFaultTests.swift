import CSQLite
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

@Suite("SQLite: failures of the disk", .timeLimit(.minutes(15)))
struct SQLiteFaultTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  private let ioError = SQLITE_IOERR | 3 << 8
  private let syncError = SQLITE_IOERR | 4 << 8

  private func key(_ text: String) -> RecordAddress { RecordAddress(collection: "spots", key: RecordKey(text)) }

  @Test func aFullDiskFailsTheBatchOnlyAndTheStoreGoesOn() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    try backend.execute("PRAGMA max_page_count = 8")
    let large = String(repeating: "x", count: 50_000)
    #expect(code { try backend.commit([record("a", "2", at: 2), record("b", large, at: 2)], at: 2) } == .full)
    #expect(code { try backend.commit([record("b", large, at: 2, in: "other")], at: 2) } == .full)
    try backend.commit([record("c", "1", at: 2)], at: 2)
    try backend.execute("PRAGMA max_page_count = 1000000")
    try backend.commit([record("b", large, at: 3, in: "other")], at: 3)
    #expect(backend.verify().isSound)
    try backend.close()
    let contents = try readBack(url).contents
    #expect(contents[key("a")] == "1 1 1" && contents[key("b")] == nil && contents[key("c")] == "2 1 1" && contents.count == 3)
  }

  @Test func aFullLogFailsTheBatchAndTheStoreGoesOn() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    for countdown in 1...2 {
      FaultyFiles.set(.init(operation: .write, countdown: countdown, result: SQLITE_FULL), at: log)
      #expect(code { try backend.commit([record("a", "2", at: 2), record("z", "9", at: 2)], at: 2) } == .full)
      FaultyFiles.set(nil, at: log)
    }
    #expect(backend.verify().isSound)
    try backend.commit([record("b", "1", at: 2)], at: 2)
    try backend.close()
    let contents = try readBack(url).contents
    #expect(contents == [key("a"): "1 1 1", key("b"): "2 1 1"])
  }

  @Test func aFailedSyncPoisonsAndReopeningShowsTheBatchWholeOrNotAtAll() throws {
    var id: UUID?
    do {
      let backend = SQLiteBackend(file: url)
      id = try backend.openAll().report.storeID
      try backend.commit([record("a", "1", at: 1)], at: 1)
      FaultyFiles.set(.init(operation: .sync, countdown: 1, result: syncError), at: log)
      #expect(code { try backend.commit([record("a", "2", at: 2), record("b", "2", at: 2)], at: 2) } == .outcomeUnknown)
      FaultyFiles.set(nil, at: log)
      // The next sync would succeed, and prove nothing.
      #expect(code { try backend.commit([record("c", "3", at: 2)], at: 2) } == .poisoned)
      #expect(code { try backend.flush() } == .poisoned)
      #expect(code { try backend.checkpoint() } == .poisoned)
      #expect(code { try backend.backup(to: directory.file("copy.sqlite")) } == .poisoned)
      #expect(backend.verify().isSound)
      let before = FaultyFiles.count(.write, at: main)
      try backend.close()
      #expect(FaultyFiles.count(.write, at: main) == before)
    }
    let (report, contents) = try readBack(url)
    #expect(report.storeID == id)
    #expect(contents == [key("a"): "1 1 1"] || contents == [key("a"): "2 1 2", key("b"): "2 1 2"])
  }

  @Test func aWriteErrorInCommitPoisonsToo() throws {
    for countdown in 1...2 {
      let url = directory.file("\(countdown).sqlite")
      let log = url.resolvingSymlinksInPath().path + "-wal"
      do {
        let backend = SQLiteBackend(file: url)
        _ = try backend.openAll()
        try backend.commit([record("a", "1", at: 1)], at: 1)
        FaultyFiles.set(.init(operation: .write, countdown: countdown, result: ioError, happens: countdown % 2 == 0), at: log)
        #expect(code { try backend.commit([record("a", "2", at: 2), record("b", "2", at: 2)], at: 2) } == .outcomeUnknown)
        #expect(code { try backend.commit([record("c", "3", at: 2)], at: 2) } == .poisoned)
        FaultyFiles.set(nil, at: log)
        try backend.close()
      }
      let contents = try readBack(url).contents
      #expect(contents == [key("a"): "1 1 1"] || contents == [key("a"): "2 1 2", key("b"): "2 1 2"])
    }
  }

  /// Apple's SQLite has codes of its own for a locked device, which do not say whether COMMIT failed in a write or in its sync.
  @Test(arguments: [SQLITE_IOERR | 28 << 8, SQLITE_AUTH], [FaultyFiles.Operation.write, .sync])
  func aRefusalOfUnknownKindPoisons(_ result: Int32, _ operation: FaultyFiles.Operation) throws {
    for commits in [true, false] where commits || operation == .sync {
      try directory.replace(with: [:])
      let backend = SQLiteBackend(file: url)
      _ = try backend.openAll()
      try backend.commit([record("a", "1", at: 1)], at: 1)
      if !commits { try backend.commit([record("b", "1", at: 2)], at: 2, .ordered) }
      FaultyFiles.set(.init(operation: operation, countdown: 1, result: result, errorNumber: EPERM), at: log)
      #expect(code { if commits { try backend.commit([record("b", "1", at: 2)], at: 2) } else { try backend.checkpoint() } } != nil)
      FaultyFiles.set(nil, at: log)
      #expect(code { try backend.commit([record("c", "1", at: 3)], at: 3) } == .poisoned, "\(commits)")
      try backend.close()
      #expect(try [Revision(1), Revision(2)].contains(readBack(url).report.commit))
    }
  }

  /// A device that was locked refuses writes to protected files.
  @Test(arguments: [EPERM, EACCES])
  func aWriteThatALockedDeviceRefusesPoisonsNothing(_ number: Int32) throws {
    let result = SQLITE_IOERR | 3 << 8
    for access in [StoreOptions.Access.exclusive, .shared] {
      try directory.replace(with: [:])
      let backend = SQLiteBackend(file: url)
      _ = try backend.openAll(StoreOptions(access: access))
      func commit(_ key: String, at number: UInt64) throws {
        _ = try backend.beginCommit(after: Revision(number - 1), .durable)
        try backend.commit([record(key, "1", at: number), record("other \(number)", "1", at: number)], at: number)
      }
      try commit("a", at: 1)
      for countdown in 1...2 {
        FaultyFiles.set(.init(operation: .write, countdown: countdown, result: result, lasts: true, errorNumber: number), at: log)
        #expect(code { try commit("b", at: 2) } == .protectedDataUnavailable, "\(countdown), \(access)")
        FaultyFiles.set(nil, at: log)
        #expect(backend.verify().isSound)
      }
      try commit("c", at: 2)
      FaultyFiles.set(.init(operation: .write, countdown: 1, result: result, lasts: true, errorNumber: number), at: main)
      #expect(code { try backend.checkpoint() } == .protectedDataUnavailable)
      FaultyFiles.set(nil, at: main)
      try backend.checkpoint()
      try commit("d", at: 3)
      try backend.close()
      let (report, contents) = try readBack(url)
      #expect(report.commit == Revision(3) && report.cutTail == nil && contents.count == 6 && contents[key("b")] == nil)
    }
  }

  /// The number of an earlier refusal does not count for a later failure.
  @Test func aBrokenDiskAfterALockedDeviceStillPoisons() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    for path in [main, log] {
      FaultyFiles.set(.init(operation: .write, countdown: 1, result: ioError, errorNumber: EPERM), at: path)
      #expect(code { if path == log { try backend.commit([record("a", "2", at: 2)], at: 2) } else { try backend.checkpoint() } } != nil)
      FaultyFiles.set(nil, at: path)
    }
    FaultyFiles.set(.init(operation: .write, countdown: 1, result: ioError, errorNumber: EIO), at: log)
    #expect(code { try backend.commit([record("a", "2", at: 2)], at: 2) } == .outcomeUnknown)
    FaultyFiles.set(nil, at: log)
    #expect(code { try backend.commit([record("a", "2", at: 2)], at: 2) } == .poisoned)
    try backend.close()
  }

  /// A sync that the device refuses may have lost what it should have covered.
  @Test func aSyncThatALockedDeviceRefusesPoisons() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    FaultyFiles.set(.init(operation: .sync, countdown: 1, result: syncError, errorNumber: EPERM), at: log)
    #expect(code { try backend.commit([record("a", "2", at: 2)], at: 2) } == .outcomeUnknown)
    FaultyFiles.set(nil, at: log)
    #expect(code { try backend.commit([record("a", "2", at: 2)], at: 2) } == .poisoned)
    try backend.close()
  }

  @Test func durableCommitsSyncOnceAndBufferedOnesNotUntilAFlush() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    func syncs(_ body: () throws -> Void) rethrows -> Int {
      let before = FaultyFiles.count(.sync, at: log)
      try body()
      return FaultyFiles.count(.sync, at: log) - before
    }
    #expect(try syncs { try backend.commit([record("a", "1", at: 1)], at: 1) } >= 1)
    #expect(try syncs { try backend.commit([record("a", "2", at: 2)], at: 2) } == 1)
    #expect(try syncs { try backend.flush() } == 0)
    #expect(try syncs { try backend.commit([record("a", "3", at: 3)], at: 3, .buffered) } == 1, "the first one marks the log, durably")
    #expect(try syncs { try backend.commit([record("a", "4", at: 4)], at: 4, .buffered) } == 0)
    #expect(try syncs { try backend.flush() } == 1)
    #expect(try syncs { try backend.flush() } == 0)
    #expect(try syncs { try backend.commit([record("a", "5", at: 5)], at: 5, .buffered) } == 0)
    #expect(try syncs { try backend.commit([record("a", "6", at: 6)], at: 6, .durable) } == 1)
    #expect(try syncs { try backend.flush() } == 0)
    try backend.close()
    #expect(try ForeignDatabase(url).number("SELECT buffered FROM larder_store") == 0)
  }

  @Test func aFlushThatFailsPoisons() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1, .buffered)
    try backend.commit([record("a", "2", at: 2)], at: 2, .buffered)
    FaultyFiles.set(.init(operation: .sync, countdown: 1, result: syncError), at: log)
    #expect(code { try backend.flush() } == .outcomeUnknown)
    FaultyFiles.set(nil, at: log)
    #expect(code { try backend.flush() } == .poisoned)
    try backend.close()
  }

  @Test func aCheckpointThatMeetsAFailedSyncPoisonsAndAFullDiskDoesNot() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    FaultyFiles.set(.init(operation: .write, countdown: 1, result: SQLITE_FULL), at: main)
    #expect(code { try backend.checkpoint() } == .full)
    FaultyFiles.set(nil, at: main)
    try backend.commit([record("b", "1", at: 2)], at: 2)
    FaultyFiles.set(.init(operation: .sync, countdown: 1, result: syncError), at: main)
    #expect(code { try backend.checkpoint() } == .outcomeUnknown)
    FaultyFiles.set(nil, at: main)
    #expect(code { try backend.commit([record("c", "1", at: 3)], at: 3) } == .poisoned)
    try backend.close()
    #expect(try readBack(url).contents.count == 2)
  }

  @Test func theLogIsFoldedIntoTheDatabaseAfterAThousandPages() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    let value = "\"" + String(repeating: "v", count: 40_000) + "\""
    for number: UInt64 in 1...400 { try backend.commit([record("a", value, at: number)], at: number, .buffered) }
    let size = try #require(FileManager.default.attributesOfItem(atPath: log)[.size] as? Int)
    #expect(size < 1_100 * 4_120, "\(size)")
    try backend.close()
  }

  @Test func aSyncThatFailsWhileFoldingInPassingFailsTheNextCommitNotThisOne() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    FaultyFiles.set(.init(operation: .sync, countdown: 1, result: syncError, lasts: true), at: main)
    let value = "\"" + String(repeating: "v", count: 4_200_000) + "\""
    try backend.commit([record("a", value, at: 1)], at: 1)
    #expect(code { try backend.commit([record("a", "2", at: 2)], at: 2) } == .poisoned)
    FaultyFiles.set(nil, at: main)
    try backend.close()
    #expect(try readBack(url).contents[key("a")]?.count == value.count + 4)
  }

  @Test func closingThatFailsReleasesTheLockAndLosesNothing() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    FaultyFiles.set(.init(operation: .write, countdown: 1, result: SQLITE_FULL, lasts: true), at: main)
    #expect(code { try backend.close() } == .full)
    FaultyFiles.set(nil, at: main)
    #expect(try readBack(url).contents.count == 1)
  }

  @Test func aFileThatWentAwayIsNotWrittenTo() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    try FileManager.default.moveItem(at: url, to: directory.file("moved.sqlite"))
    #expect(code { try backend.commit([record("a", "2", at: 2)], at: 2) } == .dataMissing)
    try FileManager.default.moveItem(at: directory.file("moved.sqlite"), to: url)
    try backend.commit([record("a", "2", at: 2)], at: 2)
    try backend.close()
    #expect(try readBack(url).contents == [key("a"): "2 1 2"])
  }

  @Test func aStatusThatCannotBeReadOnceIsNoFileThatWentAway() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    try Data().write(to: directory.file("other"))  // has the next commit look
    FaultyFiles.set(.init(operation: .status, countdown: 1, result: SQLITE_OK), at: main)
    defer { FaultyFiles.set(nil, at: main) }
    let looks = FaultyFiles.count(.status, at: main)
    try backend.commit([record("a", "2", at: 2)], at: 2)
    #expect(FaultyFiles.count(.status, at: main) == looks + 2)
    try backend.close()
  }

  @Test func aForeignWriterIsReportedAsLockedAndDoesNoHarm() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.execute("PRAGMA busy_timeout = 0")
    let foreign = try ForeignDatabase(url)
    try foreign.run("BEGIN IMMEDIATE")
    #expect(code { try backend.commit([record("a", "1", at: 1)], at: 1) } == .locked)
    try foreign.run("ROLLBACK")
    try backend.commit([record("a", "1", at: 1)], at: 1)
    try backend.close()
  }

  @Test(arguments: [
    (SQLITE_FULL, SQLiteResult.Activity.committing, RepositoryError.Code.full), (SQLITE_IOERR | 3 << 8, .writing, .inputOutput),
    (SQLITE_IOERR | 3 << 8, .committing, .outcomeUnknown), (SQLITE_IOERR | 4 << 8, .writing, .outcomeUnknown),
    (SQLITE_IOERR | 5 << 8, .writing, .outcomeUnknown), (SQLITE_BUSY, .writing, .locked), (SQLITE_BUSY | 2 << 8, .committing, .locked),
    (SQLITE_LOCKED, .writing, .locked), (SQLITE_CORRUPT | 1 << 8, .reading, .corrupted), (SQLITE_NOTADB, .opening, .corrupted),
    (SQLITE_TOOBIG, .writing, .tooLarge), (SQLITE_READONLY, .writing, .protectedDataUnavailable),
    (SQLITE_CONSTRAINT | 5 << 8, .writing, .unsupported), (SQLITE_CONSTRAINT | 8 << 8, .writing, .unsupported),
    (SQLITE_READONLY | 4 << 8, .writing, .dataMissing), (SQLITE_NOMEM, .writing, .inputOutput),
    (SQLITE_AUTH, .committing, .outcomeUnknown), (SQLITE_IOERR | 28 << 8, .committing, .outcomeUnknown),
    (SQLITE_AUTH, .syncing, .outcomeUnknown), (SQLITE_IOERR | 28 << 8, .syncing, .outcomeUnknown),
    (SQLITE_AUTH, .writing, .protectedDataUnavailable), (SQLITE_IOERR | 28 << 8, .writing, .protectedDataUnavailable),
  ])
  func aResultCodeHasOneMeaning(_ result: Int32, _ activity: SQLiteResult.Activity, _ expected: RepositoryError.Code) {
    #expect(SQLiteResult.error(result, while: activity, file: "f").code == expected)
  }

  @Test func aRefusalByTheSystemIsNoUnknownOutcomeUnlessItIsOfASync() {
    for number in [EPERM, EACCES] {
      func code(_ result: Int32) -> RepositoryError.Code {
        SQLiteResult.error(result, while: .committing, file: "f", errorNumber: number).code
      }
      #expect(code(ioError) == .protectedDataUnavailable && code(SQLITE_CANTOPEN) == .protectedDataUnavailable)
      #expect(code(syncError) == .outcomeUnknown)
      // A short read and a lack of memory leave the number of an earlier call.
      #expect(code(SQLITE_IOERR | 2 << 8) == .outcomeUnknown && code(SQLITE_IOERR | 12 << 8) == .outcomeUnknown)
      // The index of the log is written after the log: the commit may be there.
      #expect(code(SQLITE_IOERR | 19 << 8) == .outcomeUnknown)
    }
  }

  @Test func aViolatedNotNullIsNotADuplicate() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    #expect(code { try backend.execute("INSERT INTO spots VALUES ('b', 1, 1, 1, NULL)") } == .unsupported)
    try backend.close()
  }
}
