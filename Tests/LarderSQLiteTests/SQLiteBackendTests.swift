import Foundation
import Larder
import Synchronization
import TestSupport
import Testing

@testable import LarderSQLite

@Suite("SQLite: records", .timeLimit(.minutes(15)))
struct SQLiteBackendTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  @Test func whatWasCommittedIsThereAfterReopening() throws {
    let backend = SQLiteBackend(file: url)
    let opened = try backend.openAll()
    #expect(opened.report.isNew && opened.report.commit == .zero && opened.contents.isEmpty)
    try backend.commit([record("a", "1", at: 1), record("b", "2", at: 1, in: "notes", version: 3)], at: 1)
    try backend.commit(
      WriteBatch(records: [record("a", "3", at: 2), record("c", "4", at: 3), record("c", "5", at: 4)], commits: 2...4))
    try backend.close()

    let (report, contents) = try readBack(url)
    #expect(!report.isNew && report.isClean && report.recordCount == 3 && report.commit == Revision(4) && report.replayedCommits == 0)
    #expect(report.storeID == opened.report.storeID)
    #expect(
      contents == [
        RecordAddress(collection: "spots", key: RecordKey("a")): "2 1 3",
        RecordAddress(collection: "spots", key: RecordKey("c")): "4 1 5",
        RecordAddress(collection: "notes", key: RecordKey("b")): "1 3 2",
      ])
  }

  @Test func deletingLeavesATombstoneAndSavingRemovesIt() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1), record("b", "1", at: 1)], at: 1)
    try backend.commit([record("a", nil, at: 2), record("b", nil, at: 2), record("never", nil, at: 2, in: "nowhere")], at: 2)
    try backend.commit([record("a", "9", at: 3)], at: 3)
    try backend.close()
    let (report, contents) = try readBack(url)
    #expect(report.recordCount == 1)
    #expect(
      contents == [
        RecordAddress(collection: "spots", key: RecordKey("a")): "3 1 9",
        RecordAddress(collection: "spots", key: RecordKey("b")): "2 1 deleted",
        RecordAddress(collection: "nowhere", key: RecordKey("never")): "2 1 deleted",
      ])
  }

  /// A batch is sorted and its addresses are taken once; what comes of it is what its records in their order say.
  @Test(arguments: Seeds.list(3, for: "SQLite batches")) func largeBatchesInAnyOrderKeepTheLastOfEachRecord(_ seed: UInt64) throws {
    var random = SeededGenerator(seed)
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    var expected: [RecordAddress: String] = [:]
    for commit in 1...6 as ClosedRange<UInt64> {
      var batch: [StoredRecord] = []
      for number in 0..<400 {
        let id = Int.random(in: 0..<125, using: &random)
        // Short, alike for longer than a sort compares numbers, alike but for a NUL at the end, and as a UUID.
        let name = ["key \(id)", "the same sixteen bytes, then \(id)", "\(id % 8)", "\(id % 8)\0"].randomElement(using: &random) ?? ""
        let key = id < 8 ? "00000000-0000-4000-8000-00000000000\(id)" : name
        let collection = Bool.random(using: &random) ? "spots" : "notes"
        let value = Int.random(in: 0..<3, using: &random) == 0 ? nil : "\(number)"
        batch.append(record(key, value, at: commit, in: collection))
        expected[RecordAddress(collection: collection, key: RecordKey(key))] = "\(commit) 1 \(value ?? "deleted")"
      }
      try backend.commit(batch, at: commit)
    }
    #expect(backend.verify().isSound)
    try backend.close()
    #expect(try readBack(url).contents == expected)
  }

  /// A checkpoint takes the mark of buffered commits out before it folds: cut short between, it leaves the log one step ahead.
  @Test func aCheckpointThatEndsBeforeItFoldsLeavesASoundStore() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    for number in 1...3 as ClosedRange<UInt64> {
      try backend.commit([record("a", "\(number)", at: number)], at: number, .buffered)
    }
    try backend.execute("PRAGMA wal_checkpoint(PASSIVE)")
    try backend.store.withLock { store throws(RepositoryError) in try store.writer()?.settleRow() }
    let files = try directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") }
    backend.abandon()
    try directory.replace(with: files)
    let (report, contents) = try readBack(url)
    #expect(report.commit == Revision(3) && report.cutTail == nil && contents.values.sorted() == ["3 1 3"])
  }

  /// Forgetting tombstones is no commit: cut short behind it, too, a checkpoint leaves the log one step ahead.
  @Test func aCheckpointThatEndsBehindWhatItForgetsLeavesASoundStore() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit((1...20).map { record("\($0)", "\($0)", at: 1) }, at: 1)
    try backend.commit((2...20).map { record("\($0)", nil, at: 2) }, at: 2)
    try backend.execute("PRAGMA wal_checkpoint(PASSIVE)")
    try backend.store.withLock { store throws(RepositoryError) in try store.writer()?.forgetTombstones(over: 5) }
    let files = try directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") }
    backend.abandon()
    try directory.replace(with: files)
    let (report, contents) = try readBack(url)
    #expect(report.commit == Revision(2) && report.cutTail == nil && contents.values.contains("1 1 1"))
  }

  @Test func keysThatLookAlikeStayApart() throws {
    let keys = [
      "", "a", "a\0one", "a\0two", "\0", "caf\u{E9}", "cafe\u{301}", "A", "a ", "../x", "'; DROP TABLE spots; --", "\"", "\u{FEFF}", "👨‍👩‍👧",
      String(repeating: "k", count: 1_024), "12", "012", "1e3", "x'00'",
    ]
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit(keys.enumerated().map { record($1, "\($0)", at: 1) }, at: 1)
    for (number, key) in keys.enumerated() where number % 3 == 0 {
      try backend.commit([record(key, "\"again \(number)\"", at: UInt64(2 + number / 3))], at: UInt64(2 + number / 3))
    }
    try backend.close()
    let contents = try readBack(url).contents
    #expect(contents.count == keys.count)
    for (number, key) in keys.enumerated() {
      let expected = number % 3 == 0 ? "\(2 + number / 3) 1 \"again \(number)\"" : "1 1 \(number)"
      #expect(contents[RecordAddress(collection: "spots", key: RecordKey(key))] == expected)
    }
  }

  @Test func valuesMayHoldAnything() throws {
    let values = ["", "\"\0\"", String(repeating: "v", count: 300_000), "\u{FEFF}{}", "{\"a\":\"\u{301}\"}"]
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit(values.enumerated().map { record("\($0)", $1, at: 1) }, at: 1)
    try backend.close()
    let contents = try readBack(url).contents
    for (number, value) in values.enumerated() {
      #expect(contents[RecordAddress(collection: "spots", key: RecordKey("\(number)"))] == "1 1 " + value)
    }
  }

  @Test func threeHundredThousandIDsAreReadWithoutALimit() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit((0..<300_000).map { record("\($0)", "{}", at: 1) }, at: 1)
    try backend.close()
    var count = 0
    let again = SQLiteBackend(file: url)
    let report = try again.openAndRecover(.init()) { _ in count += 1 }
    #expect(count == 300_000 && report.recordCount == 300_000)
    try again.close()
  }

  @Test func aBatchThatDoesNotFollowTheNewestCommitIsRefused() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    for number: UInt64 in [0, 1, 3, UInt64.max] {
      #expect(code { try backend.commit([record("a", "2", at: 1)], at: number) } == .unsupported)
    }
    try backend.commit([], at: 2)
    try backend.close()
    #expect(try readBack(url).report.commit == Revision(2))
  }

  @Test func aBatchThatFailsKeepsNothingAndTheNextOneSurvivesClosing() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    // The second record cannot be kept, so neither is the first, nor the table that it would have created.
    let refused = [record("a", "1", at: 1), record("b", "1", at: 1, in: "SPOTS")]
    #expect(code { try backend.commit(refused, at: 1) } == .unsupported)
    try backend.commit([record("c", "1", at: 1)], at: 1)
    try backend.close()
    let (report, contents) = try readBack(url)
    #expect(report.commit == Revision(1))
    #expect(contents == [RecordAddress(collection: "spots", key: RecordKey("c")): "1 1 1"])
  }

  @Test func collectionsWithNamesThatCannotBeTablesAreRefused() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1, in: "spots.of-JP_2")], at: 1)
    let names = [
      "", ".spots", "-spots", "a b", "a\"b", "a\0b", "sqlite_spots", "SQLITE_x", "larder_store", "Larder_mine", "SPOTS.of-jp_2", "é",
      String(repeating: "n", count: 65),
    ]
    for name in names {
      #expect(code { try backend.commit([record("a", "1", at: 2, in: name)], at: 2) } == .unsupported, "\(name.debugDescription)")
    }
    #expect(code { try backend.commit([record("a", nil, at: 2, in: "a b")], at: 2) } == .unsupported)
    try backend.commit([record("a", "1", at: 2, in: String(repeating: "n", count: 64))], at: 2)
    try backend.close()
    #expect(try readBack(url).report.recordCount == 2)
  }

  @Test func aRevisionThatSQLiteCannotCountIsRefused() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    #expect(code { try backend.commit([record("a", "1", at: UInt64.max)], at: 1) } == .unsupported)
    try backend.close()
  }

  @Test func tombstonesOverTheLimitAreForgottenAtACheckpoint() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll(StoreOptions(limits: .init(tombstones: 3)))
    for number: UInt64 in 1...6 { try backend.commit([record("\(number)", nil, at: number)], at: number) }
    try backend.checkpoint()
    #expect(backend.verify().tombstoneCount == 3)
    try backend.close()
    #expect(try readBack(url).contents.values.sorted() == ["4 1 deleted", "5 1 deleted", "6 1 deleted"])
    #expect(try ForeignDatabase(url).number("SELECT tombstones_since FROM larder_store") == 3)
  }

  @Test func otherProgramsCanReadTheTable() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("a", #"{"name":"Jogashima"}"#, at: 1)], at: 1)
    let foreign = try ForeignDatabase(url)
    #expect(try foreign.number("SELECT count(*) FROM spots WHERE json_extract(value, '$.name') = 'Jogashima'") == 1)
    try backend.close()
  }

  @Test func onlyTheDatabaseIsLeftAfterClosing() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("a", "1", at: 1)], at: 1, .buffered)
    try backend.commit([record("a", "2", at: 2)], at: 2)
    try backend.close()
    #expect(try directory.contents().keys.sorted() == ["spots.sqlite"])
    try backend.close()
    #expect(code { try backend.commit([], at: 3) } == .closed)
    #expect(code { try backend.flush() } == .closed)
    #expect(backend.verify().problems.map(\.code) == [.closed])
    // A backend that was closed may be opened again, as the seam says.
    #expect(try backend.openAll().report.recordCount == 1)
    try backend.close()
  }

  @Test func aStoreOpensOnceInAProcess() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    #expect(code { _ = try SQLiteBackend(file: url).openAll() } == .alreadyOpen)
    #expect(code { _ = try backend.openAll() } == .alreadyOpen)
    try backend.commit([record("a", "1", at: 1)], at: 1)
    try backend.close()
    #expect(try readBack(url).report.recordCount == 1)
  }

  @Test func droppingABackendReleasesTheLockAndLosesNothing() throws {
    do {
      let backend = SQLiteBackend(file: url)
      _ = try backend.openAll()
      try backend.commit([record("a", "1", at: 1)], at: 1)
    }
    let (report, contents) = try readBack(url)
    #expect(contents.count == 1 && report.replayedCommits == 1 && report.isClean)
  }

  @Test func aReaderSeesTheStateBesideAWriterAndNeverWrites() throws {
    let writer = SQLiteBackend(file: url)
    _ = try writer.openAll()
    try writer.commit([record("a", "1", at: 1)], at: 1)
    let reader = SQLiteBackend(file: url)
    #expect(try reader.openAll(StoreOptions(access: .readOnly)).contents.count == 1)
    #expect(code { try reader.commit([record("b", "1", at: 2)], at: 2) } == .unsupported)
    try writer.commit([record("b", "1", at: 2)], at: 2)
    #expect(reader.verify().isSound && reader.verify().recordCount == 2)
    try reader.close()
    try writer.close()
    #expect(try directory.contents().keys.sorted() == ["spots.sqlite"])
  }

  @Test func readingOnlyLeavesAClosedStoreAsItIs() throws {
    let writer = SQLiteBackend(file: url)
    _ = try writer.openAll()
    try writer.commit([record("a", "1", at: 1)], at: 1)
    try writer.close()
    let before = try directory.contents()
    #expect(try readBack(url, StoreOptions(access: .readOnly)).contents.count == 1)
    #expect(try directory.contents() == before)
    #expect(code { _ = try readBack(directory.file("none.sqlite"), StoreOptions(access: .readOnly)) } == .dataMissing)
    #expect(code { _ = try readBack(directory.file("no/where.sqlite"), StoreOptions(access: .readOnly)) } == .dataMissing)
    #expect(try directory.contents() == before)
  }

  @Test func aBackupIsAStoreOfItsOwn() throws {
    let backend = SQLiteBackend(file: url)
    let id = try backend.openAll().report.storeID
    try backend.commit([record("a", "1", at: 1), record("b", nil, at: 1)], at: 1)
    let copy = directory.file("deeper/copy.sqlite")
    try backend.backup(to: copy)
    #expect(code { try backend.backup(to: copy) } == .alreadyExists)
    #expect(code { try backend.backup(to: url) } == .alreadyExists)
    try backend.commit([record("c", "1", at: 2)], at: 2)
    try backend.close()

    let restored = SQLiteBackend(file: copy)
    let (report, contents) = try restored.openAll()
    #expect(report.storeID == id && report.commit == Revision(1) && contents.count == 2)
    try restored.commit([record("d", "1", at: 2)], at: 2)
    try restored.close()
    #expect(try readBack(copy).contents.count == 3)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.file("deeper").path) == ["copy.sqlite"])
  }
}
