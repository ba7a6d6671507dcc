import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

@Suite("SQLite: what is refused stays as it is", .timeLimit(.minutes(15)))
struct SQLiteRefusalTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  /// Opens in every mode, expects one code, and that no byte of any file has changed and no file has come.
  private func expectRefusal(_ expected: RepositoryError.Code, leaves extra: Set<String> = []) throws {
    let before = try directory.contents()
    for access in [StoreOptions.Access.exclusive, .readOnly] {
      #expect(code { _ = try readBack(url, StoreOptions(access: access)) } == expected, "\(access)")
      let after = try directory.contents().filter { before[$0.key] != nil || !extra.contains($0.key) }
      #expect(after == before, "\(access)")
    }
  }

  private func makeStore(_ records: Int = 3) throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit((0..<records).map { record("\($0)", "{\"n\":\($0)}", at: 1) }, at: 1)
    try backend.close()
  }

  @Test func aTextFileIsNotOurs() throws {
    try Data(String(repeating: "my diary\n", count: 1_000).utf8).write(to: url)
    try expectRefusal(.notOurStore)
    try Data("short".utf8).write(to: url)
    try expectRefusal(.notOurStore)
  }

  @Test func aHeaderOfZerosIsDamage() throws {
    try makeStore()
    var bytes = try Data(contentsOf: url)
    bytes.replaceSubrange(0..<4_096, with: Data(count: 4_096))
    try bytes.write(to: url)
    try expectRefusal(.corrupted)
  }

  /// Before, the store opened, and every write was refused as if its data were protected: SQLite takes no writes for such a file.
  @Test func aHeaderThatForbidsWritingIsDamage() throws {
    try makeStore()
    var bytes = try Data(contentsOf: url)
    bytes[18] = 0x42
    try bytes.write(to: url)
    let before = try directory.contents()
    for access in [StoreOptions.Access.exclusive, .shared] {
      #expect(code { _ = try readBack(url, StoreOptions(access: access)) } == .corrupted, "\(access)")
    }
    #expect(try directory.contents() == before)
    #expect(try readBack(url, StoreOptions(access: .readOnly)).contents.count == 3)
  }

  @Test func aForeignDatabaseIsNotOurs() throws {
    do { try ForeignDatabase(url).run("CREATE TABLE spots (id TEXT PRIMARY KEY); INSERT INTO spots VALUES ('a')") }
    try expectRefusal(.notOurStore)
  }

  @Test func aForeignDatabaseWithALogIsNotOurs() throws {
    do {
      let foreign = try ForeignDatabase(url)
      foreign.keepLog()
      try foreign.run("PRAGMA journal_mode = WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1)")
    }
    #expect(try directory.contents()["spots.sqlite-wal"]?.isEmpty == false)
    try expectRefusal(.notOurStore)
  }

  @Test func aNewerFormatIsRefusedWithItsVersion() throws {
    try makeStore()
    do { try ForeignDatabase(url).run("PRAGMA user_version = 7") }
    try expectRefusal(.newerSchema)
    do {
      _ = try readBack(url)
    } catch {
      #expect((error as? RepositoryError)?.versions == .init(found: 7, supported: 1))
    }
  }

  @Test func aNewerFormatInTheLogIsRefusedAndTheLogKept() throws {
    try makeStore()
    do {
      let newer = try ForeignDatabase(url)
      newer.keepLog()
      try newer.run("PRAGMA user_version = 2; CREATE TABLE larder_news (x)")
    }
    try FileManager.default.removeItem(atPath: url.path + "-shm")
    // SQLite reads a log through an index file, which it makes beside it; no other file may come.
    try expectRefusal(.newerSchema, leaves: ["spots.sqlite-shm"])
  }

  @Test func aFormatVersionThatNeverWasIsDamage() throws {
    try makeStore()
    for version in [0, -1] {
      do { try ForeignDatabase(url).run("PRAGMA user_version = \(version)") }
      try expectRefusal(.corrupted)
    }
  }

  @Test(arguments: [
    "ALTER TABLE spots ADD COLUMN extra", "ALTER TABLE spots RENAME TO places",
    "DELETE FROM spots WHERE id = '1'", "UPDATE spots SET value = '{}' WHERE id = '1'", "UPDATE spots SET revision = 2 WHERE id = '1'",
    "UPDATE spots SET version = 2 WHERE id = '1'", "UPDATE spots SET crc = crc + 1 WHERE id = '1'",
    "UPDATE spots SET id = '9' WHERE id = '1'",
    "UPDATE spots SET revision = 'x' WHERE id = '1'",
    "INSERT INTO spots VALUES ('9', 1, 1, 0, '{}')",
    "DELETE FROM larder_store", "UPDATE larder_store SET commit_number = 9", "UPDATE larder_store SET id = lower(id)",
    "DROP TABLE larder_tombstones", "DROP TABLE spots", "INSERT INTO larder_tombstones VALUES ('spots', 'x', 1, 1, 1)",
    "UPDATE spots SET value = CAST('{}' AS BLOB) WHERE id = '1'",
  ])
  func aChangeFromOutsideIsDamage(_ sql: String) throws {
    try makeStore()
    do { try ForeignDatabase(url).run(sql) }
    try expectRefusal(.corrupted)
  }

  @Test func damageNamesTheFileAndTheKeysHashButNoContents() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("secret-key", #""secret-value""#, at: 1)], at: 1)
    try backend.close()
    do { try ForeignDatabase(url).run("UPDATE spots SET value = '\"secret-other\"'") }
    let error = #expect(throws: RepositoryError.self) { _ = try readBack(url) }
    #expect(error?.keyHash == RecordKey("secret-key").hash && error?.file?.hasSuffix("spots.sqlite") == true)
    #expect(error?.description.contains("secret") == false)
  }

  @Test func anIndexThatAPersonAddedIsNoDamage() throws {
    try makeStore()
    do { try ForeignDatabase(url).run("CREATE INDEX by_n ON spots (version, value); ANALYZE; CREATE VIEW v AS SELECT 1") }
    let backend = SQLiteBackend(file: url)
    #expect(try backend.openAll().contents.count == 3)
    try backend.commit([record("1", "{\"n\":9}", at: 2)], at: 2)
    #expect(code { try backend.commit([record("1", "{}", at: 3, in: "BY_N")], at: 3) } == .unsupported)
    try backend.close()
    #expect(try readBack(url).report.commit == Revision(2))
  }

  @Test func aTriggerInTheFileDoesNotRun() throws {
    try makeStore()
    do { try ForeignDatabase(url).run("CREATE TRIGGER t AFTER UPDATE ON spots BEGIN DELETE FROM spots; END") }
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit([record("1", "{}", at: 2)], at: 2)
    try backend.close()
    #expect(try readBack(url).contents.count == 3)
  }

  @Test func aRowThatCannotBeReadHidesNoDamageBeforeIt() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit((0..<5).map { record("\($0)", "1", at: 1) }, at: 1)
    do {
      let other = try ForeignDatabase(url)
      try other.run("UPDATE spots SET crc = crc + 1 WHERE id = '1'")
      // A key of another type, which comes behind all others.
      try other.run("UPDATE spots SET id = x'33' WHERE id = '3'")
    }
    let problems = backend.verify().problems
    #expect(problems.first?.keyHash == RecordKey("1").hash && problems.compactMap(\.keyHash).count == 1)
    #expect(problems.contains { "\($0)".contains("expected text in column 0") })
    try backend.close()
    let error = #expect(throws: RepositoryError.self) { _ = try readBack(url) }
    #expect(error?.code == .corrupted && error?.keyHash == RecordKey("1").hash)
  }

  @Test func verifyListsEveryProblemAndChangesNothing() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit((0..<5).map { record("\($0)", "1", at: 1) } + [record("x", nil, at: 1)], at: 1)
    let report = backend.verify()
    #expect(report.isSound && report.recordCount == 5 && report.tombstoneCount == 1 && report.commit == Revision(1))
    do { try ForeignDatabase(url).run("UPDATE spots SET value = '2' WHERE id IN ('1', '3')") }
    let before = try directory.contents()
    #expect(Set(backend.verify().problems.compactMap(\.keyHash)) == [RecordKey("1").hash, RecordKey("3").hash])
    #expect(try directory.contents().filter { $0.key != "spots.sqlite-shm" } == before.filter { $0.key != "spots.sqlite-shm" })
    try backend.close()
  }

  @Test func verifyOfAReaderRunsTheFullCheckOfSQLite() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit((0..<5).map { record("\($0)", "1", at: 1) }, at: 1)
    try backend.close()
    // The number of free pages, which reading rows does not look at.
    let file = try FileHandle(forWritingTo: url)
    try file.seek(toOffset: 39)
    try file.write(contentsOf: [5])
    try file.close()
    let reader = SQLiteBackend(file: url)
    #expect(try reader.openAll(StoreOptions(access: .readOnly)).contents.count == 5)
    #expect(reader.verify().problems.map(\.code) == [.corrupted])
    try reader.close()
  }
}
