internal import Larder

/// Records saved from a damaged store, the newest one of each address, and the problems that were found.
struct Salvage {
  private struct Found {
    let record: StoredRecord
    let age: UInt64
  }
  private var found: [RecordAddress: Found] = [:]
  private(set) var problems: [SalvageProblem] = []
  /// Newest commit that any part of the store names.
  private(set) var commit: UInt64 = 0
  /// Newest commit whose tombstones may have been forgotten, according to the store.
  var horizon: UInt64 = 0
  /// Whether any part of the files was recognised as one of a store.
  var isRecognised = false

  /// Saved records and tombstones, sorted by address.
  var records: [StoredRecord] { found.values.map(\.record).sorted { $0.address < $1.address } }
  /// True if records may be missing.
  var hasLosses: Bool { problems.contains(where: \.isLoss) }

  /// Adds a record whose checksum matched.
  ///
  /// The later revision is kept. Of two with one revision, a migration has written the second, with a higher schema version or later.
  /// - Parameter age: Commit at which the file or frame with the record was written, which decides between equal revisions.
  mutating func add(_ record: StoredRecord, age: UInt64) {
    isRecognised = true
    note(commit: record.revision.number)
    if let other = found[record.address], !Self.isNewer(record, age, than: other) { return }
    found[record.address] = Found(record: record, age: age)
  }

  private static func isNewer(_ record: StoredRecord, _ age: UInt64, than other: Found) -> Bool {
    (record.revision.number, record.schemaVersion, age) > (other.record.revision.number, other.record.schemaVersion, other.age)
  }

  /// The record of an address that was saved so far.
  subscript(address: RecordAddress) -> StoredRecord? { found[address]?.record }

  /// Raises the newest commit to a number that was found.
  mutating func note(commit: UInt64) {
    // Both kinds of stores keep 63 bits. A larger number is damage, and the new store could not be written.
    if commit < UInt64(Int64.max) { self.commit = max(self.commit, commit) }
  }

  mutating func add(_ problem: SalvageProblem) { problems.append(problem) }
  mutating func add(_ problems: [SalvageProblem]) { self.problems += problems }
}
