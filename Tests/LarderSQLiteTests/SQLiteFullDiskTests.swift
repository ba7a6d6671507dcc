import CSQLite
import Foundation
import Larder
import Testing

@testable import LarderSQLite

/// A SQLite store that has filled its disk can be cleared.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct SQLiteFullDiskTests {
  private let directory: TemporaryDirectory
  private let url: URL

  init() throws {
    directory = try TemporaryDirectory()
    url = directory.file("cache.sqlite")
    try #require(FaultyFiles.isInstalled)
  }

  /// Has the next write of the log find the disk full: that of an ordinary commit.
  private func fillDisk() {
    let log = url.resolvingSymlinksInPath().path + "-wal"
    FaultyFiles.set(.init(operation: .write, countdown: 1, result: SQLITE_FULL), at: log)
  }

  private let value = String(repeating: "x", count: 20_000)

  @Test(arguments: [0, 3, 10_000]) func aStoreThatHasFilledTheDiskCanBeCleared(_ limit: Int) throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAndRecover(StoreOptions(limits: .init(tombstones: limit))) { _ in }
    let keys = (0..<100).map { "key \($0)" }
    try backend.commit(keys.map { record($0, value, at: 1) } + [record("other", "1", at: 1, in: "others")], at: 1)
    try backend.checkpoint()
    // Not one page more, as on a disk that is full.
    try backend.execute("PRAGMA max_page_count = 1")
    #expect(code { try backend.commit([record("new", value, at: 2)], at: 2) } == .full)
    fillDisk()
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

  @Test func someOfACollectionIsDeletedOneByOne() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAndRecover(StoreOptions(limits: .init(tombstones: 0))) { _ in }
    try backend.commit((0..<50).map { record("key \($0)", value, at: 1) }, at: 1)
    try backend.execute("PRAGMA max_page_count = 1")
    fillDisk()
    try backend.commitOnFullDisk(WriteBatch(records: (0..<49).map { record("key \($0)", nil, at: 2) }, commits: 2...2))
    #expect(backend.verify().isSound)
    try backend.close()
    #expect(try readBack(url).contents.count == 1)
  }

  private func size() throws -> Int { try #require(try FileManager.default.attributesOfItem(atPath: url.path)[.size] as? Int) }
}
