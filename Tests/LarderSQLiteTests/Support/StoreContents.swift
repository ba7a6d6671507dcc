import CSQLite
import Foundation
import Larder
import Testing

@testable import LarderSQLite

/// A directory of a test's own, removed with it.
final class TemporaryDirectory {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appending(path: "larder-sqlite-\(UUID().uuidString)", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }  // a leftover in the temporary directory is harmless

  func file(_ name: String) -> URL { url.appending(path: name, directoryHint: .notDirectory) }

  /// The files below and what is in them.
  func contents() throws -> [String: Data] {
    var contents: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: url.path) { contents[name] = try Data(contentsOf: file(name)) }
    return contents
  }

  /// Puts files there, and nothing else.
  func replace(with contents: [String: Data]) throws {
    for name in try FileManager.default.contentsOfDirectory(atPath: url.path) { try FileManager.default.removeItem(at: file(name)) }
    // Fixtures need no durability.
    for (name, data) in contents { try data.write(to: file(name)) }
  }
}

func record(_ key: String, _ value: String?, at revision: UInt64, in collection: String = "spots", version: Int = 1) -> StoredRecord {
  StoredRecord(
    collection: collection, key: RecordKey(key), revision: Revision(revision), schemaVersion: version, value: value.map { Data($0.utf8) })
}

/// What a store holds, by address, so that it can be compared.
typealias Contents = [RecordAddress: String]

func text(_ record: StoredRecord) -> String {
  "\(record.revision.number) \(record.schemaVersion) " + (record.value.map { String(decoding: $0, as: UTF8.self) } ?? "deleted")
}

extension SQLiteBackend {
  /// Opens the store and gathers what is in it; an address that is visited twice is an issue.
  func openAll(_ options: StoreOptions = .init()) throws(RepositoryError) -> (report: OpenReport, contents: Contents) {
    var contents: Contents = [:]
    let report = try openAndRecover(options) { record in
      #expect(contents.updateValue(text(record), forKey: record.address) == nil)
    }
    return (report, contents)
  }

  /// Commits records as the next commit, which their revisions name.
  func commit(_ records: [StoredRecord], at number: UInt64, _ durability: Durability = .durable) throws(RepositoryError) {
    try commit(WriteBatch(records: records, commits: number...number, durability: durability))
  }
}

/// Opens, reads and closes a store.
func readBack(_ url: URL, _ options: StoreOptions = .init()) throws -> (report: OpenReport, contents: Contents) {
  let backend = SQLiteBackend(file: url)
  let result = try backend.openAll(options)
  try backend.close()
  return result
}

/// The code that a body fails with.
func code(_ body: () throws -> Void) -> RepositoryError.Code? {
  do {
    try body()
    return nil
  } catch {
    return (error as? RepositoryError)?.code
  }
}

/// A foreign program's connection.
final class ForeignDatabase {
  private var handle: OpaquePointer?

  init(_ url: URL) throws {
    try #require(sqlite3_open(url.path(percentEncoded: false), &handle) == SQLITE_OK)
  }

  deinit { sqlite3_close_v2(handle) }

  func run(_ sql: String) throws {
    let result = sqlite3_exec(handle, sql, nil, nil, nil)
    try #require(result == SQLITE_OK, "\(sql): \(result)")
  }

  func number(_ sql: String) throws -> Int64 {
    var statement: OpaquePointer?
    try #require(sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK)
    defer { sqlite3_finalize(statement) }
    try #require(sqlite3_step(statement) == SQLITE_ROW)
    return sqlite3_column_int64(statement, 0)
  }

  func text(_ sql: String, column: Int32) throws -> String {
    var statement: OpaquePointer?
    try #require(sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK)
    defer { sqlite3_finalize(statement) }
    try #require(sqlite3_step(statement) == SQLITE_ROW)
    return String(cString: sqlite3_column_text(statement, column))
  }

  /// Leaves the log as a crash would.
  func keepLog() { larder_sqlite3_db_config_flag(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nil) }
}

/// Numbers that a seed repeats; the seed is printed and can be given as LARDER_SEED.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(_ name: String) {
    let seed = ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0...UInt64.max)
    print("\(name): LARDER_SEED=\(seed)")
    state = seed
  }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var hash = state
    hash = (hash ^ hash >> 30) &* 0xBF58_476D_1CE4_E5B9
    hash = (hash ^ hash >> 27) &* 0x94D0_49BB_1331_11EB
    return hash ^ hash >> 31
  }
}
