import CSQLite
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

/// Records that stay in a database to which several processes write: each opening has its own locks, as another process has.
@Suite("SQLite: shared records that stay in the database", .timeLimit(.minutes(5)))
struct SharedPagingTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  private let options = StoreOptions(access: .shared)

  /// Opens the store without its records, and returns the number of records that it has found.
  private func openPaged() throws -> (backend: SQLiteBackend, count: Int) {
    let backend = SQLiteBackend(file: url)
    let opening = try backend.openPaged(options) { _ in }
    _ = try backend.recover(opening.report)
    return (backend, opening.collections.reduce(0) { $0 + $1.recordCount })
  }

  private func openResident() throws -> SQLiteBackend {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll(options)
    return backend
  }

  /// Commits a record as a store does, after the commits of others.
  private func commit(_ key: String, _ value: String?, at number: UInt64, by backend: SQLiteBackend) throws {
    _ = try backend.beginCommit(after: Revision(number - 1), .durable)
    try backend.commit([record(key, value, at: number)], at: number)
  }

  /// Damages a record, so that an opening that reads all records refuses the store.
  private func damage(_ key: String) throws {
    try ForeignDatabase(url).run("UPDATE spots SET value = '\"damaged\"' WHERE id = '\(key)'")
  }

  private func values(_ base: any StoredBase) throws -> [String] {
    try base.records(of: "spots", after: nil, limit: 99).map { "\($0.key.text)\($0.revision)" }
  }

  // MARK: Opening

  @Test func openingsReadNoRecordWhileEveryProcessKeepsTheCounts() throws {
    let (one, none) = try openPaged()
    let (two, _) = try openPaged()
    try commit("a", "1", at: 1, by: one)
    try commit("b", "2", at: 2, by: two)
    try commit("c", "3", at: 3, by: one)
    try commit("a", nil, at: 4, by: two)
    try damage("b")
    let (three, count) = try openPaged()
    #expect(none == 0 && count == 2)
    for backend in [one, two, three] { try backend.close() }
    let (again, countAgain) = try openPaged()
    #expect(countAgain == 2)
    try again.close()
    #expect(throws: RepositoryError.self) { try openResident() }
  }

  /// A process with its records in memory does not keep the counts.
  @Test(arguments: [false, true]) func theCountsAreMadeAnewAfterACommitWithoutThem(isOpen: Bool) throws {
    let (one, _) = try openPaged()
    try commit("a", "1", at: 1, by: one)
    let two = try openResident()
    try commit("b", "2", at: 2, by: two)
    try commit("c", "3", at: 3, by: two)
    let (three, count) = try openPaged()
    #expect(count == 3)
    // Counts that are up to date at this commit, and are not at the next one.
    try commit("d", "4", at: 4, by: three)
    try commit("a", nil, at: 5, by: two)
    try commit("e", "6", at: 6, by: one)
    if !isOpen { for backend in [one, two, three] { try backend.close() } }
    let (four, countAtEnd) = try openPaged()
    #expect(countAtEnd == 4)
    try four.close()
    if isOpen { for backend in [one, two, three] { try backend.close() } }
  }

  /// Stored indexes fit the commits of an exclusive store only.
  @Test func aSharedCommitDropsTheIndexesOfAnExclusiveStore() throws {
    let index = StoredIndexID(collection: "spots", name: "by rating")
    let exclusive = SQLiteBackend(file: url)
    _ = try exclusive.recover(try exclusive.openPaged(.init()) { _ in }.report)
    try exclusive.commit([record("a", "1", at: 1)], at: 1)
    try exclusive.extendIndex(index, by: [Data("a".utf8)], isFirst: true)
    try exclusive.storeBoundaries([Data()], of: index)
    try exclusive.close()
    let (shared, _) = try openPaged()
    #expect(!shared.storesIndexes && !shared.holdsIndex(index))
    try commit("b", "2", at: 2, by: shared)
    try shared.close()
    let again = SQLiteBackend(file: url)
    let opening = try again.openPaged(.init()) { _ in }
    #expect(opening.collections.map(\.recordCount) == [2] && !again.holdsIndex(index))
    _ = try again.recover(opening.report)
    try again.close()
  }

  // MARK: Bases

  @Test func theFirstBaseIsOfTheCommitThatTheOpeningHasRead() throws {
    let (one, _) = try openPaged()
    try commit("a", "1", at: 1, by: one)
    let two = SQLiteBackend(file: url)
    let opening = try two.openPaged(options) { _ in }
    try commit("b", "2", at: 2, by: one)
    _ = try two.recover(opening.report)
    try commit("c", "3", at: 3, by: one)
    let first = try two.keepBase()
    #expect(opening.report.commit == Revision(1) && first.commit == Revision(1))
    #expect(try values(first) == ["a1"])
    #expect(try two.beginCommit(after: Revision(1), .durable)?.records.count == 2)
    let second = try two.keepBase()
    two.cancelCommit()
    try commit("d", "4", at: 4, by: one)
    #expect(try values(second) == ["a1", "b2", "c3"] && second.commit == Revision(3))
    #expect(try values(first) == ["a1"])
    // Without a begun commit, the backend keeps other processes from committing by itself.
    #expect(try values(two.keepBase()) == ["a1", "b2", "c3", "d4"])
    try commit("e", "5", at: 5, by: one)
    for backend in [one, two] { try backend.close() }
  }

  @Test func theFirstBaseOfAnOpeningThatIsAloneIsOfItsCommit() throws {
    let (before, _) = try openPaged()
    try commit("a", "1", at: 1, by: before)
    try before.close()
    let (alone, _) = try openPaged()
    let (other, _) = try openPaged()
    try commit("b", "2", at: 2, by: other)
    let base = try alone.keepBase()
    #expect(try base.commit == Revision(1) && values(base) == ["a1"])
    #expect(try alone.foreignCommits(after: Revision(1))?.records.count == 1)
    for backend in [alone, other] { try backend.close() }
  }

  @Test func anOpeningThatIsAbandonedKeepsNoBase() throws {
    let (one, _) = try openPaged()
    try commit("a", "1", at: 1, by: one)
    var abandoned: [SQLiteBackend] = []
    for _ in 0..<4 {
      let other = SQLiteBackend(file: url)
      _ = try other.openPaged(options) { _ in }
      other.abandon()
      abandoned.append(other)
    }
    try one.close()
    #expect(try directory.contents().keys.sorted() == ["spots.sqlite"])
    // A base that was kept would hold its connections until the backend is released.
    let (again, _) = try openPaged()
    try commit("b", "2", at: 2, by: again)
    try again.checkpoint()
    #expect(try logSize() == 0)
    withExtendedLifetime(abandoned) {}
    try again.close()
  }

  private func commit(_ records: [StoredRecord], at number: UInt64, by backend: SQLiteBackend) throws {
    _ = try backend.beginCommit(after: Revision(number - 1), .durable)
    try backend.commit(records, at: number)
  }

  /// After a failed read, the counts of an earlier commit would pass for those of a later one whose sum is the same.
  @Test func aFailedReadOfTheCountsMakesNoWrongOnes() throws {
    var failures = 0
    for place in [main, log] {
      for countdown in 1...8 {
        try directory.replace(with: [:])
        let full = try openResident()
        try commit([record("a", "1", at: 1), record("y", "1", at: 1, in: "piers"), record("z", "1", at: 1, in: "piers")], at: 1, by: full)
        let (paged, _) = try openPaged()
        try commit([record("b", "1", at: 2)], at: 2, by: paged)
        try commit([record("c", "1", at: 3), record("y", nil, at: 3, in: "piers")], at: 3, by: full)
        FaultyFiles.set(.init(operation: .read, countdown: countdown, result: SQLITE_IOERR | 1 << 8, errorNumber: EPERM), at: place)
        do throws(RepositoryError) {
          _ = try paged.beginCommit(after: Revision(2), .durable)
          paged.cancelCommit()
        } catch { failures += 1 }
        FaultyFiles.set(nil, at: place)
        try commit([record("d", "1", at: 4)], at: 4, by: paged)
        for backend in [full, paged] { try backend.close() }
        let again = SQLiteBackend(file: url)
        let counts = try again.openPaged(options) { _ in }.collections.map { "\($0.name) \($0.recordCount)" }
        #expect(counts.sorted() == ["piers 1", "spots 4"], "read \(countdown) of \(place)")
        again.abandon()
      }
    }
    #expect(failures > 0)
  }

  @Test func damagedCountsAreMadeAnew() throws {
    let (one, _) = try openPaged()
    try commit("a", "1", at: 1, by: one)
    let (two, _) = try openPaged()
    try commit("b", "1", at: 2, by: two)
    try ForeignDatabase(url).run("UPDATE larder_collections SET records = 'many'")
    try commit("c", "1", at: 3, by: one)
    for backend in [one, two] { try backend.close() }
    #expect(try openPaged().count == 3)
  }

  @Test(arguments: [false, true]) func aSuspendedBaseIsReadOnlyAtItsCommit(othersWrite: Bool) throws {
    let (one, _) = try openPaged()
    let (two, _) = try openPaged()
    try commit("a", "1", at: 1, by: one)
    _ = try two.beginCommit(after: .zero, .durable)
    let base = try two.keepBase()
    two.cancelCommit()
    try two.suspend()
    if othersWrite { try commit("a", "2", at: 2, by: one) }
    #expect(try two.resume())
    if othersWrite {
      let error = #expect(throws: RepositoryError.self) { try values(base) }
      #expect(error?.code == .superseded)
    } else {
      #expect(try values(base) == ["a1"])
    }
    #expect(try two.foreignCommits(after: Revision(1))?.records.count == (othersWrite ? 1 : nil))
    try commit("b", "3", at: othersWrite ? 3 : 2, by: two)
    for backend in [one, two] { try backend.close() }
    #expect(try openPaged().count == 2)
  }

  // MARK: The log

  private func logSize() throws -> Int { Int(try #require(try FileManager.default.attributesOfItem(atPath: log)[.size] as? Int)) }

  /// Moves on to the newest commit, as a store does that looks for the commits of others.
  private func follow(_ backend: SQLiteBackend, _ base: inout (any StoredBase)?, after number: UInt64) throws {
    guard backend.wantsNewerBase else { return }
    _ = try backend.beginCommit(after: Revision(number), .durable)
    base = try backend.keepBase()
    backend.cancelCommit()
  }

  private static let large = "\"" + String(repeating: "x", count: 16 << 10) + "\""

  @Test func theLogOfAnotherProcessIsBounded() throws {
    let (reader, _) = try openPaged()
    let writer = try openResident()
    var base: (any StoredBase)? = try reader.keepBase()
    var largest = 0
    for number: UInt64 in 1...1_500 {
      try commit("large-\(number % 7)", Self.large, at: number, by: writer)
      if number % 10 == 0 { try follow(reader, &base, after: number) }
      largest = max(largest, try logSize())
    }
    #expect(base != nil && largest < 6_000_000, "\(largest)")
    for backend in [reader, writer] { try backend.close() }
  }

  private struct Boat: Codable, Identifiable, Sendable {
    let id: Int
    var name: String
  }

  /// Opens a store that looks for commits only at `refresh()`, which does the same as the timer of `pollInterval`.
  @Sendable private func open(_ residency: Residency) async throws -> LocalRepository<Boat> {
    let options = StoreOptions(access: .shared, checkpoint: .manual, residency: residency, pollInterval: nil)
    return try await LocalRepository(sqliteFile: url, schema: .init("boats", indexes: [.ordered(\.name)]), options: options)
  }

  @Test(arguments: [false, true]) func aLookForCommitsBoundsTheLog(besideALiveQuery isLive: Bool) async throws {
    let (reader, writer) = (try await open(.onDisk(cache: .bytes(0))), try await open(.full))
    var results = reader.results(of: Query().where(\.name, .equal, "none")).makeAsyncIterator()
    if isLive { _ = try await results.next() }
    var largest = 0
    for number in 1...1_200 {
      try await writer.save(Boat(id: number % 7, name: Self.large), durability: .buffered)
      if number % 10 == 0 { try await reader.refresh() }
      largest = max(largest, try logSize())
    }
    #expect(largest < 6_000_000, "\(largest)")
    #expect(try await reader.count() == 7)
    try await reader.close()
    try await writer.close()
  }

  /// A process that never gets the write lock beside the writers would never move on.
  @Test func busyWritersKeepNoLog() async throws {
    let reader = try await open(.onDisk(cache: .bytes(0)))
    let writers = (0..<3).map { number in
      Task {
        let writer = try await open(.full)
        for round in 0..<60 {
          try await writer.save(
            contentsOf: (0..<20).map { Boat(id: number * 100 + $0, name: "\(round)" + Self.large) }, durability: .buffered)
        }
        try await writer.close()
      }
    }
    let following = Task {
      var largest = 0
      while !Task.isCancelled {
        try await reader.refresh()
        largest = max(largest, try logSize())
      }
      return largest
    }
    for writer in writers { try await writer.value }
    following.cancel()
    let largest = try await following.value
    // The writers have written some 60 MB.
    #expect(largest < 30_000_000, "\(largest)")
    try await reader.close()
  }

  @Test func theOwnLogIsBounded() throws {
    let (writer, _) = try openPaged()
    let (other, _) = try openPaged()
    _ = try other.keepBase()
    var base: (any StoredBase)? = try writer.keepBase()
    var largest = 0
    for number: UInt64 in 1...1_500 {
      try follow(writer, &base, after: number - 1)
      try commit("large-\(number % 7)", Self.large, at: number, by: writer)
      largest = max(largest, try logSize())
    }
    #expect(base != nil && largest < 6_000_000, "\(largest)")
    for backend in [writer, other] { try backend.close() }
  }

  @Test func anOldBaseOfASharedStoreIsSupersededWhenTheLogIsLong() throws {
    let (writer, _) = try openPaged()
    try commit("a", "1", at: 1, by: writer)
    let old = try writer.keepBase()
    var base: (any StoredBase)? = try writer.keepBase()
    var largest = 0
    for number: UInt64 in 2...4_000 {
      try follow(writer, &base, after: number - 1)
      try commit("large-\(number % 7)", Self.large, at: number, by: writer)
      largest = max(largest, try logSize())
    }
    let error = #expect(throws: RepositoryError.self) { try values(old) }
    #expect(error?.code == .superseded && largest < 25_000_000, "\(largest)")
    #expect(try base?.records([RecordKey("a")], of: "spots").first??.value == Data("1".utf8))
    try writer.close()
  }

  /// Two processes whose bases keep the log from being copied empty it in a pause of the writes.
  @Test func twoProcessesEmptyTheLogInAPause() throws {
    let (one, _) = try openPaged()
    let (two, _) = try openPaged()
    var (first, second): ((any StoredBase)?, (any StoredBase)?) = (try one.keepBase(), try two.keepBase())
    var number: UInt64 = 0
    for _ in 0..<600 {
      number += 1
      try commit("large-\(number % 7)", Self.large, at: number, by: one)
      if number % 2 == 0 { try follow(one, &first, after: number) } else { try follow(two, &second, after: number) }
    }
    #expect(try logSize() > 6_000_000)
    for _ in 0..<3 {
      try follow(one, &first, after: number)
      try follow(two, &second, after: number)
    }
    // A log that is copied as a whole needs no newer base.
    #expect(!one.wantsNewerBase && !two.wantsNewerBase)
    try commit("a", "1", at: number + 1, by: one)
    #expect(try logSize() < 5_000_000)
    #expect(first != nil && second != nil)
    for backend in [one, two] { try backend.close() }
  }
}
