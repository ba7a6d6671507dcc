internal import Larder

/// The records that were saved from a damaged store so far, the newest one of each address, and what was not saved.
struct Salvage {
  private struct Found {
    let record: StoredRecord
    let age: UInt64
  }
  private var found: [RecordAddress: Found] = [:]
  private(set) var problems: [SalvageProblem] = []
  /// The newest commit that any part of the store names.
  private(set) var commit: UInt64 = 0
  /// The newest deletion that may have been forgotten, as the store says.
  var horizon: UInt64 = 0
  /// Whether any part was recognised as one of a store.
  var isRecognised = false

  /// The records and tombstones, in the order of their addresses.
  var records: [StoredRecord] { found.values.map(\.record).sorted { $0.address < $1.address } }
  /// Whether something may be missing.
  var hasLosses: Bool { problems.contains(where: \.isLoss) }

  /// Adds a record whose checksum matched.
  ///
  /// A later revision wins. Only a migration writes one twice, with a later schema version or at least later.
  /// - Parameter age: The commit at which its file or frame was written, which decides between equal revisions.
  mutating func add(_ record: StoredRecord, age: UInt64) {
    isRecognised = true
    note(commit: record.revision.number)
    if let other = found[record.address], !Self.isNewer(record, age, than: other) { return }
    found[record.address] = Found(record: record, age: age)
  }

  private static func isNewer(_ record: StoredRecord, _ age: UInt64, than other: Found) -> Bool {
    (record.revision.number, record.schemaVersion, age) > (other.record.revision.number, other.record.schemaVersion, other.age)
  }

  /// Returns the record of an address that was saved so far.
  subscript(address: RecordAddress) -> StoredRecord? { found[address]?.record }

  /// Notes that the store has reached a commit.
  mutating func note(commit: UInt64) {
    if commit < UInt64(Int64.max) { self.commit = max(self.commit, commit) }
  }

  mutating func add(_ problem: SalvageProblem) { problems.append(problem) }
  mutating func add(_ problems: [SalvageProblem]) { self.problems += problems }
}
