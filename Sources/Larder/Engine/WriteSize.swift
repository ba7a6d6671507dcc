internal import Foundation

/// The size of what a write, or several of them, will make the backend keep.
struct WriteSize: Sendable, Equatable {
  /// The most that one commit of the backend takes, unless a single write is larger: 64 MiB in 65,536 records.
  ///
  /// It bounds the memory of a batch, and keeps it far below what a backend can take, so that no write fails because of the ones beside it.
  static let group = WriteSize(bytes: 64 << 20, records: 65_536)
  /// The size of a write that is known only when it was staged, such as a transaction.
  static let unknown = WriteSize(bytes: 0, records: 1)
  /// The size of a write that is committed by itself, so that the failure of other writes does not fail it.
  static let alone = group

  var bytes = 0
  var records = 0

  init(bytes: Int = 0, records: Int = 0) {
    self.bytes = bytes
    self.records = records
  }

  /// Adds up the sizes of some records.
  init(of encoded: some Sequence<EncodedRecord>) {
    for record in encoded { add(key: record.key, value: record.value) }
  }

  var isWithinGroup: Bool { bytes <= Self.group.bytes && records <= Self.group.records }

  /// Adds a record or, without a value, a tombstone.
  mutating func add(key: RecordKey, value: Data?) { add(WriteSize(bytes: key.byteCount + (value?.count ?? 0), records: 1)) }

  mutating func add(_ other: WriteSize) {
    bytes += other.bytes
    records += other.records
  }

  mutating func subtract(_ other: WriteSize) {
    bytes -= other.bytes
    records -= other.records
  }
}
