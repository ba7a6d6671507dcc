import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

/// Tests of the indexes of one database, which have a store with an index of four keys.
protocol SQLiteIndexSuite: SQLiteSuite {}

extension SQLiteIndexSuite {
  var index: StoredIndexID { StoredIndexID(collection: "spots", name: "by \"name\" | v1") }
  var other: StoredIndexID { StoredIndexID(collection: "visits", name: "by \"name\" | v1") }

  func openPaged(disk: SQLiteDisk = .system) throws -> SQLiteBackend {
    let backend = SQLiteBackend(file: url, disk: disk)
    let opening = try backend.openPaged(StoreOptions()) { _ in }
    _ = try backend.recover(opening.report)
    return backend
  }

  /// Leaves the files as they are now, as a killed process does.
  func kill(_ backend: SQLiteBackend) throws {
    let files = try directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") }
    backend.abandon()
    try directory.replace(with: files)
  }

  func key(_ text: String) -> Data { Data(text.utf8) }
  func keys(_ texts: String...) -> [Data] { texts.map(key) }
  func texts(_ keys: [Data]) -> [String] { keys.map { String(decoding: $0, as: UTF8.self) } }

  func edit(_ removed: String?, _ added: String?, of index: StoredIndexID? = nil) -> IndexEdit {
    IndexEdit(index: index ?? self.index, removed: removed.map(key), added: added.map(key))
  }

  func batch(
    _ records: [StoredRecord], at number: UInt64, _ edits: [IndexEdit] = [], indexes: Set<StoredIndexID>? = nil,
    _ durability: Durability = .durable
  ) -> WriteBatch {
    WriteBatch(
      records: records, commits: number...number, durability: durability, indexEdits: edits, indexes: indexes ?? [index, other])
  }

  /// Makes a store with the records "a" to "d" and an index with the keys "1a" to "4d".
  func makeIndexed() throws -> SQLiteBackend {
    let backend = try openPaged()
    try backend.commit(batch(["a", "b", "c", "d"].map { record($0, "1", at: 1) }, at: 1))
    try backend.extendIndex(index, by: keys("1a", "2b", "3c", "4d"), isFirst: true)
    try backend.storeBoundaries(keys("", "3c"), of: index)
    return backend
  }

  func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }

  func checksum(_ key: Data) -> UInt32 { key.withUnsafeBytes { CRC32C.checksum($0) } }

  func expectDamage(_ body: () throws -> Void) {
    do {
      try body()
      Issue.record("expected the error of a damaged index")
    } catch let error as RepositoryError {
      #expect(error.code == .corrupted)
      #expect(error.message.contains("in the index \(index.name) of spots"))
    } catch {
      Issue.record("\(error)")
    }
  }

  /// Changes the pages of the closed database that hold some bytes.
  func change(pagesWith bytes: Data, _ body: (inout Data, Range<Data.Index>) -> Void) throws {
    var files = try directory.contents()
    var data = try #require(files["spots.sqlite"])
    var (start, count) = (data.startIndex, 0)
    while let range = data.range(of: bytes, in: start..<data.endIndex) {
      body(&data, range)
      (start, count) = (range.upperBound, count + 1)
    }
    #expect(count > 0)
    files["spots.sqlite"] = data
    try directory.replace(with: files)
  }

  /// The keys of the index as of the newest commit, from a base of its own.
  func read(_ backend: SQLiteBackend, of index: StoredIndexID? = nil) throws -> [String] {
    texts(try backend.keepBase().indexKeys(of: index ?? self.index, from: Data(), below: nil))
  }

  /// The tables of indexes in the closed database, and the rows that name them.
  func tables() throws -> String {
    let database = try ForeignDatabase(url)
    database.keepLog()
    let tables = try database.text(
      "SELECT coalesce(group_concat(name), '') FROM (SELECT name FROM sqlite_schema WHERE name GLOB 'larder_index_*' ORDER BY name)",
      column: 0)
    guard try database.number("SELECT count(*) FROM sqlite_schema WHERE name = 'larder_indexes'") == 1 else { return tables }
    return try tables + "; " + String(database.number("SELECT count(*) FROM larder_indexes"))
  }

  func expectNoIndex(_ body: () throws -> Void) {
    do {
      try body()
      Issue.record("expected the error of a missing index")
    } catch let error as RepositoryError {
      #expect(error.code == .unsupported)
    } catch {
      Issue.record("\(error)")
    }
  }

  /// Overwrites the type of the first page of a table, whose file may be open.
  func damage(rootOf table: String, keepingLog keepsLog: Bool = true) throws {
    let database = try ForeignDatabase(url)
    if keepsLog { database.keepLog() }
    let page = try database.number("SELECT rootpage FROM sqlite_schema WHERE name = '\(table)'")
    let file = try FileHandle(forUpdating: url)
    try file.seek(toOffset: UInt64((page - 1) * 4096))
    try file.write(contentsOf: [0])
    try file.close()
  }
}
