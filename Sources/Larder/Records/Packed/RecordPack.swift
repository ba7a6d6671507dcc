internal import Foundation

/// A run of records of one collection, packed as a backend has read them.
package struct RecordPack: Sendable {
  /// The collection of all of them.
  package let collection: String
  let records: [PackedRecord]
  /// The keys and values, one after the other.
  let block: Data
  /// The values that are not in the block because of their size, by position.
  let large: [Int: Data]
  /// The records over a limit by their positions: their values are not in the block.
  let refused: [(position: Int, slot: RecordSlot, error: RepositoryError)]
  /// Whether the keys ascend.
  let isSorted: Bool
  /// The oldest and the newest schema version; the largest number and 0 without records.
  let versions: (oldest: Int, newest: Int)

  /// The number of records.
  package var count: Int { records.count }

  /// Returns the key at a position.
  func key(at position: Int) -> RecordKey {
    let record = records[position]
    return record.isKeyedByNumber ? RecordKey(record.number) : withKeyText(at: position) { RecordKey(utf8: $0) }
  }

  /// Lends the text of a key that is none of a UUID.
  func withKeyText<R>(at position: Int, _ body: (UnsafeRawBufferPointer) -> R) -> R {
    block.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[records[position].keyText])) }
  }

  /// Returns the value at a position: a slice, which keeps the block.
  func value(at position: Int) -> Data {
    let record = records[position]
    if record.count == .max { return large[position] ?? Data() }
    let range = record.value
    return range.isEmpty ? Data() : block[(block.startIndex + range.lowerBound)..<(block.startIndex + range.upperBound)]
  }

  /// Visits the records as backends hand them over one by one; for packs without limits, which refuse none.
  package func forEach<Failure>(_ visit: (StoredRecord) throws(Failure) -> Void) throws(Failure) {
    for (position, record) in records.enumerated() {
      try visit(
        StoredRecord(
          collection: collection, key: key(at: position), revision: Revision(record.revision), schemaVersion: Int(record.schemaVersion),
          value: value(at: position)))
    }
  }
}

/// The records that a backend of whole stores hands over while it opens: one by one, or a pack of them, which spares making each.
package enum LoadedRecords: Sendable {
  case pack(RecordPack)
  /// A record or a tombstone.
  case record(StoredRecord)

  /// Visits each record and tombstone; for packs without limits.
  package func forEach(_ visit: (StoredRecord) -> Void) {
    switch self {
    case .pack(let pack): pack.forEach(visit)
    case .record(let record): visit(record)
    }
  }
}

/// A backend that hands over packs of records while it opens.
package protocol PackingBackend: StorageBackend {
  /// Does what ``StorageBackend/open(_:_:)`` does; the limits of the options decide which records of a pack are refused.
  func openPacked(_ options: StoreOptions, _ visit: (LoadedRecords) -> Void) throws(RepositoryError) -> OpenReport
}
