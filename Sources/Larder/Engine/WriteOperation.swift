internal import Foundation

/// A write as a value, which its caller creates from encoded records and a ``PendingState`` applies on the executor.
enum WriteOperation: Sendable {
  /// Inserts a record, or replaces the record with the same key.
  case put(EncodedRecord, in: Int, expecting: Expectation = .anything)
  /// Inserts or replaces records. If two records have the same key, the later one is stored.
  case putAll([EncodedRecord], in: Int)
  /// Deletes the record of a key, if the record exists.
  case delete(RecordKey, in: Int, schemaVersion: Int, expecting: Expectation = .anything)
  /// Replaces all records of a collection. If a coder is given, the write fails unless the coder decodes every present record.
  case replaceAll([EncodedRecord], in: Int, schemaVersion: Int, ifDecodableBy: (any AnyRecordCoder)? = nil)
  /// Replaces records by their migrated form, apart from records that were changed since the migration read them.
  case rewrite([MigratedRecord], in: Int)
  /// Runs a closure that rolls back its own changes if it fails, for ``StoreCore/write(_:size:_:)``.
  case transaction(WriteSize, @Sendable (inout PendingState) -> Void)

  /// Size of the records to be written, as far as the size is known before the write is staged.
  var size: WriteSize {
    switch self {
    case .put(let record, _, _): WriteSize(of: CollectionOfOne(record))
    case .putAll(let records, _), .replaceAll(let records, _, _, _): WriteSize(of: records)
    case .delete(let key, _, _, _): WriteSize(bytes: key.byteCount, records: 1)
    case .rewrite: .unknown
    case .transaction(let size, _): size
    }
  }

  /// Position of the collection, for a write that makes all its checks before its only change, apart from uniqueness.
  ///
  /// `collectionOfOneChange` is `nil` for all other writes.
  var collectionOfOneChange: Int? {
    switch self {
    case .put(_, let collection, _), .delete(_, let collection, _, _): collection
    // A write of several records may fail after some of its changes, so its rollback needs a savepoint with the collections.
    case .putAll, .replaceAll, .rewrite, .transaction: nil
    }
  }

  /// Origin of the write's changes, which observers receive with each change.
  var origin: ChangeOrigin {
    if case .rewrite = self { .migration } else { .thisProcess }
  }
}

/// Result of a committed write.
struct WriteReceipt: Sendable {
  /// Revision of the written records, or the newest revision of the store if the write changed no record.
  let revision: Revision
  /// Number of records that were written or deleted.
  let recordCount: Int
}

/// A record that a migration has brought to a newer schema version.
struct MigratedRecord: Sendable {
  let record: EncodedRecord
  /// The record of the older schema version, before its migration.
  let old: RecordSlot
}

/// A condition on the present record of a key, which a write requires.
///
/// If the expectation is not met, the write is refused.
enum Expectation: Sendable {
  case anything
  case absent
  case revision(Revision)

  /// Creates the expectation that the record has a revision, or the expectation that is always met if `revision` is `nil`.
  init(_ revision: Revision?) { self = revision.map(Self.revision) ?? .anything }

  /// Checks the present record of a key against the expectation.
  ///
  /// - Throws: `.alreadyExists` or `.revisionMismatch` if the expectation is not met.
  func check(_ slot: RecordSlot?, key: RecordKey) throws(RepositoryError) {
    switch self {
    case .anything: return
    case .absent:
      if slot != nil { throw RepositoryError(.alreadyExists, "expected no record with this id, found one", keyHash: key.hash) }
    case .revision(let expected):
      let found = slot?.revision ?? .zero
      // A migration does not change a record's meaning. A caller that read a record before its migration may still replace the record, if
      // only migrations have changed the record since.
      if found != expected, slot?.isUnchanged(since: expected) != true {
        throw RepositoryError(
          .revisionMismatch, "expected revision \(expected), found \(found); read the record again", keyHash: key.hash)
      }
    }
  }
}

/// The coder of a collection, without its generic type.
protocol AnyRecordCoder: Sendable {
  /// Returns a record with those JSON members of its old value that the record's type does not read.
  func keepingUnknownMembers(_ record: EncodedRecord, of old: StoredValue) -> EncodedRecord
  /// Checks that all records of a collection decode as its type.
  ///
  /// - Throws: `.decodingFailed` with the number of records that do not decode.
  func checkDecodable(_ records: RecordMap) throws(RepositoryError)
}

extension RecordCoder: AnyRecordCoder {
  func checkDecodable(_ records: RecordMap) throws(RepositoryError) { try records.checkDecodable(self) }
}

/// The size of one or more writes: the number of bytes and records that the backend stores for them.
struct WriteSize: Sendable, Equatable {
  /// Largest size of one commit, unless a single write is larger: 64 MiB and 65,536 records.
  ///
  /// The size limit of a commit bounds the memory of a batch. The size limit of a commit is far below the limits of all backends, so that
  /// no write fails because of other writes in its group.
  static let group = WriteSize(bytes: 64 << 20, records: 65_536)
  /// Size of a write whose records are known only after it is staged, such as a transaction.
  static let unknown = WriteSize(bytes: 0, records: 1)
  /// Size that gives a write a commit of its own, so that it does not fail because of other writes.
  static let alone = group

  var bytes = 0
  var records = 0

  var isWithinGroup: Bool { bytes <= Self.group.bytes && records <= Self.group.records }

  /// Adds the size of a record, or of a tombstone if `value` is `nil`.
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
