import CSQLite
import Foundation
import Larder
import Synchronization
import TestSupport
import Testing

@testable import LarderSQLite

/// Indexes that stay in the database: built in steps, changed by commits, believed or dropped at opening.
@Suite("SQLite: indexes in the database", .timeLimit(.minutes(5)))
struct SQLiteIndexTests: SQLiteIndexSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  // MARK: Building

  @Test func anIndexIsBuiltBesideCommitsAndReadByRanges() throws {
    let backend = try openPaged()
    #expect(backend.storesIndexes && !backend.holdsIndex(index))
    try backend.commit(batch(["a", "b", "c", "d"].map { record($0, "1", at: 1) }, at: 1))
    try backend.extendIndex(index, by: keys("1a", "2b"), isFirst: true)
    // The record "b" moves among the keys that were added, and "c" has no key yet.
    try backend.commit(
      batch([record("b", "2", at: 2), record("c", "2", at: 2)], at: 2, [edit("2b", "0b")]))
    try backend.extendIndex(index, by: keys("3c"), isFirst: false)
    let before = try backend.keepBase()
    try backend.extendIndex(index, by: keys("4d", "4d\u{0}"), isFirst: false)
    #expect(!backend.holdsIndex(index))
    try backend.storeBoundaries(keys("", "2", "4"), of: index)
    #expect(backend.holdsIndex(index) && !backend.holdsIndex(other))

    let base = try backend.keepBase()
    #expect(texts(try base.boundaries(of: index)) == ["", "2", "4"])
    #expect(texts(try base.indexKeys(of: index, from: Data(), below: nil)) == ["0b", "1a", "3c", "4d", "4d\u{0}"])
    #expect(texts(try base.indexKeys(of: index, from: key("1"), below: key("4d"))) == ["1a", "3c"])
    #expect(texts(try base.indexKeys(of: index, from: key("4d"), below: key("4d\u{0}"))) == ["4d"])
    #expect(try base.indexKeys(of: index, from: key("5"), below: nil).isEmpty)
    #expect(try base.indexKeyCount(of: index, from: Data(), below: nil) == 5)
    #expect(try base.indexKeyCount(of: index, from: key("1a"), below: key("4d")) == 2)
    expectNoIndex { _ = try before.indexKeys(of: index, from: Data(), below: nil) }
    expectNoIndex { _ = try before.boundaries(of: index) }
    expectNoIndex { _ = try base.indexKeyCount(of: other, from: Data(), below: nil) }
    try backend.close()
  }

  @Test func anOldBaseReadsTheOldKeys() throws {
    let backend = try makeIndexed()
    let old = try backend.keepBase()
    try backend.commit(
      batch(
        [record("a", nil, at: 2), record("b", "2", at: 2), record("e", "2", at: 2)], at: 2,
        [edit("1a", nil), edit("2b", "9b"), edit(nil, "5e")]))
    try backend.storeBoundaries(keys("", "9"), of: index)
    #expect(try read(backend) == ["3c", "4d", "5e", "9b"])
    try backend.dropIndex(index)
    #expect(!backend.holdsIndex(index))
    #expect(texts(try old.indexKeys(of: index, from: Data(), below: nil)) == ["1a", "2b", "3c", "4d"])
    #expect(texts(try old.boundaries(of: index)) == ["", "3c"])
    try backend.close()
    #expect(try tables() == "; 0")
  }

  /// A base of the newest commit begins its read transactions anew at a checkpoint, and then reads no index that was dropped meanwhile.
  @Test func aBaseThatIsPinnedAgainForgetsADroppedIndex() throws {
    let backend = try makeIndexed()
    let base = try backend.keepBase()
    try backend.checkpoint()
    #expect(try base.indexKeyCount(of: index, from: Data(), below: nil) == 4)
    try backend.dropIndex(index)
    try backend.checkpoint()
    expectNoIndex { _ = try base.indexKeyCount(of: index, from: Data(), below: nil) }
    #expect(try base.records(of: "spots", after: nil, limit: 9).count == 4)
    try backend.close()
  }

  @Test func callsForAnIndexThatIsNotBeingBuiltAreRefused() throws {
    let backend = try openPaged()
    expectNoIndex { try backend.extendIndex(index, by: keys("a"), isFirst: false) }
    expectNoIndex { try backend.storeBoundaries(keys(""), of: index) }
    try backend.dropIndex(index)
    try backend.extendIndex(index, by: [], isFirst: true)
    try backend.storeBoundaries(keys(""), of: index)
    #expect(backend.holdsIndex(index))
    expectNoIndex { try backend.extendIndex(index, by: keys("a"), isFirst: false) }
    try backend.extendIndex(index, by: keys("b"), isFirst: true)
    #expect(!backend.holdsIndex(index))
    try backend.close()
  }

  @Test(arguments: [["b", "a"], ["a", "a"], ["0"], ["k"], ["x", "xx", "x"]]) func keysThatDoNotAscendDropTheIndex(_ next: [String]) throws {
    let backend = try openPaged()
    try backend.extendIndex(index, by: keys("c", "k"), isFirst: true)
    expectNoIndex { try backend.extendIndex(index, by: next.map(key), isFirst: false) }
    expectNoIndex { try backend.extendIndex(index, by: keys("z"), isFirst: false) }
    try backend.close()
    #expect(try tables() == "; 0")
  }

  /// A record that is given to a build, and whose key a commit has added meanwhile, would stand in the index twice.
  @Test func aKeyThatACommitHasAddedDropsTheIndex() throws {
    let backend = try openPaged()
    try backend.extendIndex(index, by: keys("1a"), isFirst: true)
    try backend.commit(batch([record("b", "1", at: 1)], at: 1, [edit(nil, "2b")]))
    expectNoIndex { try backend.extendIndex(index, by: keys("2b", "3c"), isFirst: false) }
    expectNoIndex { try backend.storeBoundaries(keys(""), of: index) }
    try backend.close()
    #expect(try tables() == "; 0")
  }

  // MARK: Opening

  @Test(arguments: [false, true]) func aCompleteIndexIsHeldAfterReopening(isKilled: Bool) throws {
    let backend = try makeIndexed()
    if isKilled { try kill(backend) } else { try backend.close() }
    let again = try openPaged()
    #expect(again.holdsIndex(index))
    try again.commit(batch([record("a", "2", at: 2)], at: 2, [edit("1a", "7a")], .buffered))
    #expect(try read(again) == ["2b", "3c", "4d", "7a"])
    if isKilled { try kill(again) } else { try again.close() }
    let third = try openPaged()
    #expect(third.holdsIndex(index))
    #expect(try read(third) == ["2b", "3c", "4d", "7a"])
    #expect(texts(try third.keepBase().boundaries(of: index)) == ["", "3c"])
    #expect(third.verify().isSound)
    try third.close()
  }

  /// The transaction of the counts changes no column of `larder_store`, and must write the row's page all the same.
  @Test func countsThatAnOpeningHasMadeAreBelievedAfterAKill() throws {
    let resident = SQLiteBackend(file: url)
    _ = try resident.openAll()
    try resident.commit([record("a", "1", at: 1)], at: 1)
    try resident.close()
    try kill(try openPaged())
    let backend = SQLiteBackend(file: url)
    _ = try backend.openPaged(StoreOptions()) { _ in }
    let isDue: Bool? = backend.store.withLock { store in
      if case .opened(let opening) = store.phase { opening.summary?.isDue } else { nil }
    }
    #expect(isDue == false)
    backend.abandon()
  }

  /// The keys of an index that was not completed are no use to another process, and are dropped by its next change.
  @Test(arguments: [false, true]) func aKilledBuildLeavesNothing(isExtended: Bool) throws {
    let backend = try makeIndexed()
    try backend.extendIndex(other, by: keys("x"), isFirst: true)
    try kill(backend)
    let again = try openPaged()
    #expect(again.holdsIndex(index) && !again.holdsIndex(other))
    expectNoIndex { try again.extendIndex(other, by: keys("y"), isFirst: false) }
    if isExtended {
      try again.extendIndex(other, by: keys("a", "b"), isFirst: true)
    } else {
      try again.commit(batch([record("a", "2", at: 2)], at: 2, [edit("1a", "7a")]))
    }
    try again.close()
    #expect(try tables() == (isExtended ? "larder_index_1,larder_index_2; 2" : "larder_index_1; 1"))
  }

  @Test func aSuspendedStoreKeepsItsIndexes() throws {
    let backend = try makeIndexed()
    try backend.extendIndex(other, by: keys("x"), isFirst: true)
    let base = try backend.keepBase()
    try backend.suspend()
    #expect(backend.storesIndexes && backend.holdsIndex(index))
    #expect(try backend.resume())
    #expect(texts(try base.indexKeys(of: index, from: key("3"), below: nil)) == ["3c", "4d"])
    try backend.extendIndex(other, by: keys("y"), isFirst: false)
    try backend.commit(batch([record("a", "2", at: 2)], at: 2, [edit("1a", "7a")]))
    #expect(try read(backend) == ["2b", "3c", "4d", "7a"])
    try backend.close()
    #expect(try openPaged().holdsIndex(index))
  }

  /// Another process may open the store during a suspension, and change the indexes without a commit.
  @Test func anIndexThatWasDroppedDuringASuspensionIsForgotten() throws {
    let backend = try makeIndexed()
    let base = try backend.keepBase()
    try backend.suspend()
    let second = try openPaged()
    try second.dropIndex(index)
    try second.extendIndex(other, by: keys("x"), isFirst: true)
    try second.storeBoundaries(keys(""), of: other)
    try second.close()
    #expect(try backend.resume())
    #expect(!backend.holdsIndex(index) && backend.holdsIndex(other))
    expectNoIndex { _ = try base.indexKeys(of: index, from: Data(), below: nil) }
    try backend.commit(batch([record("a", "2", at: 2)], at: 2))
    try backend.close()
  }

  @Test(arguments: [
    "UPDATE larder_indexes SET crc = crc + 1", "UPDATE larder_indexes SET is_complete = 0", "UPDATE larder_indexes SET is_complete = 2",
    "UPDATE larder_indexes SET name = 'else'", "UPDATE larder_indexes SET collection = 7", "UPDATE larder_indexes SET boundaries = 'text'",
    "UPDATE larder_indexes SET number = 9223372036854775807", "UPDATE larder_indexes SET number = -1", "DROP TABLE larder_indexes",
    "DROP TABLE larder_index_1", "ALTER TABLE larder_index_1 ADD COLUMN more", "ALTER TABLE larder_indexes ADD COLUMN more",
    "ALTER TABLE larder_index_1 RENAME TO larder_index_9223372036854775807", "UPDATE larder_collections SET crc = 1",
    "DROP TABLE larder_index_1; CREATE VIEW larder_index_1 AS SELECT 1", "DROP TABLE larder_indexes; CREATE TABLE larder_indexes (a)",
    "DELETE FROM larder_indexes",
  ])
  func anIndexThatWasChangedIsNotBelieved(_ change: String) throws {
    try makeIndexed().close()
    try ForeignDatabase(url).run(change)
    let backend = try openPaged()
    #expect(!backend.holdsIndex(index))
    expectNoIndex { _ = try backend.keepBase().indexKeys(of: index, from: Data(), below: nil) }
    try backend.commit(batch([record("a", "2", at: 2)], at: 2, [edit("1a", "7a")]))
    try backend.extendIndex(index, by: keys("2b", "7a"), isFirst: true)
    try backend.storeBoundaries(keys(""), of: index)
    #expect(try read(backend) == ["2b", "7a"])
    try backend.close()
    #expect(try openPaged().holdsIndex(index))
  }

  @Test func anotherWriterDropsAllIndexes() throws {
    try makeIndexed().close()
    let resident = SQLiteBackend(file: url)
    _ = try resident.openAll()
    #expect(!resident.storesIndexes && !resident.holdsIndex(index))
    expectNoIndex { try resident.extendIndex(index, by: keys("a"), isFirst: true) }
    try resident.commit([record("a", "2", at: 2)], at: 2)
    try resident.close()
    #expect(try tables() == "; 0")
    #expect(!(try openPaged().holdsIndex(index)))
  }

  /// A writer that does not know the tables leaves them as they are, with the counts of an earlier commit.
  @Test func indexesBesideOldCountsAreDropped() throws {
    try makeIndexed().close()
    try ForeignDatabase(url).run("UPDATE larder_collections SET commit_number = 7")
    let backend = try openPaged()
    #expect(!backend.holdsIndex(index))
    try backend.close()
    #expect(try tables() == "; 0")
  }

  @Test(arguments: [StoreOptions.Access.shared, .readOnly]) func anotherAccessStoresNoIndexes(_ access: StoreOptions.Access) throws {
    try makeIndexed().close()
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll(StoreOptions(access: access))
    #expect(!backend.storesIndexes && !backend.holdsIndex(index))
    expectNoIndex { try backend.extendIndex(index, by: [], isFirst: true) }
    try backend.close()
    #expect(try openPaged().holdsIndex(index))
  }

  // MARK: Commits

  @Test func aCommitDropsTheIndexesThatItDoesNotName() throws {
    let backend = try makeIndexed()
    try backend.extendIndex(other, by: keys("x"), isFirst: true)
    try backend.commit(batch([record("a", "2", at: 2)], at: 2, indexes: []))
    #expect(!backend.holdsIndex(index))
    // The other collection has not changed.
    try backend.storeBoundaries(keys(""), of: other)
    #expect(backend.holdsIndex(other))
    try backend.commit(batch([record("v", nil, at: 3, in: "visits")], at: 3, indexes: [index]))
    #expect(!backend.holdsIndex(other))
    try backend.close()
    #expect(try tables() == "; 0")
  }

  @Test func anEditThatDoesNotFitDropsTheIndexAndTheCommitSucceeds() throws {
    for edits in [[edit("none", "5")], [edit(nil, "2b")], [edit("1a", "5"), edit("1a", "6")]] {
      try directory.replace(with: [:])
      let backend = try makeIndexed()
      try backend.commit(batch([record("a", "2", at: 2)], at: 2, edits))
      #expect(!backend.holdsIndex(index))
      #expect(try backend.keepBase().records([RecordKey("a")], of: "spots").first??.revision == Revision(2))
      expectNoIndex { _ = try backend.keepBase().indexKeys(of: index, from: Data(), below: nil) }
      try backend.close()
      #expect(try tables() == "; 0")
    }
  }

  @Test func editsAreAppliedInTheirOrder() throws {
    let backend = try makeIndexed()
    try backend.commit(
      batch([record("a", nil, at: 2)], at: 2, [edit("1a", "5a"), edit("5a", "1a"), edit("1a", "1a"), edit("1a", nil), edit(nil, nil)]))
    #expect(try read(backend) == ["2b", "3c", "4d"])
    #expect(backend.verify().isSound)
    try backend.close()
  }

  @Test func deletionsOnAFullDiskRemoveTheKeys() throws {
    let backend = try makeIndexed()
    try backend.commitOnFullDisk(batch([record("a", nil, at: 2)], at: 2, [edit("1a", nil)]))
    #expect(try read(backend) == ["2b", "3c", "4d"])
    try backend.commitOnFullDisk(batch([record("b", nil, at: 3)], at: 3, indexes: []))
    #expect(!backend.holdsIndex(index))
    #expect(backend.verify().isSound)
    try backend.close()
  }

  /// Removing every second key writes every page of the index into the log, which has no room.
  @Test(arguments: [false, true]) func deletionsWithoutRoomForTheIndexDropIt(isTableDamaged: Bool) throws {
    var backend = try openPaged(disk: FaultyFiles.disk)
    let names = (10_000..<20_000).map(String.init)
    let long = String(repeating: "x", count: 200)
    try backend.commit(batch(names.map { record($0, "1", at: 1) }, at: 1))
    try backend.extendIndex(index, by: names.map { key($0 + long) }, isFirst: true)
    try backend.storeBoundaries(keys(""), of: index)
    try backend.checkpoint()
    if isTableDamaged {
      // The new connection has no page of the table in its cache.
      try backend.close()
      backend = try openPaged(disk: FaultyFiles.disk)
      try damage(rootOf: "larder_indexes")
    }
    let size = try directory.contents().reduce(0) { $0 + ($1.key.hasSuffix("-lock") || $1.key.hasSuffix("-wal") ? 0 : $1.value.count) }
    FaultyFiles.setDisk(size + 1_500_000, at: main)
    defer { FaultyFiles.setDisk(nil, at: main) }
    let deleted = names.filter { Int($0)?.isMultiple(of: 2) == true }
    try backend.commitOnFullDisk(batch(deleted.map { record($0, nil, at: 2) }, at: 2, deleted.map { edit($0 + long, nil) }))
    #expect(!backend.holdsIndex(index))
    // In a damaged file, the pages of the index are not freed, so the log has no room in the file.
    if isTableDamaged { FaultyFiles.setDisk(nil, at: main) }
    let report = backend.verify()
    #expect(report.isSound != isTableDamaged)
    #expect(isTableDamaged || report.recordCount == 5_000 && report.tombstoneCount == 5_000)
    try backend.close()
    #expect(try readBack(url).report.recordCount == 5_000)
  }

  /// An index in the log needs room in the file, too, which the records must have left for deletions.
  @Test func anIndexWithoutRoomInTheFileIsRefused() throws {
    let backend = try openPaged(disk: FaultyFiles.disk)
    let long = String(repeating: "x", count: 200)
    try backend.commit(batch([record("a", "1", at: 1)], at: 1))
    let size = try directory.contents().reduce(0) { $0 + ($1.key.hasSuffix("-lock") ? 0 : $1.value.count) }
    FaultyFiles.setDisk(size + 3_000_000, at: main)
    defer { FaultyFiles.setDisk(nil, at: main) }
    var parts = 0
    #expect(throws: RepositoryError.self) {
      // 2 MB of keys, which the disk has room for once, and not in the log and in the file.
      for part in 0..<10 {
        try backend.extendIndex(index, by: (0..<1_000).map { key("\(10_000 + part * 1_000 + $0)" + long) }, isFirst: part == 0)
        parts += 1
      }
    }
    #expect(parts > 0 && parts < 8)
    try backend.dropIndex(index)
    try backend.commit(batch([record("a", nil, at: 2)], at: 2))
    try backend.close()
  }

  // MARK: Failures

  /// After a failed commit the indexes are those of the commit before, in memory and in the file.
  @Test(arguments: [true, false]) func aFailedCommitLeavesTheIndexes(isNamed: Bool) throws {
    let backend = try makeIndexed()
    FaultyFiles.set(.init(operation: .write, countdown: 1, result: SQLITE_FULL), at: log)
    #expect(throws: RepositoryError.self) {
      try backend.commit(batch([record("a", "2", at: 2)], at: 2, [edit("1a", "7a")], indexes: isNamed ? [index] : []))
    }
    FaultyFiles.set(nil, at: log)
    #expect(backend.holdsIndex(index))
    #expect(try read(backend) == ["1a", "2b", "3c", "4d"])
    try backend.commit(batch([record("a", "2", at: 2)], at: 2, [edit("1a", "8a")]))
    #expect(try read(backend) == ["2b", "3c", "4d", "8a"])
    #expect(backend.verify().isSound)
    try backend.close()
    #expect(try read(openPaged()) == ["2b", "3c", "4d", "8a"])
  }

  @Test func aFailedChangeOfAnIndexLeavesItAsItWas() throws {
    func failing(_ body: () throws -> Void) {
      FaultyFiles.set(.init(operation: .write, countdown: 1, result: SQLITE_FULL), at: log)
      #expect(throws: RepositoryError.self) { try body() }
      FaultyFiles.set(nil, at: log)
    }
    let backend = try makeIndexed()
    failing { try backend.extendIndex(other, by: keys("b"), isFirst: true) }
    expectNoIndex { try backend.extendIndex(other, by: keys("c"), isFirst: false) }
    try backend.extendIndex(other, by: keys("b"), isFirst: true)
    failing { try backend.extendIndex(other, by: keys("c"), isFirst: false) }
    failing { try backend.extendIndex(other, by: keys("a"), isFirst: false) }
    try backend.extendIndex(other, by: keys("c", "d"), isFirst: false)
    failing { try backend.storeBoundaries(keys(""), of: other) }
    #expect(!backend.holdsIndex(other))
    try backend.storeBoundaries(keys(""), of: other)
    failing { try backend.dropIndex(other) }
    #expect(backend.holdsIndex(other))
    failing { try backend.extendIndex(other, by: keys("x"), isFirst: true) }
    #expect(try read(backend, of: other) == ["b", "c", "d"])
    failing { try backend.commit(batch([record("a", "2", at: 2)], at: 2, indexes: [])) }
    #expect(try read(backend) == ["1a", "2b", "3c", "4d"])
    try backend.close()
    let again = try openPaged()
    #expect(again.holdsIndex(index) && again.holdsIndex(other))
    try again.close()
  }

  /// A large index goes through the log in bounded pieces, also beside a base.
  @Test func aLargeIndexDoesNotGrowTheLogWithoutABound() throws {
    let backend = try openPaged()
    try backend.commit(batch([record("a", "1", at: 1)], at: 1))
    let base = try backend.keepBase()
    var largest = 0
    for block in 0..<60 {
      let numbers = (block * 2_000..<(block + 1) * 2_000).map { String(1_000_000 + $0) + String(repeating: "k", count: 100) }
      try backend.extendIndex(index, by: numbers.map(key), isFirst: block == 0)
      largest = max(largest, try directory.contents()["spots.sqlite-wal"]?.count ?? 0)
    }
    #expect(largest < 6_000_000, "\(largest)")
    try backend.storeBoundaries(keys(""), of: index)
    #expect(try backend.keepBase().indexKeyCount(of: index, from: Data(), below: nil) == 120_000)
    #expect(try base.records([RecordKey("a")], of: "spots").count == 1)
    try backend.close()
  }

  // MARK: Tables without a row

  /// Dropping a table reads all of its pages, which a commit must not do.
  @Test(arguments: [true, false]) func aCommitLeavesTheTableOfADroppedIndex(isClosed: Bool) throws {
    let backend = try makeIndexed()
    try backend.commit(batch([record("a", "2", at: 2)], at: 2, [edit("none", "5")]))
    #expect(!backend.holdsIndex(index))
    guard isClosed else {
      try kill(backend)
      #expect(try tables() == "larder_index_1; 0")
      let again = try openPaged()
      #expect(!again.holdsIndex(index))
      try again.close()
      return #expect(try tables() == "; 0")
    }
    // A table that cannot be dropped keeps its number, and fails neither the checkpoint nor the close.
    FaultyFiles.set(.init(operation: .write, countdown: 1, result: SQLITE_FULL), at: log)
    try backend.checkpoint()
    FaultyFiles.set(nil, at: log)
    try backend.close()
    #expect(try tables() == "; 0")
  }

  @Test func aNewIndexTakesThePlaceOfADroppedOne() throws {
    let backend = try makeIndexed()
    try backend.extendIndex(index, by: keys("5e"), isFirst: true)
    try kill(backend)
    #expect(try tables() == "larder_index_2; 1")
  }

  @Test func aFailedSyncOfADropPoisonsTheStore() throws {
    let backend = try makeIndexed()
    try backend.dropIndex(index)
    FaultyFiles.set(.init(operation: .sync, countdown: 1, result: SQLITE_IOERR | 4 << 8), at: log)
    #expect { try backend.extendIndex(other, by: keys("x"), isFirst: true) } throws: { ($0 as? RepositoryError)?.code == .outcomeUnknown }
    FaultyFiles.set(nil, at: log)
    #expect { try backend.commit(batch([], at: 2)) } throws: { ($0 as? RepositoryError)?.code == .poisoned }
    backend.abandon()
  }

  /// Another process may drop an index during a suspension, and leave its table.
  @Test func aRowThatWasDeletedDuringASuspensionIsForgotten() throws {
    let backend = try makeIndexed()
    try backend.suspend()
    try ForeignDatabase(url).run("DELETE FROM larder_indexes")
    #expect(try backend.resume())
    #expect(!backend.holdsIndex(index))
    try backend.close()
    #expect(try tables() == "; 0")
  }

  @Test func aBackupHasTheIndexes() throws {
    let backend = try makeIndexed()
    let copy = directory.file("copy.sqlite")
    try backend.backup(to: copy)
    try backend.close()
    let restored = SQLiteBackend(file: copy)
    _ = try restored.recover(try restored.openPaged(StoreOptions()) { _ in }.report)
    #expect(restored.holdsIndex(index))
    #expect(try read(restored) == ["1a", "2b", "3c", "4d"])
    try restored.close()
  }
}
