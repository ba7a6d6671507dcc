internal import Foundation

/// A write as a value: its caller encodes and checks the records, and a ``PendingState`` applies it on the executor.
enum WriteOperation: Sendable {
  /// Inserts a record, or replaces the one with its key.
  case put(EncodedRecord, in: Int, expecting: Expectation = .anything)
  /// Inserts or replaces records. Of two with one key, the last one counts.
  case putAll([EncodedRecord], in: Int)
  /// Deletes the record of a key, if there is one.
  case delete(RecordKey, in: Int, schemaVersion: Int, expecting: Expectation = .anything)
  /// Replaces all records of a collection. With a coder, only if the coder decodes every record that is there.
  case replaceAll([EncodedRecord], in: Int, schemaVersion: Int, ifDecodableBy: (any AnyRecordCoder)? = nil)
  /// Replaces records by their migrated form, apart from those that were changed since.
  case rewrite([MigratedRecord], in: Int)
  /// Runs a closure that takes back its changes if it fails. See ``StoreCore/write(_:size:_:)``.
  case transaction(WriteSize, @Sendable (inout PendingState) -> Void)

  /// Size of the records to be written, as far as it is known before staging.
  var size: WriteSize {
    switch self {
    case .put(let record, _, _): WriteSize(of: CollectionOfOne(record))
    case .putAll(let records, _), .replaceAll(let records, _, _, _): WriteSize(of: records)
    case .delete(let key, _, _, _): WriteSize(bytes: key.byteCount, records: 1)
    case .rewrite: .unknown
    case .transaction(let size, _): size
    }
  }

  /// Collection of a write that changes one record after all its checks, apart from those of unique indexes.
  ///
  /// `nil` for other writes.
  var collectionOfOneChange: Int? {
    switch self {
    case .put(_, let collection, _), .delete(_, let collection, _, _): collection
    // These may fail between two changes, so they need a savepoint with the collections.
    case .putAll, .replaceAll, .rewrite, .transaction: nil
    }
  }

  /// Origin that observers receive with the changes of the write.
  var origin: ChangeOrigin {
    if case .rewrite = self { .migration } else { .thisProcess }
  }
}

/// Result of a committed write.
struct WriteReceipt: Sendable {
  /// Revision of the written records, or the newest one of the store if there were none.
  let revision: Revision
  /// Number of records that were written or deleted.
  let recordCount: Int
}

/// A record that migrations have brought to a newer schema version.
struct MigratedRecord: Sendable {
  let record: EncodedRecord
  /// The older record from which the migrated one was made.
  let old: RecordSlot
}

/// A condition that a record must meet for a write to be accepted.
enum Expectation: Sendable {
  case anything
  case absent
  case revision(Revision)

  /// Expects a revision, or accepts any record if the revision is `nil`.
  init(_ revision: Revision?) { self = revision.map(Self.revision) ?? .anything }

  /// Checks the present record of a key against the expectation.
  /// - Throws: `.alreadyExists`, `.revisionMismatch`.
  func check(_ slot: RecordSlot?, key: RecordKey) throws(RepositoryError) {
    switch self {
    case .anything: return
    case .absent:
      if slot != nil { throw RepositoryError(.alreadyExists, "expected no record with this id, found one", keyHash: key.hash) }
    case .revision(let expected):
      let found = slot?.revision ?? .zero
      // A migration changes no meaning, so a caller that read the record before its rewrite may still write.
      if found != expected, slot?.isUnchanged(since: expected) != true {
        throw RepositoryError(
          .revisionMismatch, "expected revision \(expected), found \(found); read the record again", keyHash: key.hash)
      }
    }
  }
}

/// The coder of a collection, without its generic type.
protocol AnyRecordCoder: Sendable {
  /// Returns a record with the members of its old value that the type does not read.
  func keepingUnknownMembers(_ record: EncodedRecord, of old: StoredValue) -> EncodedRecord
  /// Checks that every record decodes.
  /// - Throws: `.decodingFailed` with the number of records that do not decode.
  func checkDecodable(_ records: RecordMap) throws(RepositoryError)
}

extension RecordCoder: AnyRecordCoder {
  func checkDecodable(_ records: RecordMap) throws(RepositoryError) { try records.checkDecodable(self) }
}

/// The size of one or more writes: the bytes and records that the backend stores for them.
struct WriteSize: Sendable, Equatable {
  /// Largest size of one commit of the backend, unless a single write is larger: 64 MiB in 65,536 records.
  ///
  /// It bounds the memory of a batch. It is far below the limits of backends, so that no write fails because of the others in its group.
  static let group = WriteSize(bytes: 64 << 20, records: 65_536)
  /// Size of a write whose records are known only after staging, such as a transaction.
  static let unknown = WriteSize(bytes: 0, records: 1)
  /// Size of a write that is committed by itself, so that it does not fail with other writes.
  static let alone = group

  var bytes = 0
  var records = 0

  var isWithinGroup: Bool { bytes <= Self.group.bytes && records <= Self.group.records }

  /// Adds the size of a record, or of a tombstone if there is no value.
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

extension WriteSize {
  /// Adds up the sizes of encoded records.
  init(of encoded: some Sequence<EncodedRecord>) {
    for record in encoded { add(key: record.key, value: record.value) }
  }
}
