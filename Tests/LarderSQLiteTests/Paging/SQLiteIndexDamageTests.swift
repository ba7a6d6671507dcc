import CSQLite
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

/// Damage in the indexes of a database, which gives no wrong keys, stops no commit, and loses no record.
@Suite("SQLite: damage in indexes", .timeLimit(.minutes(5)))
struct SQLiteIndexDamageTests: SQLiteIndexSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  /// A writer that knows the row's checksum may still write any boundaries.
  @Test(arguments: [[UInt8](repeating: 0xFF, count: 9), [0, 0, 0, 1], [0, 0, 0], [0, 0, 0, 1, 9, 0, 0, 0, 1, 8]])
  func malformedBoundariesAreDamage(_ bytes: [UInt8]) throws {
    try makeIndexed().close()
    var crc = CRC32C()
    Data("1|\(index.collection)|\(index.name)|1|".utf8).withUnsafeBytes { crc.update($0) }
    bytes.withUnsafeBytes { crc.update($0) }
    try ForeignDatabase(url).run("UPDATE larder_indexes SET boundaries = x'\(hexadecimal(bytes))', crc = \(crc.value)")
    let backend = try openPaged()
    #expect(backend.holdsIndex(index))
    let base = try backend.keepBase()
    do throws(RepositoryError) {
      _ = try base.boundaries(of: index)
      Issue.record("expected an error")
    } catch {
      #expect(error.code == .corrupted)
    }
    #expect(!backend.verify().isSound)
    #expect(try base.indexKeyCount(of: index, from: Data(), below: nil) == 4)
    try backend.close()
  }

  /// The table's tree is in descending order, which its statement hides.
  @Test func keysOutOfOrderAreDamage() throws {
    try makeIndexed().close()
    // The connection is closed before the opening, so that it leaves no log.
    do {
      let database = try ForeignDatabase(url)
      database.allowSchemaChanges()
      try database.run("DROP TABLE larder_index_1")
      try database.run("CREATE TABLE larder_index_1 (key BLOB PRIMARY KEY DESC NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID")
      let rows = keys("1a", "2b", "3c", "4d").map { "(x'\(hexadecimal($0))', \(checksum($0)))" }
      try database.run("INSERT INTO larder_index_1 VALUES \(rows.joined(separator: ", "))")
      try database.run("PRAGMA writable_schema = ON")
      try database.run("UPDATE sqlite_schema SET sql = '\(SQLiteIndexes.createKeyTable(1))' WHERE name = 'larder_index_1'")
    }
    let backend = try openPaged()
    #expect(backend.holdsIndex(index))
    let base = try backend.keepBase()
    do throws(RepositoryError) {
      _ = try base.indexKeys(of: index, from: Data(), below: nil)
      Issue.record("expected an error")
    } catch {
      #expect(error.code == .corrupted)
    }
    #expect(!backend.verify().isSound)
    try backend.close()
  }

  @Test(arguments: ["DELETE FROM larder_index_1 WHERE key = x'3363'", "UPDATE larder_index_1 SET key = 'text' WHERE key = x'3363'"])
  func verifyReportsAKeyTooFewOrOfAnotherType(_ change: String) throws {
    try makeIndexed().close()
    try ForeignDatabase(url).run(change)
    let backend = try openPaged()
    #expect(backend.holdsIndex(index))
    let problems = backend.verify().problems
    #expect(problems.map(\.code) == [.corrupted])
    let isMissing = change.hasPrefix("DELETE")
    let (expected, found) = isMissing ? ("4 keys", "3:") : ("keys that fit their checksums", "another key")
    #expect(problems.first?.message.contains("expected \(expected) in the index \(index.name) of spots, found \(found)") == true)
    try backend.close()
  }

  /// The record of a key that was overwritten is in no range, so each read beside the key must find the damage.
  @Test(arguments: ["a", "2c", "2ba", "5"]) func aKeyThatWasOverwrittenIsDamage(_ text: String) throws {
    try makeIndexed().close()
    try ForeignDatabase(url).run("UPDATE larder_index_1 SET key = x'\(hexadecimal(text.utf8))' WHERE key = x'3262'")
    let backend = try openPaged()
    #expect(backend.holdsIndex(index))
    let base = try backend.keepBase()
    expectDamage { _ = try base.indexKeys(of: index, from: Data(), below: nil) }
    let problems = backend.verify().problems
    #expect(problems.map(\.code) == [.corrupted])
    #expect(problems.first?.message.contains("expected keys that fit their checksums in the index \(index.name) of spots") == true)
    try backend.close()
  }

  /// In a tree of several pages, a damaged key may lead SQLite's search past the keys beside it, and no check of SQLite finds that.
  @Test func aFlippedBitOfAKeyIsNeverSilent() throws {
    let names = (0..<400).map { String(1_000 + $0) }
    let all = names.map { key("key \($0) " + String(repeating: "x", count: 60)) }
    do {
      let backend = try openPaged()
      try backend.commit(batch(names.map { record($0, "1", at: 1) }, at: 1))
      try backend.extendIndex(index, by: all, isFirst: true)
      try backend.storeBoundaries(keys(""), of: index)
      try backend.close()
    }
    let files = try directory.contents()
    for (position, bit) in (0..<400).flatMap({ position in [0, 1, 37, 61].map { (position, $0) } }) where position % 9 == bit % 9 {
      try directory.replace(with: files)
      try change(pagesWith: all[position]) { data, range in data[range.lowerBound + bit / 8] ^= 1 << UInt8(bit % 8) }
      let backend = try openPaged()
      #expect(backend.holdsIndex(index))
      let base = try backend.keepBase()
      expectDamage { _ = try base.indexKeys(of: index, from: Data(), below: nil) }
      expectDamage { _ = try base.indexKeys(of: index, from: all[position], below: all[position] + [0]) }
      // A range without the key has all of its keys, or is damaged.
      for start in [0, max(position - 40, 0), max(position - 1, 0), min(position + 1, 399)] {
        let end = min(start + 30, 399)
        do throws(RepositoryError) {
          let found = try base.indexKeys(of: index, from: all[start], below: all[end])
          #expect(found == Array(all[start..<end]), "key \(position), bit \(bit), from \(start)")
        } catch {
          #expect(error.code == .corrupted)
        }
      }
      #expect(backend.verify().problems.contains { $0.message.contains("in the index \(index.name) of spots") })
      backend.abandon()
    }
  }

  @Test(arguments: 0..<4) func aDamagedPageOfAnIndexStopsNoCommit(_ kind: Int) throws {
    try makeIndexed().close()
    // The page has the keys in descending order, and its first byte is its type.
    try change(pagesWith: key("4d")) { data, range in
      let page = range.lowerBound / 4096 * 4096
      if data[page] == 10 { data[page] = 0 }
    }
    let backend = try openPaged()
    #expect(backend.holdsIndex(index))
    expectDamage { _ = try backend.keepBase().indexKeys(of: index, from: Data(), below: nil) }
    let change = batch([record("a", "2", at: 2)], at: 2, [edit("1a", "7a")], indexes: kind == 1 ? [] : nil)
    switch kind {
    case 0, 1: try backend.commit(change)
    case 2: try backend.commitOnFullDisk(batch([record("a", nil, at: 2)], at: 2, [edit("1a", nil)]))
    default: try backend.dropIndex(index)
    }
    #expect(!backend.holdsIndex(index))
    if kind < 2 { #expect(try backend.keepBase().records([RecordKey("a")], of: "spots").first??.revision == Revision(2)) }
    // The damaged table is not dropped, and keeps its number.
    try backend.extendIndex(index, by: keys("2b"), isFirst: true)
    try backend.storeBoundaries(keys(""), of: index)
    #expect(try read(backend) == ["2b"])
    try backend.close()
    #expect(try tables() == "larder_index_1,larder_index_2; 1")
    let again = try openPaged()
    #expect(again.holdsIndex(index))
    try again.commit(batch([record("b", "2", at: kind == 3 ? 2 : 3)], at: kind == 3 ? 2 : 3, [edit("2b", "8b")]))
    #expect(try read(again) == ["8b"])
    try again.close()
  }

  // MARK: The table of the indexes

  /// SQLite can neither delete the rows of a damaged table nor drop it.
  @Test(arguments: [true, false]) func aDamagedTableOfTheIndexesStopsNoCommit(isOpen: Bool) throws {
    try makeIndexed().close()
    if !isOpen { try damage(rootOf: "larder_indexes") }
    var backend = try openPaged()
    #expect(backend.holdsIndex(index) == isOpen)
    if isOpen { try damage(rootOf: "larder_indexes") }
    // The first commit names no index, so it drops all of them.
    try backend.commit(batch([record("a", "2", at: 2)], at: 2, indexes: []))
    #expect(!backend.holdsIndex(index))
    try backend.commit(batch([record("b", "2", at: 3)], at: 3))
    #expect(try backend.keepBase().records([RecordKey("a")], of: "spots").first??.revision == Revision(2))
    try backend.extendIndex(index, by: keys("2b"), isFirst: true)
    try backend.storeBoundaries(keys(""), of: index)
    try backend.close()
    // Damage stays in the file, and is reported.
    backend = try openPaged()
    #expect(try read(backend) == ["2b"])
    #expect(!backend.verify().isSound)
    try backend.commit(batch([record("c", "2", at: 4)], at: 4, [edit("2b", "3b")]))
    #expect(try read(backend) == ["3b"])
    try backend.close()
    #expect(try readBack(url).report.recordCount == 4)
    #expect(try tables() == "larder_index_1,larder_index_2,larder_index_3; 1")
  }

  @Test func aCommitThatFailsBesideADamagedTableLosesNothing() throws {
    try makeIndexed().close()
    let backend = try openPaged()
    try damage(rootOf: "larder_indexes")
    // The table is set aside in the transaction of the commit, which is rolled back.
    FaultyFiles.set(.init(operation: .write, countdown: 1, result: SQLITE_FULL), at: log)
    #expect { try backend.commit(batch([record("a", "2", at: 2)], at: 2, indexes: [])) } throws: {
      ($0 as? RepositoryError)?.code == .full
    }
    FaultyFiles.set(nil, at: log)
    try backend.commit(batch([record("a", "3", at: 2)], at: 2, indexes: []))
    #expect(try backend.keepBase().records([RecordKey("a")], of: "spots").first??.revision == Revision(2))
    try backend.close()
  }

  /// `ALTER TABLE … RENAME` resolves every trigger of the database.
  ///
  /// The trigger of this test writes to an FTS5 table, and a store loads no module for such tables.
  @Test func aTriggerOfAnotherProgramStopsNoCommitBesideADamagedTable() throws {
    try makeIndexed().close()
    let database = try ForeignDatabase(url)
    try database.run("CREATE VIRTUAL TABLE foreign_words USING fts5(id)")
    try database.run("CREATE TRIGGER foreign_trigger AFTER INSERT ON spots BEGIN INSERT INTO foreign_words VALUES (new.id); END")
    // The opening after another program's change reads all records, and drops the index.
    var backend = try openPaged()
    try backend.extendIndex(index, by: keys("1a", "2b", "3c", "4d"), isFirst: true)
    try backend.storeBoundaries(keys(""), of: index)
    try backend.close()
    backend = try openPaged()
    #expect(backend.holdsIndex(index))
    try damage(rootOf: "larder_indexes")
    try backend.commit(batch([record("a", "2", at: 2)], at: 2, indexes: []))
    try backend.close()
  }

  @Test func aStoreIsResumedBesideADamagedTable() throws {
    let backend = try makeIndexed()
    try backend.suspend()
    try damage(rootOf: "larder_indexes", keepingLog: false)
    #expect(try backend.resume())
    #expect(!backend.holdsIndex(index))
    try backend.commit(batch([record("a", "2", at: 2)], at: 2))
    try backend.close()
  }

  // MARK: Pages of records

  private func root(of table: String) throws -> Int {
    let database = try ForeignDatabase(url)
    database.keepLog()
    return Int(try database.number("SELECT rootpage FROM sqlite_schema WHERE name = '\(table)'"))
  }

  /// Overwrites four bytes of a page of the closed database with the number of another page.
  private func write(_ number: Int, in page: Int, at offset: Int) throws {
    let file = try FileHandle(forUpdating: url)
    try file.seek(toOffset: UInt64((page - 1) * 4096 + offset))
    try withUnsafeBytes(of: UInt32(number).bigEndian) { try file.write(contentsOf: $0) }
    try file.close()
  }

  private func bytes(of page: Int) throws -> [UInt8] { [UInt8](try Data(contentsOf: url)[(page - 1) * 4096..<page * 4096]) }

  /// The offset of the pointer to a child of an inner page.
  private func pointer(of page: [UInt8], _ child: Int) throws -> Int {
    try #require(page[0] == 2, "expected an inner page")
    return Int(page[12 + 2 * child]) << 8 + Int(page[13 + 2 * child])
  }

  private let second = StoredIndexID(collection: "spots", name: "second")
  private let names = (1_000..<2_000).map(String.init)

  /// Makes a store of a thousand records with two indexes.
  private func makeLarge(boundaries: [Data] = [Data()]) throws {
    let backend = try openPaged()
    try backend.commit(batch(names.map { record($0, "\"\(String(repeating: $0, count: 20))\"", at: 1) }, at: 1))
    for (index, prefix) in [(index, "a"), (second, "b")] {
      try backend.extendIndex(index, by: names.map { key(prefix + $0) }, isFirst: true)
      try backend.storeBoundaries(index == second ? [Data()] : boundaries, of: index)
    }
    try backend.close()
  }

  /// Drops the first index, saves records into the pages that this may have freed, and reads all records.
  private func expectAllRecords(changing change: (SQLiteBackend) throws -> Void) throws {
    let backend = try openPaged()
    try change(backend)
    try backend.checkpoint()
    let added = 400
    for number in 0..<added {
      let (commit, name) = (UInt64(number + 2), String(1_000 + number) + "x")
      try backend.commit(batch([record(name, "\"\(String(repeating: "new", count: 20))\"", at: commit)], at: commit, indexes: [second]))
    }
    try backend.close()
    #expect(try readBack(url).report.recordCount == names.count + added)
  }

  /// `DROP TABLE` would free the pages of the records, or pages that another index has.
  @Test(arguments: ["spots", "larder_index_2"]) func aDroppedIndexThatLeadsToAnotherTableFreesNoPageOfIt(_ table: String) throws {
    try makeLarge()
    let (from, to) = (try root(of: "larder_index_1"), try bytes(of: root(of: table)))
    let offset = try pointer(of: to, 1)
    let leaf = to[offset..<offset + 4].reduce(0) { $0 << 8 + Int($1) }
    // The pointer to the last child of a page is at offset 8.
    try write(leaf, in: from, at: 8)
    try expectAllRecords { try $0.dropIndex(index) }
    #expect(try tables().contains("larder_index_1"))
  }

  /// A row with many boundaries goes on in another page, which SQLite frees with the row.
  @Test(arguments: [true, false]) func aDamagedRowThatLeadsToRecordsFreesNoPageOfThem(isOpen: Bool) throws {
    try makeLarge(boundaries: [Data()] + (0..<90).map { key(String($0 + 1_000) + String(repeating: "y", count: 60)) })
    let (page, records) = (try root(of: "larder_indexes"), try bytes(of: root(of: "spots")))
    let rows = try bytes(of: page)
    try #require(rows[0] == 13)
    var at = Int(rows[8]) << 8 + Int(rows[9])
    func number() -> Int {
      var value = 0
      while true {
        defer { at += 1 }
        value = value << 7 + Int(rows[at] & 127)
        if rows[at] < 128 { return value }
      }
    }
    let length = number()
    _ = number()
    // SQLite's file format says how many bytes of a row are on its own page.
    let own = 489 + (length - 489) % 4092
    let offset = try pointer(of: records, 12)
    let leaf = records[offset..<offset + 4].reduce(0) { $0 << 8 + Int($1) }
    let overflow = at + (own > 4061 ? 489 : own)
    if !isOpen { try write(leaf, in: page, at: overflow) }
    try expectAllRecords { backend in
      if isOpen { try write(leaf, in: page, at: overflow) }
      #expect(backend.holdsIndex(index) == isOpen)
    }
  }

  // MARK: Bases and rows

  /// SQLite ends a read transaction with the error of a damaged page that was read in it.
  @Test func aBaseIsPinnedAgainAfterAReadOfADamagedPage() throws {
    try makeIndexed().close()
    let backend = try openPaged()
    try damage(rootOf: "larder_index_1")
    let base = try backend.keepBase()
    expectDamage { _ = try base.indexKeys(of: index, from: Data(), below: nil) }
    try backend.checkpoint()
    #expect(try base.records([RecordKey("a")], of: "spots").first??.revision == Revision(1))
    try backend.close()
  }

  /// A row with another checksum was damaged, or was changed by another program.
  @Test func aChangedRowIsReported() throws {
    try makeIndexed().close()
    try ForeignDatabase(url).run("UPDATE larder_indexes SET crc = crc + 1")
    let backend = SQLiteBackend(file: url)
    let report = try backend.openPaged(StoreOptions()) { _ in }.report
    #expect(report.damagedIndexes.count == 1 && !report.isClean)
    _ = try backend.recover(report)
    try backend.close()
    let again = SQLiteBackend(file: url)
    #expect(try again.openPaged(StoreOptions()) { _ in }.report.isClean)
    try again.close()
  }

  // MARK: Copies

  /// A backup has the damaged table, which SQLite cannot copy, and a store that is made from the records has not.
  @Test(arguments: ["larder_index_1", "larder_indexes"]) func aCopyFromTheRecordsIsWhole(_ table: String) async throws {
    try makeIndexed().close()
    let store = try await Store.open(SQLiteBackend(file: url), options: StoreOptions(residency: .onDisk(cache: .bytes(0))))
    try damage(rootOf: table)
    do {
      try await store.backup(to: directory.file("backup.sqlite"))
      Issue.record("expected the error of the damaged table")
    } catch {
      #expect(error.code == .corrupted)
    }
    let copy = directory.file("copy.sqlite")
    try await store.copy(to: SQLiteBackend(file: copy))
    try await store.close()
    let backend = SQLiteBackend(file: copy)
    #expect(try backend.openAll().report.recordCount == 4)
    #expect(backend.verify().isSound)
    try backend.close()
  }
}
