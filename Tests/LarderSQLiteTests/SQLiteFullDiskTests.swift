import CSQLite
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

/// A SQLite store that has filled its disk can be cleared.
@Suite(.serialized, .timeLimit(.minutes(15)))
struct SQLiteFullDiskTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  private let value = String(repeating: "x", count: 20_000)

  @Test(arguments: [0, 3, 10_000]) func aStoreThatHasFilledTheDiskCanBeCleared(_ limit: Int) throws {
    let backend = SQLiteBackend(file: url, disk: FaultyFiles.disk)
    _ = try backend.openAndRecover(StoreOptions(limits: .init(tombstones: limit))) { _ in }
    let keys = (0..<100).map { "key \($0)" }
    try backend.commit(keys.map { record($0, value, at: 1) } + [record("other", "1", at: 1, in: "others")], at: 1)
    try backend.checkpoint()
    // Not one page more, as on a disk that is full.
    try backend.execute("PRAGMA max_page_count = 1")
    #expect(code { try backend.commit([record("new", value, at: 2)], at: 2) } == .full)
    try backend.commitOnFullDisk(WriteBatch(records: keys.map { record($0, nil, at: 2) }, commits: 2...2))
    #expect(try size() < 100_000)
    #expect(backend.verify().isSound)
    try backend.execute("PRAGMA max_page_count = 1000000")
    try backend.commit([record("new", "1", at: 3)], at: 3)
    try backend.close()
    let (report, contents) = try readBack(url)
    let tombstones = limit == 10_000 ? 100 : 0
    #expect(report.commit == Revision(3) && contents.values.count { $0.hasPrefix("2 ") } == tombstones)
    #expect(contents.count == 2 + tombstones)
    #expect(report.tombstoneHorizon == Revision(limit == 10_000 ? 0 : 2))
  }

  /// Before, the value was written as a tombstone whose checksum was wrong.
  @Test func aBatchWithAValueIsCommittedAsAnyOther() throws {
    let backend = SQLiteBackend(file: url, disk: FaultyFiles.disk)
    _ = try backend.openAndRecover(StoreOptions()) { _ in }
    try backend.commit([record("a", "1", at: 1), record("b", "1", at: 1)], at: 1)
    try backend.commitOnFullDisk(WriteBatch(records: [record("a", "2", at: 2), record("b", nil, at: 2)], commits: 2...2))
    #expect(backend.verify().isSound)
    try backend.close()
    #expect(try Set(readBack(url).contents.values) == ["2 1 2", "2 1 deleted"])
  }

  /// The next sync would succeed, and prove nothing.
  @Test func aSyncThatFailsWhileSpaceIsGivenBackLetsNoDeletionThrough() throws {
    let backend = SQLiteBackend(file: url, disk: FaultyFiles.disk)
    _ = try backend.openAndRecover(StoreOptions()) { _ in }
    try backend.commit([record("a", "1", at: 1)], at: 1)
    try backend.commit([record("b", "1", at: 2)], at: 2, .buffered)
    FaultyFiles.set(.init(operation: .sync, countdown: 1, result: SQLITE_IOERR | 4 << 8), at: log)
    let deletion = WriteBatch(records: [record("a", nil, at: 3)], commits: 3...3)
    #expect(code { try backend.commitOnFullDisk(deletion) } == .poisoned)
    FaultyFiles.set(nil, at: log)
    #expect(code { try backend.commitOnFullDisk(deletion) } == .poisoned)
    try backend.close()
    #expect(try readBack(url).report.commit <= Revision(2))
  }

  @Test func someOfACollectionIsDeletedOneByOne() throws {
    let backend = SQLiteBackend(file: url, disk: FaultyFiles.disk)
    _ = try backend.openAndRecover(StoreOptions(limits: .init(tombstones: 0))) { _ in }
    try backend.commit((0..<50).map { record("key \($0)", value, at: 1) }, at: 1)
    try backend.execute("PRAGMA max_page_count = 1")
    try backend.commitOnFullDisk(WriteBatch(records: (0..<49).map { record("key \($0)", nil, at: 2) }, commits: 2...2))
    #expect(backend.verify().isSound)
    try backend.close()
    #expect(try readBack(url).contents.count == 1)
  }

  /// All of the store is in the log there, and the file has a few pages: there is no room for folding until it is small.
  ///
  /// After reopening, the deletions are an ordinary commit: nobody has found the disk full yet.
  @Test(arguments: [false, true], [2_000, 20_000]) func aStoreThatWasClearedTakesValuesAgain(_ reopens: Bool, _ size: Int) throws {
    try onDisk(of: 2 << 20) {
      var backend = SQLiteBackend(file: url, disk: FaultyFiles.disk)
      _ = try backend.openAndRecover(StoreOptions()) { _ in }
      let value = String(repeating: "x", count: size)
      let last = fill(backend, value, from: 0)
      #expect(last > 20)
      if reopens {
        backend = SQLiteBackend(file: url, disk: FaultyFiles.disk)  // the first is dropped, as by a crash
        _ = try backend.openAndRecover(StoreOptions()) { _ in }
      }
      let deletions = WriteBatch(records: (0..<last).map { record("key \($0)", nil, at: last + 1) }, commits: last + 1...last + 1)
      if reopens { try backend.commit(deletions) } else { try backend.commitOnFullDisk(deletions) }
      let again = fill(backend, value, from: last + 1)
      #expect(again > last + 1 + last / 2)
      #expect(backend.verify().isSound)
      backend = SQLiteBackend(file: url, disk: FaultyFiles.disk)
      var count: UInt64 = 0
      let report = try backend.openAndRecover(StoreOptions()) { if $0.value != nil { count += 1 } }
      #expect(report.commit == Revision(again) && count == again - last - 1)
    }
  }

  @Test func tombstonesThatHaveNoRoomAreForgotten() throws {
    let backend = SQLiteBackend(file: url, disk: FaultyFiles.disk)
    _ = try backend.openAndRecover(StoreOptions()) { _ in }
    try backend.commit((0..<9).map { record("key \($0)", value, at: 1) }, at: 1)
    // Once, for the commit that has them.
    FaultyFiles.set(.init(operation: .write, countdown: 1, result: SQLITE_FULL), at: log)
    try backend.commitOnFullDisk(WriteBatch(records: (0..<9).map { record("key \($0)", nil, at: 2) }, commits: 2...2))
    try backend.close()
    let (report, contents) = try readBack(url)
    #expect(report.commit == Revision(2) && report.tombstoneHorizon == Revision(2) && contents.isEmpty)
  }

  /// Small records, whose tombstones are not much smaller.
  @Test(arguments: [1, 40, 150]) func tombstonesTakeThePagesOfWhatWasDeleted(_ length: Int) throws {
    try onDisk(of: 1 << 20) {
      let backend = SQLiteBackend(file: url, disk: FaultyFiles.disk)
      _ = try backend.openAndRecover(StoreOptions()) { _ in }
      let small = String(repeating: "y", count: length)
      var last = 0
      func keys(_ commit: Int) -> [String] { (0..<100).map { "key \(commit) \($0)" } }
      while code({
        try backend.commit(keys(last).map { record($0, small, at: UInt64(last + 1)) }, at: UInt64(last + 1))
      }) == nil { last += 1 }
      let next = UInt64(last + 1)
      try backend.commitOnFullDisk(WriteBatch(records: (0..<last).flatMap(keys).map { record($0, nil, at: next) }, commits: next...next))
      try backend.commit([record("new", small, at: next + 1)], at: next + 1)
      #expect(backend.verify().isSound)
      try backend.close()
      let (report, contents) = try readBack(url)
      let tombstones = contents.count - 1
      #expect(report.commit == Revision(next + 1) && (tombstones == 0) == (report.tombstoneHorizon == Revision(next)))
      #expect(tombstones == 0 || tombstones == last * 100)
    }
  }

  @Test func aReaderKeepsTheSpaceOfTheLogUntilItEnds() throws {
    try onDisk(of: 2 << 20) {
      let backend = SQLiteBackend(file: url, disk: FaultyFiles.disk)
      _ = try backend.openAndRecover(StoreOptions()) { _ in }
      let last = fill(backend, value, from: 0)
      let reader = try #require(try SQLiteConnection(path: main, .readOnly))
      try reader.execute("BEGIN")
      #expect(try reader.prepare("SELECT count(*) FROM larder_store").number() == 1)
      try backend.commitOnFullDisk(
        WriteBatch(records: (0..<last).map { record("key \($0)", nil, at: last + 1) }, commits: last + 1...last + 1))
      #expect(code { try backend.commit([record("new", "1", at: last + 2)], at: last + 2) } == .full)
      try reader.execute("COMMIT")
      try backend.commit([record("new", "1", at: last + 2)], at: last + 2)
      #expect(backend.verify().isSound)
      try reader.close()
      try backend.close()
      #expect(try readBack(url).report.commit == Revision(last + 2))
    }
  }

  /// The file is as large as the disk there, and what was deleted is free pages in it.
  @Test func valuesHaveRoomInFreePages() throws {
    let backend = SQLiteBackend(file: url, disk: FaultyFiles.disk)
    _ = try backend.openAndRecover(StoreOptions()) { _ in }
    try backend.commit((0..<100).map { record("key \($0)", value, at: 1) }, at: 1)
    try backend.checkpoint()
    let disk = try size() + (32 << 10) + (180 << 10)
    try onDisk(of: disk) {
      #expect(code { try backend.commit([record("new", value, at: 2)], at: 2) } == .full)
      try backend.commitOnFullDisk(WriteBatch(records: (0..<30).map { record("key \($0)", nil, at: 2) }, commits: 2...2))
      for commit in 3...12 { try backend.commit([record("new \(commit)", value, at: UInt64(commit))], at: UInt64(commit)) }
      #expect(backend.verify().isSound)
    }
    try backend.close()
    #expect(try readBack(url).contents.count == 110)
  }

  /// Runs a body while the disk has a size and holds nothing but the store: SQLite's writes find it full, and the store asks what is free.
  private func onDisk(of size: Int, _ body: () throws -> Void) throws {
    FaultyFiles.setDisk(size, at: main)
    defer { FaultyFiles.setDisk(nil, at: main) }
    try body()
  }

  /// Saves values until the disk is full; returns the newest commit.
  private func fill(_ backend: SQLiteBackend, _ value: String, from newest: UInt64) -> UInt64 {
    var last = newest
    while code({ try backend.commit([record("key \(last)", value, at: last + 1)], at: last + 1) }) == nil { last += 1 }
    return last
  }

  private func size() throws -> Int { try #require(try FileManager.default.attributesOfItem(atPath: url.path)[.size] as? Int) }
}
