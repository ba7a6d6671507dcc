internal import Foundation

/// A write as a value: encoded and checked by its caller, applied by a ``PendingState`` when it is its turn.
enum WriteOperation: Sendable {
  /// Inserts a record, or replaces the one with its key.
  case put(EncodedRecord, in: Int, expecting: Expectation = .anything)
  /// Inserts or replaces records; of two with one key the last one holds.
  case putAll([EncodedRecord], in: Int)
  /// Deletes the record of a key, if there is one.
  case delete(RecordKey, in: Int, schemaVersion: Int, expecting: Expectation = .anything)
  /// Replaces all records of a collection; with a coder, only if it decodes each of those that are there.
  case replaceAll([EncodedRecord], in: Int, schemaVersion: Int, ifDecodableBy: (any AnyRecordCoder)? = nil)
  /// Replaces records that are still what they were by what migrations have made of them.
  case rewrite([MigratedRecord], in: Int)
  /// Runs a closure, which takes back what it has written if it fails; see ``StoreCore/write(_:size:_:)``.
  case transaction(WriteSize, @Sendable (inout PendingState) -> Void)

  /// The size of what will be written, as far as it is known before.
  var size: WriteSize {
    switch self {
    case .put(let record, _, _): WriteSize(of: CollectionOfOne(record))
    case .putAll(let records, _), .replaceAll(let records, _, _, _): WriteSize(of: records)
    case .delete(let key, _, _, _): WriteSize(bytes: key.byteCount, records: 1)
    case .rewrite: .unknown
    case .transaction(let size, _): size
    }
  }

  /// The collection of a write that changes one record in one step, after all its checks but that of unique indexes; `nil` for others.
  var collectionOfOneChange: Int? {
    switch self {
    case .put(_, let collection, _), .delete(_, let collection, _, _): collection
    case .putAll, .replaceAll, .rewrite, .transaction: nil
    }
  }

  /// The origin that observers are told.
  var origin: ChangeOrigin {
    if case .rewrite = self { .migration } else { .thisProcess }
  }
}

/// The result of a write that was committed.
struct WriteReceipt: Sendable {
  /// The revision of what was written; the newest one of the store where nothing was.
  let revision: Revision
  /// The number of records that were written and deleted.
  let recordCount: Int
}

/// A record that migrations have brought to a newer schema version.
struct MigratedRecord: Sendable {
  let record: EncodedRecord
  /// The older record that it was made of.
  let old: RecordSlot
}

/// The condition that a record must meet for a write to go through.
enum Expectation: Sendable {
  case anything
  case absent
  case revision(Revision)

  /// Expects a revision, or anything without one.
  init(_ revision: Revision?) { self = revision.map(Self.revision) ?? .anything }

  /// - Throws: `.alreadyExists`, `.revisionMismatch`.
  func check(_ slot: RecordSlot?, key: RecordKey) throws(RepositoryError) {
    switch self {
    case .anything: return
    case .absent:
      if slot != nil { throw RepositoryError(.alreadyExists, "expected no record with this id, found one", keyHash: key.hash) }
    case .revision(let expected):
      let found = slot?.revision ?? .zero
      // A caller that read the record before a migration rewrote it knows what it means: rewriting changes no meaning.
      if found != expected, slot?.isUnchanged(since: expected) != true {
        throw RepositoryError(
          .revisionMismatch, "expected revision \(expected), found \(found); read the record again", keyHash: key.hash)
      }
    }
  }
}

/// The coder of a collection, whatever its type.
protocol AnyRecordCoder: Sendable {
  /// Returns a record with the members of its old value that the type does not know.
  func keepingUnknownMembers(_ record: EncodedRecord, of old: StoredValue) -> EncodedRecord
  /// - Throws: `.decodingFailed` with the number of records that do not decode.
  func checkDecodable(_ records: RecordMap) throws(RepositoryError)
}

extension RecordCoder: AnyRecordCoder {
  func checkDecodable(_ records: RecordMap) throws(RepositoryError) { try records.checkDecodable(self) }
}

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

extension WriteSize {
  /// Adds up the sizes of some records.
  init(of encoded: some Sequence<EncodedRecord>) {
    for record in encoded { add(key: record.key, value: record.value) }
  }
}
