import BenchmarkSQLite
import Foundation
import Larder
import Synchronization

/// SQLite's C functions with the settings and the table of LarderSQLite: what a store over SQLite cannot be faster than.
final class PlainSQLite: Sendable {
  private let connection: Mutex<Connection>

  init(in directory: URL, _ durability: Durability = .durable, name: String = "plain.sqlite") throws {
    let file = directory.appendingPathComponent(name).path
    connection = Mutex(try Connection(file, durability))
  }

  func save(_ id: String, _ bytes: [UInt8], round: Int) throws {
    try connection.withLock { try $0.upsert(id, bytes, round) }
  }

  /// Writes records in one transaction.
  func save(_ records: [(id: String, bytes: [UInt8])], round: Int) throws {
    try connection.withLock { connection in
      try connection.execute("BEGIN IMMEDIATE")
      for record in records { try connection.upsert(record.id, record.bytes, round) }
      try connection.execute("COMMIT")
    }
  }

  func delete(_ id: String) throws { try connection.withLock { try $0.delete(id) } }

  /// Returns how many bytes all values have, having touched each of them.
  func scan() throws -> Int { try connection.withLock { try $0.scan() } }

  func checkpoint() throws { try connection.withLock { try $0.execute("PRAGMA wal_checkpoint(TRUNCATE)") } }
}

private final class Connection {
  private let handle: OpaquePointer
  private let upsertOne: OpaquePointer
  private let deleteOne: OpaquePointer
  private let selectAll: OpaquePointer

  init(_ file: String, _ durability: Durability) throws {
    var found: OpaquePointer?
    guard sqlite3_open_v2(file, &found, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nil) == SQLITE_OK, let found
    else {
      throw BenchError("expected to open \(file), found SQLite's \(sqlite3_errcode(found))")
    }
    handle = found
    let pragmas = [
      "locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = \(durability == .durable ? "FULL" : "NORMAL")",
      "cell_size_check = ON", "mmap_size = 0", "temp_store = MEMORY", "cache_spill = OFF", "cache_size = -8000", "secure_delete = FAST",
    ]
    for pragma in pragmas { try Self.execute(found, "PRAGMA \(pragma)") }
    try Self.execute(
      found,
      """
      CREATE TABLE IF NOT EXISTS places (id TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL, version INTEGER NOT NULL, \
      crc INTEGER NOT NULL, value TEXT NOT NULL) WITHOUT ROWID
      """)
    upsertOne = try Self.prepare(
      found,
      """
      INSERT INTO places (id, revision, version, crc, value) VALUES (?1, ?2, 1, ?3, ?4) \
      ON CONFLICT (id) DO UPDATE SET revision = ?2, crc = ?3, value = ?4
      """)
    deleteOne = try Self.prepare(found, "DELETE FROM places WHERE id = ?1")
    selectAll = try Self.prepare(found, "SELECT id, value FROM places")
  }

  deinit {
    for statement in [upsertOne, deleteOne, selectAll] { sqlite3_finalize(statement) }
    sqlite3_close_v2(handle)
  }

  func upsert(_ id: String, _ bytes: [UInt8], _ round: Int) throws {
    _ = bytes.withUnsafeBytes { benchmark_bind_text(upsertOne, 4, $0.baseAddress, UInt64($0.count)) }
    sqlite3_bind_int64(upsertOne, 2, Int64(round))
    sqlite3_bind_int64(upsertOne, 3, Int64(round) * 31)
    try run(upsertOne, id)
  }

  func delete(_ id: String) throws { try run(deleteOne, id) }

  func scan() throws -> Int {
    var sum = 0
    while sqlite3_step(selectAll) == SQLITE_ROW {
      guard let text = sqlite3_column_text(selectAll, 1) else { continue }
      let count = Int(sqlite3_column_bytes(selectAll, 1))
      sum += count + Int(text[count / 2])
    }
    sqlite3_reset(selectAll)
    return sum
  }

  func execute(_ sql: String) throws { try Self.execute(handle, sql) }

  private func run(_ statement: OpaquePointer, _ id: String) throws {
    var id = id
    id.withUTF8 { _ = benchmark_bind_text(statement, 1, $0.baseAddress, UInt64($0.count)) }
    let result = sqlite3_step(statement)
    sqlite3_reset(statement)
    guard result == SQLITE_DONE else { throw BenchError("expected SQLite to be done, found \(result)") }
  }

  private static func prepare(_ handle: OpaquePointer, _ sql: String) throws -> OpaquePointer {
    var statement: OpaquePointer?
    guard sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil) == SQLITE_OK, let statement else {
      throw BenchError("expected to prepare \(sql), found SQLite's \(sqlite3_errcode(handle))")
    }
    return statement
  }

  private static func execute(_ handle: OpaquePointer, _ sql: String) throws {
    let result = sqlite3_exec(handle, sql, nil, nil, nil)
    guard result == SQLITE_OK else { throw BenchError("expected \(sql) to pass, found SQLite's \(result)") }
  }
}
