import CSQLite
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

/// Tables, indexes and views that another program has made in the file of a store: they stay, and the store is whole.
@Suite("SQLite: tables of other programs", .timeLimit(.minutes(15)))
struct ForeignTableTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  private func makeStore() throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit((0..<3).map { record("\($0)", "{\"n\":\($0)}", at: 1) }, at: 1)
    try backend.close()
  }

  /// The statements that make them.
  static let additions = [
    // A replicator's.
    "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER); CREATE TABLE _litestream_lock (id INTEGER); "
      + "INSERT INTO _litestream_seq VALUES (1, 1)",
    "CREATE TABLE mine (id TEXT PRIMARY KEY); INSERT INTO mine VALUES ('1')",
    "CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT, x); INSERT INTO counted (x) VALUES (1); ANALYZE",
    "CREATE TABLE typed (x INTEGER, y ANY) STRICT; INSERT INTO typed VALUES (1, 'a')",
    // Names like those of Larder.
    "CREATE TABLE larder_notes (id TEXT PRIMARY KEY, x) WITHOUT ROWID; INSERT INTO larder_notes VALUES ('a', 1)",
    "CREATE TABLE LARDER_Stores (id TEXT)", "CREATE TABLE larder_revisions_spots (revision)",
    "CREATE TABLE larder_revisions_larder_tombstones (revision)", "CREATE TABLE x (r); CREATE INDEX larder_revisions_spots ON x (r)",
    "CREATE VIEW larder_revisions_spots AS SELECT 1",
    "CREATE TABLE places (id TEXT NOT NULL PRIMARY KEY, revision INTEGER, value TEXT); INSERT INTO places VALUES ('a', 1, '{}')",
    "CREATE TABLE \"attached.spots\" (x); CREATE TABLE \"a\"\"; DROP TABLE spots; --\" (x); CREATE TABLE \"../../etc/passwd\" (x)",
    // Tables of modules, with the tables in which these keep their contents.
    "CREATE VIRTUAL TABLE words USING fts5(text); INSERT INTO words VALUES ('a b c')",
    "CREATE VIRTUAL TABLE places USING rtree(id, a, b); INSERT INTO places VALUES (1, 2, 3)",
    // What SQLite parses when it reads the schema: wide, deep and long.
    "CREATE TABLE wide (\((0..<400).map { "c\($0)" }.joined(separator: ", ")))",
    "CREATE TABLE deep (x CHECK (\(String(repeating: "(1 + ", count: 30))x\(String(repeating: ")", count: 30))))",
    "CREATE VIEW v AS \((0..<20).map { "SELECT \($0)" }.joined(separator: " UNION "))",
    "CREATE TABLE t (x); CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT max(\((0..<20).map(String.init).joined(separator: ", "))); END",
    "CREATE VIEW v AS \((0..<150).map { "SELECT \($0)" }.joined(separator: " UNION "))",
    "CREATE VIEW v AS SELECT \((0..<150).map { "x = \($0)" }.joined(separator: " OR ")) FROM (SELECT 1 AS x)",
    "CREATE TABLE t (x); CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT json_object(\((0..<55).map { "'k\($0)', \($0)" }.joined(separator: ", "))); END",
    // What SQLite would compute to check them, or to copy them.
    "CREATE TABLE checked (x CHECK (x > 1)); PRAGMA ignore_check_constraints = ON; INSERT INTO checked VALUES (0)",
    "CREATE TABLE random (x DEFAULT (random()), y CHECK (length(randomblob(9)) > 0)); INSERT INTO random (y) VALUES (1)",
    "CREATE TABLE quoted (x CHECK (x <> \"text\")); CREATE INDEX by_x ON quoted (x) WHERE x <> \"text\"",
    // Keys that lead to records.
    "CREATE TABLE marks (spot REFERENCES spots (id) ON DELETE RESTRICT); INSERT INTO marks VALUES ('0'), ('none')",
  ]

  /// Reads, writes, checks and copies the store.
  private func use(_ access: StoreOptions.Access, _ sql: String) throws {
    let place: Comment = "\(access), after \(sql.prefix(60))"
    let backend = SQLiteBackend(file: url)
    let (report, contents) = try backend.openAll(StoreOptions(access: access))
    #expect(contents.keys.count { $0.collection == "spots" && $0.key != RecordKey("new") } == 3, place)
    let next = report.commit.number + 1
    _ = try backend.beginCommit(after: report.commit, .durable)
    try backend.commit([record("new", "\(next)", at: next), record("0", nil, at: next), record("a", "1", at: next, in: "boats")], at: next)
    #expect(backend.verify().problems.map(\.message) == [], place)
    let copy = directory.file("copy-\(next).sqlite")
    try backend.backup(to: copy)
    #expect(SQLiteBackend(file: copy).isSoundOnceOpened, place)
    _ = try backend.beginCommit(after: Revision(next), .durable)
    try backend.commit([record("0", "{\"n\":0}", at: next + 1), record("a", nil, at: next + 1, in: "boats")], at: next + 1)
    try backend.close()
  }

  @Test(arguments: additions) func aStoreWithTablesOfAnotherProgramIsWhole(_ sql: String) throws {
    try makeStore()
    do { try ForeignDatabase(url).run(sql) }
    let tables = try ForeignDatabase(url).text("SELECT group_concat(name) FROM sqlite_schema WHERE name NOT LIKE 'larder_%'", column: 0)
    try use(.exclusive, sql)
    try use(.shared, sql)
    #expect(SQLiteBackend(file: url).isSoundOnceOpened(.readOnly), "\(sql.prefix(60))")
    let after = try ForeignDatabase(url).text("SELECT group_concat(name) FROM sqlite_schema WHERE name NOT LIKE 'larder_%'", column: 0)
    #expect(after.hasPrefix(tables))
  }

  /// After a crash, SQLite's own check of all pages comes first.
  @Test(arguments: additions) func afterACrashItIsStillWhole(_ sql: String) throws {
    try makeUnclosedStore()
    do {
      let foreign = try ForeignDatabase(url)
      foreign.keepLog()
      try foreign.run(sql)
    }
    #expect(try directory.contents()["spots.sqlite-wal"]?.isEmpty == false)
    try FileManager.default.removeItem(atPath: url.path + "-shm")
    #expect(try readBack(url, StoreOptions(access: .readOnly)).contents.count == 3, "\(sql.prefix(60))")
    #expect(try readBack(url).contents.count == 3, "\(sql.prefix(60))")
  }

  /// A replicator writes its own tables between the commits of the app.
  @Test(arguments: [StoreOptions.Access.exclusive, .shared]) func whatAnotherProgramWritesBetweenCommitsIsNoCommit(
    _ access: StoreOptions.Access
  ) throws {
    try makeStore()
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll(StoreOptions(access: access))
    let reader = SQLiteBackend(file: url)
    _ = try reader.openAll(StoreOptions(access: .readOnly))
    for commit in 2...5 as ClosedRange<UInt64> {
      do {
        try ForeignDatabase(url).run(
          "CREATE TABLE IF NOT EXISTS _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER); "
            + "INSERT INTO _litestream_seq VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET seq = seq + 1")
      }
      #expect(try reader.foreignCommits(after: Revision(commit - 1)) == nil)
      if access == .shared { #expect(try backend.foreignCommits(after: Revision(commit - 1)) == nil) }
      _ = try backend.beginCommit(after: Revision(commit - 1), .durable)
      try backend.commit([record("\(commit)", "1", at: commit, in: commit == 4 ? "boats" : "spots")], at: commit)
      #expect(try reader.foreignCommits(after: Revision(commit - 1))?.commit == Revision(commit))
    }
    #expect(backend.verify().isSound)
    try reader.close()
    try backend.close()
    #expect(try ForeignDatabase(url).number("SELECT seq FROM _litestream_seq") == 4)
    #expect(try readBack(url).report.commit == Revision(5))
  }

  /// SQLite cannot check a table without the collation or the function of the program that made it.
  @Test(arguments: ["x COLLATE theirs", "theirs(x)"]) func whatOnlyTheirProgramCanSortIsLeftOut(_ term: String) throws {
    // SQLite takes the second name for a number.
    do {
      let backend = SQLiteBackend(file: url)
      _ = try backend.openAll()
      try backend.commit([record("1", "{}", at: 1), record("1", "{}", at: 1, in: "2024")], at: 1)
      try backend.close()
    }
    do {
      let foreign = try ForeignDatabase(url)
      foreign.addCollationAndFunction(named: "theirs")
      try foreign.run("CREATE TABLE t (x); CREATE INDEX i ON t (\(term)); INSERT INTO t VALUES ('a'), ('b')")
    }
    let backend = SQLiteBackend(file: url)
    #expect(try backend.openAll().contents.count == 2)
    #expect(backend.verify().isSound)
    // Damage of the store's own tables shows all the same.
    try ForeignDatabase(url).run("UPDATE spots SET crc = crc + 1")
    #expect(!backend.verify().isSound)
    backend.abandon()
  }

  /// Where records vanished, a table in their place is no excuse.
  @Test(arguments: [
    "DROP TABLE spots; CREATE TABLE spots (id TEXT PRIMARY KEY)", "ALTER TABLE spots RENAME COLUMN value TO other",
    "DROP TABLE spots; CREATE VIRTUAL TABLE spots USING fts5(id, revision, version, crc, value)",
  ])
  func aTableInThePlaceOfRecordsIsDamage(_ sql: String) throws {
    try makeStore()
    do { try ForeignDatabase(url).run(sql) }
    let before = try directory.contents()
    for access in [StoreOptions.Access.exclusive, .shared, .readOnly] {
      #expect(code { _ = try readBack(url, StoreOptions(access: access)) } == .corrupted, "\(access)")
    }
    #expect(try directory.contents() == before)
  }

  /// A collection without records has no digest that would show it.
  @Test(arguments: ["RENAME COLUMN crc TO c", "DROP COLUMN version", "ADD COLUMN x"]) func anEmptyCollectionThatWasAlteredIsDamage(
    _ change: String
  ) throws {
    try makeStore()
    do {
      let backend = SQLiteBackend(file: url)
      _ = try backend.openAll()
      try backend.commit((0..<3).map { record("\($0)", nil, at: 2) }, at: 2)
      try backend.close()
    }
    let reader = SQLiteBackend(file: url)
    _ = try reader.openAll(StoreOptions(access: .readOnly))
    do { try ForeignDatabase(url).run("ALTER TABLE spots \(change)") }
    #expect(code { _ = try readBack(url) } == .corrupted)
    #expect(code { _ = try reader.foreignCommits(after: Revision(2)) } == .corrupted)
    try reader.close()
  }

  @Test(arguments: ["TABLE Boats (x)", "VIEW boats AS SELECT 1", "INDEX boats ON spots (version)", "VIRTUAL TABLE boats USING fts5(x)"])
  func aCollectionWhoseNameIsTakenIsRefusedByName(_ object: String) throws {
    try makeStore()
    do { try ForeignDatabase(url).run("CREATE \(object)") }
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    let error = #expect(throws: RepositoryError.self) { try backend.commit([record("1", "{}", at: 2, in: "boats")], at: 2) }
    #expect(error?.code == .unsupported)
    #expect(error?.message.contains("another program") == true && error?.message.contains("\"boats\"") == true, "\(error?.message ?? "")")
    try backend.commit([record("1", "{}", at: 2)], at: 2)
    try backend.close()
  }

  /// SQLite refuses the whole schema: the store says why, and is not called damaged.
  @Test func anIndexThatOnlyATrustedFileMayHaveIsRefusedByName() throws {
    try makeStore()
    do { try ForeignDatabase(url).run("CREATE TABLE t (x); CREATE INDEX i ON t (json_extract(x, '$.a'))") }
    // Later versions of SQLite take json_extract for harmless.
    guard let error = #expect(throws: RepositoryError.self, performing: { _ = try readBack(url) }) else { return }
    #expect(error.code == .unsupported && error.message.contains("drop"), "\(error)")
    do { try ForeignDatabase(url).run("DROP INDEX i") }
    #expect(try readBack(url).contents.count == 3)
  }
}

extension SQLiteBackend {
  fileprivate var isSoundOnceOpened: Bool { isSoundOnceOpened(.exclusive) }

  fileprivate func isSoundOnceOpened(_ access: StoreOptions.Access) -> Bool {
    do {
      _ = try openAll(StoreOptions(access: access))
      defer { abandon() }
      return verify().isSound
    } catch {
      return false
    }
  }
}
