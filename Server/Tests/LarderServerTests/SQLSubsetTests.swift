import Foundation
import LarderWire
import Synchronization
import Testing

@testable import LarderServer

/// The SQL of the store is of the part that SQLite, PostgreSQL, CockroachDB and YugabyteDB share.
@Suite struct SQLSubsetTests {
  private static let keywords = Set(
    """
    SELECT FROM WHERE AND OR NOT NULL IS IN AS ON BY ORDER GROUP LIMIT DISTINCT LEFT JOIN INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE INDEX IF EXISTS
    PRIMARY KEY BIGINT TEXT CONFLICT DO NOTHING COUNT MAX SUM CAST COALESCE ALTER ADD COLUMN DEFAULT UNION ALL DESC CASE WHEN THEN ELSE END
    """.split { $0 == " " || $0 == "\n" }.map(String.init))
  private static let names = Set(
    """
    larder_meta larder_scopes larder_records larder_records_changes larder_devices larder_devices_owner one version history scope head horizon minimum
    token collection id revision stamp writer value deleted_at device owner last_seq last_token outcome seen_at records bytes receipt_bytes size excluded r s d v
    larder_sightings larder_sightings_owner position pending app
    """.split { $0 == " " || $0 == "\n" }.map(String.init))

  /// Returns what of a statement is not of the part that all databases share.
  static func foreign(_ sql: String) -> [String] {
    // Texts within a statement are empty, or are none of ours.
    let code = sql.replacing("''", with: " ")
    let words = code.matches(of: /[A-Za-z_][A-Za-z_0-9]*/).map { String($0.output) }.filter {
      !keywords.contains($0) && !names.contains($0)
    }
    let signs = code.filter { !$0.isLetter && !$0.isNumber && !" _?,.()=<>*+-".contains($0) }.map(String.init)
    let forms = ["DO UPDATE SET \\*", "LIMIT \\?, ", "VALUES \\?", "= \\("].filter { code.firstRange(of: $0) != nil }
    return words + signs + forms
  }

  /// Returns the statements, and parts of such, in a source file: texts with a word of SQL in capitals.
  static func statements(in source: String) -> [String] {
    let code = source.split(separator: "\n").filter { !$0.contains(/^\s*\/\//) }.joined(separator: "\n")
    return code.matches(of: /"((?:[^"\\\n]|\\.)*)"/).map { String($0.output.1) }
      .filter {
        $0.contains(/\b(SELECT|INSERT|UPDATE|DELETE|CREATE|WHERE|FROM|AND|VALUES|SET|CONFLICT|LIMIT|ORDER|PRIMARY|NULL|[A-Z]{4,})\b/)
      }
      // What is put in is a name, a condition or marks, and is judged where it stands.
      .map { $0.replacing(/\\\([^()]*(\([^()]*\))?[^()]*\)/, with: " ") }
  }

  @Test func theStoreKeepsToWhatAllDatabasesUnderstand() throws {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../Sources/LarderServer/Store")
    let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
    var count = 0
    for file in files {
      for statement in Self.statements(in: try String(contentsOf: folder.appendingPathComponent(file), encoding: .utf8)) {
        count += 1
        let found = Self.foreign(statement)
        #expect(found.isEmpty, "\(file): \(found) in \(statement)")
      }
    }
    #expect(count > 40)
  }

  @Test(arguments: [
    #""SELECT id::text FROM larder_records""#, #""INSERT INTO larder_scopes (scope) VALUES (?) RETURNING head""#,
    #""SELECT head FROM larder_scopes WHERE scope = ANY(?)""#, #""INSERT OR REPLACE INTO larder_scopes (scope) VALUES (?)""#,
    #""SELECT pg_notify(?, ?)""#, #""SELECT 1 FROM larder_scopes FOR UPDATE SKIP LOCKED""#, #""PRAGMA integrity_check""#,
    #""SELECT value->'a' FROM larder_records""#, #""SELECT rowid FROM larder_records""#, #""CREATE TABLE t (a JSONB)""#,
    #""SELECT id || collection FROM larder_records""#, #""SELECT UPPER(id) FROM larder_records""#,
    #""WITH x AS (SELECT 1) SELECT id FROM larder_records""#, #""SELECT `id` FROM larder_records""#, #""SELECT $1 FROM larder_scopes""#,
  ]) func aStatementOfOneDatabaseIsFound(source: String) {
    let found = Self.statements(in: "let a = 1\n  try connection.execute(\(source))\n").flatMap(Self.foreign)
    #expect(!found.isEmpty)
  }

  /// A push of 500 records is few statements, each a round trip while the head is locked.
  @Test(arguments: TestDatabase.available.filter { $0 != .disturbed }) func aLargePushIsFewStatements(on kind: TestDatabase) async throws {
    let place = try await StorePlace.make(kind)
    let count = Mutex(0)
    let store = try await place.open(wrap: { CountingConnection($0) { count.withLock { $0 += 1 } } })
    for seq in 1...2 {
      count.withLock { $0 = 0 }
      let groups = (0..<500).map { number in
        [
          PushedRecord(
            collection: "c\(number % 2)", id: "r\(number)", base: seq == 1 ? 0 : number + 1, version: 1, stamp: 1, value: Data("{}".utf8))
        ]
      }
      let push = SyncPush(history: nil, device: "d", seq: seq, token: "t\(seq)", clock: 1, groups: groups)
      let reply = try await store.push(push, to: "a", by: "x").reply
      #expect(reply.receipt.outcomes == (0..<500).map { .accepted((seq - 1) * 500 + $0 + 1) })
      #expect(count.withLock { $0 } < 25)
    }
    await store.close()
  }
}

/// A connection whose statements are counted.
private final class CountingConnection: SQLConnection {
  private let inner: any SQLConnection
  private let count: () -> Void
  init(_ inner: any SQLConnection, _ count: @escaping () -> Void) { (self.inner, self.count) = (inner, count) }

  var dialect: SQLDialect { inner.dialect }
  var timeline: String? { inner.timeline }
  var isUsable: Bool { inner.isUsable }
  func execute(_ sql: String, _ parameters: [SQLValue], row: (SQLRow) throws(StoreError) -> Bool) throws(StoreError) {
    count()
    try inner.execute(sql, parameters, row: row)
  }
  func begin(_ transaction: SQLTransaction) throws(StoreError) {
    count()
    try inner.begin(transaction)
  }
  func commit() throws(StoreError) {
    count()
    try inner.commit()
  }
  func rollBack() { inner.rollBack() }
  func copy(to path: String) throws(StoreError) { try inner.copy(to: path) }
  func check() throws(StoreError) -> [String] { try inner.check() }
}
