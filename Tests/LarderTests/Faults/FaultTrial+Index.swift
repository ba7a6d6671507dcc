import Foundation
import Larder
import TestSupport

/// An index of the collection "spots" in the index file of a trial's store.
extension FaultTrial {
  private static let index = StoredIndexID(collection: "spots", name: "ordered(revision)")

  /// The key of a record: its revision, and its own key.
  private func key(of record: StoredRecord?) -> Data? {
    guard let record, record.value != nil, record.collection == Self.index.collection else { return nil }
    return Data("\(1_000 + record.revision.number) \(record.key.text)".utf8)
  }

  private func keys(of records: [RecordAddress: StoredRecord]) -> [Data] { records.values.compactMap(key).sorted { $0.precedes($1) } }

  /// The part of a batch that concerns the index, if the store has one.
  func indexChanges(
    from old: [RecordAddress: StoredRecord], to new: [RecordAddress: StoredRecord]
  ) -> (edits: [IndexEdit], indexes: Set<StoredIndexID>) {
    guard backend.holdsIndex(Self.index) else { return ([], []) }
    let edits = new.keys.compactMap { address in
      let (before, after) = (key(of: old[address]), key(of: new[address]))
      return before == after ? nil : IndexEdit(index: Self.index, removed: before, added: after)
    }
    return (edits, [Self.index])
  }

  /// Builds the index from the records of the newest commit.
  func buildIndex() throws {
    guard backend.storesIndexes else { return }
    let keys = keys(of: states[commit] ?? [:])
    do throws(RepositoryError) {
      try backend.extendIndex(Self.index, by: Array(keys.prefix(2)), isFirst: true)
      try backend.extendIndex(Self.index, by: Array(keys.dropFirst(2)), isFirst: false)
      try backend.storeBoundaries([Data()], of: Self.index)
    } catch {
      // A store that has lost its index file goes on without one.
      if error.code != .unsupported { throw error }
    }
  }

  /// Brings the index of a store up to date that was just opened, and compares it with the store's records.
  func checkIndex(of backend: JSONFileBackend, _ records: [RecordAddress: StoredRecord]) throws {
    let missed = try backend.missedChanges(of: Self.index)
    if !missed.isEmpty {
      try expect(!backend.holdsIndex(Self.index), "an index is held that lacks changes")
      let edits = missed.map { IndexEdit(index: Self.index, removed: key(of: $0.before), added: key(of: $0.after)) }
      try backend.catchUpIndex(Self.index, by: edits.filter { $0.removed != $0.added })
      try expect(backend.holdsIndex(Self.index), "an index that was brought up to date is not held")
    }
    guard backend.holdsIndex(Self.index) else { return }
    do { try checkIndex(in: backend.keepBase(), records) } catch let error as RepositoryError {
      guard isPowerLost, error.code == .corrupted else { throw error }
      let report = backend.verify()
      try expect(report.isSound && report.damagedIndexes.count == 1, "verify does not find the torn index alone: \(report)")
      try expect(!backend.holdsIndex(Self.index), "a torn index stays after verify")
    }
  }

  /// Compares the index of a base, if there is one, with records.
  func checkIndex(in base: any StoredBase, _ records: [RecordAddress: StoredRecord]) throws {
    let found: [Data]
    do throws(RepositoryError) { found = try base.indexKeys(of: Self.index, from: Data(), below: nil) } catch {
      guard error.code == .unsupported else { throw error }
      return
    }
    try expect(found == keys(of: records), "the index has other keys than the records")
    try expect(base.indexKeyCount(of: Self.index, from: Data(), below: nil) == found.count, "the index counts its keys wrongly")
  }
}
