import Foundation
import Larder
import Synchronization
import TestSupport
import Testing

@testable import LarderSQLite

/// Records that stay in the database: the table of counts, and reads of one commit beside later ones.
@Suite("SQLite: records that stay in the database", .timeLimit(.minutes(5)))
struct SQLitePagingTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  /// Opens the store without its records, and returns the backend with the counts that it has found.
  private func openPaged(_ options: StoreOptions = .init()) throws -> (backend: SQLiteBackend, opening: PagedOpening) {
    let backend = SQLiteBackend(file: url)
    let opening = try backend.openPaged(options) { _ in }
    _ = try backend.recover(opening.report)
    return (backend, opening)
  }

  /// Damages a record, so that a reader of all records would refuse the store.
  private func damage(_ key: String) throws {
    try ForeignDatabase(url).run("UPDATE spots SET value = '\"damaged\"' WHERE id = '\(key)'")
  }

  private func summaries(_ opening: PagedOpening) -> [CollectionSummary] { opening.collections.sorted { $0.name < $1.name } }

  /// Leaves the files as they are now, as a killed process does.
  private func kill(_ backend: SQLiteBackend) throws {
    let files = try directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") }
    backend.abandon()
    try directory.replace(with: files)
  }

  // MARK: The table of counts

  @Test func theTableHasTheCountsOfTheRecordsByVersion() throws {
    let (backend, empty) = try openPaged()
    #expect(empty.report.isNew && empty.collections.isEmpty)
    let first = [record("a", "\"1\"", at: 1), record("b", "\"22\"", at: 1, version: 2), record("c", "3", at: 1, in: "visits")]
    try backend.commit(first, at: 1)
    try backend.commit([record("a", "\"4444\"", at: 2, version: 3), record("b", nil, at: 2)], at: 2)
    try backend.commit([record("x", nil, at: 3)], at: 3)
    try backend.close()
    let (again, opening) = try openPaged()
    #expect(opening.report.commit == Revision(3) && opening.report.recordCount == 2)
    #expect(
      summaries(opening) == [
        CollectionSummary(name: "spots", recordCount: 1, byteCount: 6, schemaVersions: 3...3),
        CollectionSummary(name: "visits", recordCount: 1, byteCount: 1, schemaVersions: 1...1),
      ])
    try again.close()
    #expect(try readBack(url).contents.count { $0.value.hasSuffix("deleted") == false } == 2)
  }

  @Test func openingReadsNoRecordAndAReadFindsTheDamage() throws {
    let (backend, _) = try openPaged()
    try backend.commit([record("a", "1", at: 1), record("b", "2", at: 1)], at: 1)
    try backend.close()
    try damage("a")
    let (again, opening) = try openPaged()
    #expect(summaries(opening).map(\.recordCount) == [2])
    let base = try again.keepBase()
    #expect(try base.records([RecordKey("b"), RecordKey("none")], of: "spots").map { $0.map(text) } == ["1 1 2", nil])
    #expect(throws: RepositoryError.self) { try base.records([RecordKey("a")], of: "spots") }
    #expect(throws: RepositoryError.self) { try base.records(of: "spots", after: nil, limit: 10) }
    #expect(!again.verify().isSound)
    try again.close()
    #expect(throws: RepositoryError.self) { try readBack(url) }
  }

  @Test func openingAfterAKillReadsNoRecord() throws {
    let (backend, _) = try openPaged()
    try backend.commit([record("a", "1", at: 1), record("b", "2", at: 1)], at: 1)
    try backend.close()
    try damage("a")
    let (second, _) = try openPaged()
    try second.commit([record("c", "3", at: 2)], at: 2)
    try second.commit([record("b", "4", at: 3)], at: 3, .buffered)
    try kill(second)
    let (third, opening) = try openPaged()
    #expect(opening.report.commit == Revision(3) && opening.report.replayedCommits > 0)
    #expect(summaries(opening).map(\.recordCount) == [3])
    try third.commit([record("d", "5", at: 4)], at: 4)
    #expect(try third.keepBase().records([RecordKey("b"), RecordKey("c"), RecordKey("d")], of: "spots").compactMap(\.self).count == 3)
    try third.close()
  }

  /// The writer of a store in memory does not keep the counts: they must be made anew, whether it was closed or killed.
  @Test(arguments: [false, true]) func anotherWriterMakesTheCountsOld(isKilled: Bool) throws {
    let (backend, _) = try openPaged()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    try backend.close()
    let resident = SQLiteBackend(file: url)
    _ = try resident.openAll()
    for number: UInt64 in 2...4 { try resident.commit([record("spot-\(number)", "\(number)", at: number)], at: number) }
    if isKilled { try kill(resident) } else { try resident.close() }
    let (again, opening) = try openPaged()
    #expect(opening.report.commit == Revision(4) && summaries(opening).map(\.recordCount) == [4])
    try again.commit([record("b", "5", at: 5)], at: 5)
    try again.close()
    #expect(summaries(try openPaged().opening).map(\.recordCount) == [5])
  }

  /// A version that does not know the table leaves its rows behind.
  @Test(arguments: [false, true]) func rowsOfAnEarlierCommitAreNotBelieved(isKilled: Bool) throws {
    let (backend, _) = try openPaged()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    try backend.close()
    let columns = ["quote(name)", "version", "records", "bytes", "commit_number", "crc"].joined(separator: " || ',' || ")
    let rows = try ForeignDatabase(url).text("SELECT group_concat('(' || \(columns) || ')') FROM larder_collections", column: 0)
    let older = SQLiteBackend(file: url)
    _ = try older.openAll()
    for number: UInt64 in 2...4 { try older.commit([record("spot-\(number)", "\(number)", at: number)], at: number) }
    let other = try ForeignDatabase(url)
    other.keepLog()
    try other.run("INSERT INTO larder_collections VALUES \(rows)")
    if isKilled { try kill(older) } else { try older.close() }
    let (_, opening) = try openPaged()
    #expect(opening.report.commit == Revision(4) && summaries(opening).map(\.recordCount) == [4])
  }

  @Test(arguments: ["DROP TABLE larder_collections", "UPDATE larder_collections SET records = 7", "DELETE FROM larder_collections"])
  func aTableThatIsMissingOrDamagedIsMadeAnew(_ change: String) throws {
    let (backend, _) = try openPaged()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    try backend.commit([record("b", "1", at: 2)], at: 2)
    try backend.close()
    try ForeignDatabase(url).run(change)
    let (again, opening) = try openPaged()
    #expect(summaries(opening).map(\.recordCount) == [2])
    try again.close()
    try damage("a")
    #expect(summaries(try openPaged().opening).map(\.recordCount) == [2])
  }

  @Test func aFailedCommitLeavesTheCounts() throws {
    let (backend, _) = try openPaged()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    // The second record's collection has a name that no table can have, after the first one was counted.
    #expect(throws: RepositoryError.self) {
      try backend.commit([record("b", "2", at: 2), record("c", "3", at: 2, in: "sqlite_x")], at: 2)
    }
    try backend.commit([record("d", "4", at: 2)], at: 2)
    try backend.close()
    #expect(summaries(try openPaged().opening).map(\.recordCount) == [2])
  }

  @Test func readOnlyAccessIsRefused() throws {
    try openPaged().backend.close()
    #expect(throws: RepositoryError.self) { try openPaged(StoreOptions(access: .readOnly)) }
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll(StoreOptions(access: .readOnly))
    #expect(throws: RepositoryError.self) { try backend.keepBase() }
    try backend.close()
  }

  // MARK: Bases

  @Test func aBaseKeepsItsCommit() throws {
    let (backend, _) = try openPaged()
    try backend.commit([record("a", "1", at: 1), record("b", "1", at: 1)], at: 1)
    let first = try backend.keepBase()
    try backend.commit([record("a", "2", at: 2), record("b", nil, at: 2), record("c", "2", at: 2)], at: 2)
    let second = try backend.keepBase()
    try backend.checkpoint()
    #expect(first.commit == Revision(1) && second.commit == Revision(2))
    #expect(try first.records(of: "spots", after: nil, limit: 9).map(text) == ["1 1 1", "1 1 1"])
    #expect(try second.records(of: "spots", after: nil, limit: 9).map(text) == ["2 1 2", "2 1 2"])
    #expect(try second.records(of: "spots", after: RecordKey("a"), limit: 1).map(\.key.text) == ["c"])
    #expect(try first.records(of: "visits", after: nil, limit: 9).isEmpty)
    try backend.close()
    expectSuperseded(first)
    expectSuperseded(second)
  }

  private func expectSuperseded(_ base: any StoredBase) {
    do throws(RepositoryError) {
      _ = try base.records([RecordKey("a")], of: "spots")
      Issue.record("expected a superseded base")
    } catch {
      #expect(error.code == .superseded)
    }
  }

  private func logSize() throws -> Int { try directory.contents()["spots.sqlite-wal"]?.count ?? 0 }

  /// Commits records of 16 KiB until their values have a length together.
  private func write(_ bytes: Int, to backend: SQLiteBackend, from first: UInt64, _ after: () throws -> Void = {}) throws -> UInt64 {
    let value = "\"" + String(repeating: "x", count: 16 << 10) + "\""
    var number = first
    for _ in 0..<bytes / value.utf8.count {
      try backend.commit([record("large-\(number % 7)", value, at: number)], at: number, .buffered)
      number += 1
      try after()
    }
    return number
  }

  /// The store replaces the base when the backend asks for it, and the log begins anew.
  @Test func theLogIsBoundedWhileBasesAreInUse() throws {
    let (backend, _) = try openPaged()
    var base: (any StoredBase)? = try backend.keepBase()
    var largest = 0
    _ = try write(40_000_000, to: backend, from: 1) {
      if backend.wantsNewerBase { base = try backend.keepBase() }
      largest = max(largest, try logSize())
    }
    #expect(base != nil && largest < 5_000_000, "\(largest)")
    try backend.close()
  }

  @Test func anOldBaseIsSupersededWhenTheLogIsLong() throws {
    let (backend, _) = try openPaged()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    let old = try backend.keepBase()
    var newest: (any StoredBase)? = try backend.keepBase()
    var largest = 0
    let last = try write(60_000_000, to: backend, from: 2) {
      if backend.wantsNewerBase { newest = try backend.keepBase() }
      largest = max(largest, try logSize())
    }
    expectSuperseded(old)
    #expect(largest < 20_000_000, "\(largest)")
    #expect(try newest?.records([RecordKey("a")], of: "spots").first??.value == Data("1".utf8))
    #expect(last > 3_000)
    try backend.close()
  }

  /// A checkpoint beside an old base does not empty the log, and must not hide its length.
  @Test func checkpointsBesideNewAndOldBasesBoundTheLog() throws {
    let (backend, _) = try openPaged()
    var held: [any StoredBase] = [try backend.keepBase()]
    var (largest, number): (Int, UInt64) = (0, 1)
    for _ in 0..<40 {
      number = try write(1_000_000, to: backend, from: number)
      largest = max(largest, try logSize())
      // As a view that renews its snapshot, and a store that moves on before a checkpoint.
      held = [held.last, try backend.keepBase()].compactMap(\.self)
      // Only before the commit after this checkpoint is the newest base one of the newest commit.
      try backend.checkpoint()
    }
    // The log has grown to its bound, so that the bases have kept it.
    #expect(largest > 15_000_000 && largest < 20_000_000, "\(largest)")
    try backend.close()
  }

  @Test func anOldBaseOfAShortLogIsRead() throws {
    let (backend, _) = try openPaged()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    let old = try backend.keepBase()
    _ = try write(8_000_000, to: backend, from: 2)
    #expect(try old.records([RecordKey("a"), RecordKey("large-1")], of: "spots").map { $0.map(text) } == ["1 1 1", nil])
    try backend.close()
  }

  @Test func aCheckpointEmptiesTheLogUnderABaseOfTheNewestCommit() throws {
    let (backend, _) = try openPaged()
    _ = try write(1_000_000, to: backend, from: 1)
    let base = try backend.keepBase()
    try backend.checkpoint()
    let marked = try directory.contents()["spots.sqlite-wal"].map { $0.starts(with: SQLiteLogInspection.emptyMark) || $0.isEmpty }
    #expect(marked == true)
    #expect(try base.records(of: "spots", after: nil, limit: 9).count == 7)
    try backend.close()
  }

  @Test func aSuspendedBaseIsReadAfterTheStoreIsResumed() throws {
    let (backend, _) = try openPaged()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    let old = try backend.keepBase()
    try backend.commit([record("a", "2", at: 2)], at: 2)
    let base = try backend.keepBase()
    try backend.suspend()
    do throws(RepositoryError) { _ = try base.records([RecordKey("a")], of: "spots") } catch { #expect(error.code == .suspended) }
    #expect(try backend.resume())
    #expect(try base.records([RecordKey("a")], of: "spots").map { $0.map(text) } == ["2 1 2"])
    expectSuperseded(old)
    try backend.commit([record("a", "3", at: 3)], at: 3)
    #expect(try base.records([RecordKey("a")], of: "spots").map { $0.map(text) } == ["2 1 2"])
    try backend.close()
  }

  @Test func aResumedStoreKeepsTheCountsUpToDate() throws {
    let (backend, _) = try openPaged()
    try backend.commit([record("a", "1", at: 1), record("b", "1", at: 1)], at: 1)
    try backend.suspend()
    #expect(try backend.resume())
    try backend.commit([record("c", "3", at: 2)], at: 2)
    try backend.close()
    try damage("a")
    // An opening that reads every record would refuse the store.
    #expect(summaries(try openPaged().opening).map(\.recordCount) == [3])
  }

  @Test func theEighthNewerBaseSupersedesAnOldOne() throws {
    let (backend, _) = try openPaged()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    var bases = [try backend.keepBase()]
    for number: UInt64 in 2...8 {
      try backend.commit([record("a", "\(number)", at: number)], at: number)
      bases.append(try backend.keepBase())
    }
    #expect(try bases[0].records([RecordKey("a")], of: "spots").map { $0.map(text) } == ["1 1 1"])
    bases.append(try backend.keepBase())
    expectSuperseded(bases[0])
    #expect(try bases[1].records([RecordKey("a")], of: "spots").map { $0.map(text) } == ["2 1 2"])
    try backend.close()
  }

  @Test func manyThreadsReadOneBaseBesideCommits() async throws {
    let (backend, _) = try openPaged()
    try backend.commit((0..<200).map { record("\($0)", "1", at: 1) }, at: 1)
    let base = try backend.keepBase()
    await withTaskGroup(of: Int.self) { group in
      for _ in 0..<8 {
        group.addTask {
          var wrong = 0
          for key in 0..<200 {
            do throws(RepositoryError) {
              if try base.records([RecordKey("\(key)")], of: "spots").first??.value != Data("1".utf8) { wrong += 1 }
            } catch { wrong += 1 }
          }
          return wrong
        }
      }
      for number: UInt64 in 2...40 {
        do throws(RepositoryError) { try backend.commit((0..<20).map { record("\($0)", "2", at: number) }, at: number, .buffered) } catch {
          Issue.record("\(error)")
        }
      }
      for await wrong in group { #expect(wrong == 0) }
    }
    try backend.close()
  }

  // MARK: In a repository

  private struct Spot: Codable, Identifiable, Sendable, Equatable {
    let id: Int
    var name: String
  }

  /// The backend gives up every base but the newest: no collection may stay behind.
  @Test func aSecondCollectionMovesTheFirstOneOn() async throws {
    let free = Mutex(1 << 40)
    let backend = SQLiteBackend(file: url, disk: SQLiteDisk { _ in free.withLock { $0 } })
    let options = StoreOptions(durability: .buffered, checkpoint: .manual, residency: .onDisk(cache: .bytes(0)))
    let store = try await Store.open(backend, options: options)
    let spots = try await store.repository(RepositorySchema<Spot>("spots"))
    try await spots.save(contentsOf: (0..<10).map { Spot(id: $0, name: "\($0)") })
    try await store.checkpoint()
    let old = spots.snapshot
    let filler = try await store.repository(RepositorySchema<Spot>("filler", residency: .full))
    // SQLite does not write a page whose bytes stay the same.
    func text(_ number: Int) -> String { String(repeating: "\(number % 10)", count: 200_000) }
    // The bases move on at 1,000 and at 2,000 pages, so at 1,500 pages the base of the spots is older than the newest commit.
    for number in 0..<30 { try await filler.save(Spot(id: number % 3, name: text(number))) }
    let length = try logSize()
    #expect(5_500_000..<7_500_000 ~= length, "\(length)")
    // On a disk with little space, the commit after the opening of the second collection gives up every base but the newest one.
    free.withLock { $0 = 1 << 28 }
    let visits = try await store.repository(RepositorySchema<Spot>("visits"))
    for number in 0..<5 {
      try await filler.save(Spot(id: number, name: text(number + 1)))
      #expect(try await spots.find(by: 3) == Spot(id: 3, name: "3"))
      try await spots.save(Spot(id: 100 + number, name: "new"))
      #expect(try await visits.find(by: 3) == nil)
    }
    #expect(throws: RepositoryError.self) { try old.find(by: 3) }
    try await store.close()
  }

  @Test func aRepositoryReadsItsRecordsFromTheDatabase() async throws {
    let options = StoreOptions(residency: .onDisk(cache: .megabytes(1)))
    let schema = RepositorySchema<Spot>("spots", indexes: [.ordered(\.name)])
    let first = try await LocalRepository(sqliteFile: url, schema: schema, options: options)
    try await first.save(contentsOf: (0..<3_000).map { Spot(id: $0, name: "spot \($0 % 100)") })
    try await first.close()
    let spots = try await LocalRepository(sqliteFile: url, schema: schema, options: options)
    #expect(spots.openReport.residency == .onDisk(cache: .megabytes(1)) && spots.openReport.recordCount == 3_000)
    #expect(try await spots.find(by: 7) == Spot(id: 7, name: "spot 7"))
    #expect(try await spots.fetch(Query().where(\.name, .equal, "spot 7")).count == 30)
    let before = spots.snapshot
    try await spots.save(Spot(id: 7, name: "changed"))
    try await spots.delete(8)
    try await spots.checkpoint()
    #expect(try before.find(by: 7)?.name == "spot 7" && before.find(by: 8) != nil && before.count == 3_000)
    #expect(try await spots.find(by: 7)?.name == "changed")
    #expect(try await spots.count() == 2_999)
    try await spots.close()
    let resident = try await LocalRepository(sqliteFile: url, schema: schema)
    #expect(try await resident.count() == 2_999)
    #expect(try await resident.find(by: 7)?.name == "changed")
    try await resident.close()
  }
}
