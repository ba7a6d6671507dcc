import Foundation
import Larder
import Synchronization
import TestSupport
import Testing

@testable import LarderSQLite

/// Makes a record; a tombstone without a value.
func record(_ key: String, _ value: String?, at revision: UInt64, in collection: String = "spots", version: Int = 1) -> StoredRecord {
  StoredRecord(
    collection: collection, key: RecordKey(key), revision: Revision(revision), schemaVersion: version, value: value.map { Data($0.utf8) })
}

/// The contents of a store as text, by address, so that they can be compared.
typealias Contents = [RecordAddress: String]

/// Describes a record as ``Contents`` does.
func text(_ record: StoredRecord) -> String {
  "\(record.revision.number) \(record.schemaVersion) " + (record.value.map { String(decoding: $0, as: UTF8.self) } ?? "deleted")
}

extension SQLiteBackend {
  /// Opens the store and collects its contents; an address that is visited twice is an issue.
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

/// Returns the code of the error that a body throws; `nil` when it throws none.
func code(_ body: () throws -> Void) -> RepositoryError.Code? {
  do {
    try body()
    return nil
  } catch {
    return (error as? RepositoryError)?.code
  }
}

extension SQLiteBackend {
  /// Runs a statement on the store's own connection, to bring about what other programs cannot.
  func execute(_ sql: String) throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.writer()?.connection.execute(sql) }
  }
}

extension SeededGenerator {
  /// Starts from a new seed, or from the one in LARDER_SEED, and prints it.
  init(_ test: String) {
    let seed = ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0...UInt64.max)
    print("\(test): LARDER_SEED=\(seed)")
    self.init(seed: seed)
  }
}
