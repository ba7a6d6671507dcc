// Writing/ makes new stores and adds to existing ones.
// Invariant: a new store gets its name when it is complete and was compared. Called by the writing commands.

internal import Foundation
package import Larder

/// Everything that a store holds at one commit.
package struct StoreContents: Sendable {
  /// The records and tombstones.
  package let records: [StoredRecord]
  /// The newest commit.
  package let commit: UInt64
  /// The newest deletion that may have been forgotten.
  package let horizon: UInt64

  init(records: [StoredRecord], commit: UInt64, horizon: UInt64) {
    // A deletion up to the horizon says nothing: others of that time are forgotten.
    self.records = records.filter { $0.value != nil || $0.revision.number > horizon }
    self.commit = max(commit, records.lazy.map(\.revision.number).max() ?? 0)
    self.horizon = horizon
  }

  /// Takes what was read from a store.
  init(_ reading: StoreReading) {
    self.init(records: reading.records, commit: reading.report.commit.number, horizon: reading.report.tombstoneHorizon.number)
  }

  /// The number of records that are not tombstones.
  package var recordCount: Int { records.count { $0.value != nil } }
  /// The number of tombstones.
  package var tombstoneCount: Int { records.count - recordCount }

  /// The size that a batch has at most: a record more where they are of one commit.
  private static let batchSize = (records: 4_096, bytes: 16 << 20)

  /// Refuses contents that a store could not hold, or hold and not go on from.
  /// - Throws: `.unsupported`.
  func checkCommit(_ path: String) throws(RepositoryError) {
    guard commit > RecordRules.lastCommit else { return }
    throw RepositoryError(
      .unsupported,
      "expected commits up to \(RecordRules.lastCommit), found commit \(commit): import the values into a new store", file: path)
  }

  /// The batches that bring an empty store to this state, each ending with a commit.
  func batches() -> [WriteBatch] {
    var ordered = records.sorted { ($0.revision, $0.address) < ($1.revision, $1.address) }
    if horizon > 0, let some = ordered.first {
      // There is no call that sets the horizon. But a backend that may keep as many tombstones as there are forgets this one, which is the
      // oldest, at its checkpoint, and remembers its revision.
      let marker = StoredRecord(
        collection: some.collection, key: RecordKey("larder-horizon-\(UUID().uuidString)"), revision: Revision(horizon),
        schemaVersion: some.schemaVersion, value: nil)
      ordered.insert(marker, at: ordered.firstIndex { $0.revision.number > horizon } ?? ordered.count)
    }
    var batches: [WriteBatch] = []
    var (part, size, first): ([StoredRecord], Int, UInt64) = ([], 0, 1)
    for (index, record) in ordered.enumerated() {
      part.append(record)
      size += record.value?.count ?? 0
      let isLast = index == ordered.count - 1
      let ends = isLast || ordered[index + 1].revision != record.revision
      guard isLast || ends && (part.count >= Self.batchSize.records || size >= Self.batchSize.bytes) else { continue }
      let last = isLast ? max(commit, 1) : record.revision.number
      batches.append(WriteBatch(records: part, commits: first...last))
      (part, size, first) = ([], 0, last + 1)
    }
    return batches
  }

  /// Compares what a store holds with this.
  /// - Throws: `.corrupted` where they differ.
  func compare(with other: StoreContents, at path: String) throws(RepositoryError) {
    let (left, right) = (Self.byAddress(records), Self.byAddress(other.records))
    let differing = left.count { right[$0.key]?.isSame(as: $0.value) != true } + right.count { left[$0.key] == nil }
    guard differing == 0, horizon == other.horizon, commit == other.commit || records.isEmpty else {
      throw RepositoryError(
        .corrupted,
        "expected \(records.count) records and tombstones at commit \(commit), found \(differing) of them different at commit "
          + "\(other.commit): check the disk, remove the file, and run this again", file: path)
    }
  }

  private static func byAddress(_ records: [StoredRecord]) -> [RecordAddress: StoredRecord] {
    Dictionary(records.map { ($0.address, $0) }) { $1 }
  }
}

extension StoredRecord {
  /// Whether everything of a record is as in this one.
  func isSame(as other: StoredRecord) -> Bool {
    address == other.address && revision == other.revision && schemaVersion == other.schemaVersion && value == other.value
  }
}
