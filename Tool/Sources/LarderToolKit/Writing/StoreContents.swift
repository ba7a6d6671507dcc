// Writing/ makes new stores, and adds records to existing ones.
// Invariant: a new store gets its final name only after it was written and compared. Called by the writing commands.

internal import Foundation
package import Larder

/// All records and tombstones of a store at one commit.
package struct StoreContents: Sendable {
  /// Records and tombstones, without the tombstones up to the horizon.
  package let records: [StoredRecord]
  /// Newest commit of the store.
  package let commit: UInt64
  /// Tombstone horizon: the newest commit whose tombstones may have been forgotten.
  package let horizon: UInt64

  init(records: [StoredRecord], commit: UInt64, horizon: UInt64) {
    // Up to the horizon other tombstones are missing, so a reader of the store's changes learns nothing from a single one.
    self.records = records.filter { $0.value != nil || $0.revision.number > horizon }
    self.commit = max(commit, records.lazy.map(\.revision.number).max() ?? 0)
    self.horizon = horizon
  }

  /// Creates the contents from a store that was read.
  init(_ reading: StoreReading) {
    self.init(records: reading.records, commit: reading.report.commit.number, horizon: reading.report.tombstoneHorizon.number)
  }

  /// The numbers of records and tombstones with the commit, such as "2 records and 1 tombstone at commit 5".
  package var summary: String { "\(counted(recordCount, "record")) and \(counted(tombstoneCount, "tombstone")) at commit \(commit)" }

  /// Number of live records, without tombstones.
  package var recordCount: Int { records.count { $0.value != nil } }
  /// Number of tombstones.
  package var tombstoneCount: Int { records.count - recordCount }

  /// Size from which a batch ends after the current commit.
  ///
  /// A batch may be larger, because a commit is never split.
  private static let batchSize = (records: 4_096, bytes: 16 << 20)

  /// Checks that an app could still commit to a store with these contents.
  /// - Throws: `.unsupported` for a commit above ``RecordRules/lastCommit``.
  func checkCommit(_ path: String) throws(RepositoryError) {
    guard commit > RecordRules.lastCommit else { return }
    throw RepositoryError(
      .unsupported,
      "expected commits up to \(RecordRules.lastCommit), found commit \(commit): import the values into a new store", file: path)
  }

  /// Returns the batches that bring an empty store to these contents.
  ///
  /// Each batch ends with a commit.
  func batches() -> [WriteBatch] {
    var ordered = records.sorted { ($0.revision, $0.address) < ($1.revision, $1.address) }
    if horizon > 0 {
      // No call of a backend sets the horizon. But `StoreDraft` limits the number of tombstones to those in `contents`. The checkpoint then
      // forgets this additional one, which is the oldest, and its revision becomes the horizon.
      // A tombstone needs no table of its collection, so any valid name does in a store without records.
      let marker = StoredRecord(
        collection: records.first?.collection ?? "horizon", key: RecordKey("larder-horizon-\(UUID().uuidString)"),
        revision: Revision(horizon), schemaVersion: 1, value: nil)
      ordered.insert(marker, at: ordered.firstIndex { $0.revision.number > horizon } ?? ordered.count)
    }
    // A dump of some records can be empty and have no horizon. The new store still continues at the commit of the dump.
    guard !ordered.isEmpty else { return commit > 0 ? [WriteBatch(records: [], commits: 1...commit)] : [] }
    var batches: [WriteBatch] = []
    var (part, size, first): ([StoredRecord], Int, UInt64) = ([], 0, 1)
    for (index, record) in ordered.enumerated() {
      part.append(record)
      size += record.value?.count ?? 0
      let isLast = index == ordered.count - 1
      // Records of one commit stay in one batch, because a batch covers a range of whole commits.
      let ends = isLast || ordered[index + 1].revision != record.revision
      guard isLast || ends && (part.count >= Self.batchSize.records || size >= Self.batchSize.bytes) else { continue }
      // The newest commit may have left no record, when later ones replaced all of its records.
      let last = isLast ? max(commit, 1) : record.revision.number
      batches.append(WriteBatch(records: part, commits: first...last))
      (part, size, first) = ([], 0, last + 1)
    }
    return batches
  }

  /// Compares these contents with those of the store that was written.
  /// - Throws: `.corrupted` if they differ.
  func compare(with other: StoreContents, at path: String) throws(RepositoryError) {
    let (left, right) = (Self.byAddress(records), Self.byAddress(other.records))
    let differing = left.count { right[$0.key]?.isSame(as: $0.value) != true } + right.count { left[$0.key] == nil }
    guard differing == 0, horizon == other.horizon, commit == other.commit else {
      throw RepositoryError(
        .corrupted,
        "expected commit \(commit), tombstones since commit \(horizon) and equal records, found commit \(other.commit), tombstones since "
          + "commit \(other.horizon) and \(counted(differing, "record")) that differ: check the disk, remove the file, and run this again",
        file: path)
    }
  }

  private static func byAddress(_ records: [StoredRecord]) -> [RecordAddress: StoredRecord] {
    Dictionary(records.map { ($0.address, $0) }) { $1 }
  }
}

extension StoredRecord {
  /// Returns true if two records have the same address, revision, schema version and value.
  func isSame(as other: StoredRecord) -> Bool {
    address == other.address && revision == other.revision && schemaVersion == other.schemaVersion && value == other.value
  }
}
