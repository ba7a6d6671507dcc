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
    case .delete, .rewrite: .unknown
    case .transaction(let size, _): size
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
  /// - Throws: `.decodingFailed` with the number of records that do not decode.
  func checkDecodable(_ records: RecordMap) throws(RepositoryError)
}

extension RecordCoder: AnyRecordCoder {
  func checkDecodable(_ records: RecordMap) throws(RepositoryError) { try records.checkDecodable(self) }
}
