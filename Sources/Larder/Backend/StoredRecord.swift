public import Foundation

/// A stored record: its address, revision, schema version and encoded value, which a backend does not decode.
public struct StoredRecord: Sendable {
  /// Name of the collection that holds the record.
  public let collection: String
  /// Key of the record, unique within its collection.
  public let key: RecordKey
  /// Number of the commit that last changed the record, not counting a migration that has kept the revision.
  ///
  /// The revision is never above the number of the commit that writes the record. The revision of a record is below the number of the
  /// commit that writes it if this commit belongs to a migration that keeps the record's revision. To find the records that a commit wrote,
  /// use ``WriteBatch/commits``.
  public let revision: Revision
  /// Version of the schema that the encoded value has.
  public let schemaVersion: Int
  /// One JSON value in UTF-8 without a line feed, or `nil` for a tombstone, which marks the record as deleted at ``revision``.
  public let value: Data?

  /// Creates a record or, without a value, a tombstone.
  public init(collection: String, key: RecordKey, revision: Revision, schemaVersion: Int, value: Data?) {
    self.collection = collection
    self.key = key
    self.revision = revision
    self.schemaVersion = schemaVersion
    self.value = value
  }

  /// Copy of the record whose value bytes are copied too, so that the copied record does not keep a larger buffer in memory.
  var detached: StoredRecord {
    StoredRecord(collection: collection, key: key, revision: revision, schemaVersion: schemaVersion, value: value.map { Data(Array($0)) })
  }

  /// Collection and key of the record.
  public var address: RecordAddress { RecordAddress(collection: collection, key: key) }

  /// Checksum that a backend stores beside the record, and compares when it reads the record.
  ///
  /// The checksum of a record is a CRC32C. The checksum first covers four numbers of eight bytes each, least significant byte first. The
  /// four numbers are the length of the collection's name, the length of the key, the revision, and twice the schema version, plus one if
  /// there is a value. After the four numbers, the checksum covers the bytes of the collection's name, the key and the value. Every backend
  /// uses the same formula, so that a record keeps its checksum when it moves between backends.
  public var checksum: UInt32 {
    var collection = collection
    return collection.withUTF8 { name in
      key.withBytes { key in
        var crc = Self.checksum(
          UnsafeRawBufferPointer(name), key: key, revision: revision.number, schemaVersion: schemaVersion, hasValue: value != nil)
        value?.withUnsafeBytes { crc.update($0) }
        return crc.value
      }
    }
  }

  /// Returns the unfinished ``checksum`` of a record, to which the caller must add the bytes of the value.
  package static func checksum(
    _ collection: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer, revision: UInt64, schemaVersion: Int, hasValue: Bool
  ) -> CRC32C {
    var crc = CRC32C()
    let version = UInt64(bitPattern: Int64(schemaVersion)) &* 2 &+ (hasValue ? 1 : 0)
    // The checksum begins with the lengths of the collection's name and the key, so that it changes if bytes move from the end of the name
    // to the start of the key.
    let numbers = (UInt64(collection.count), UInt64(key.count), revision, version)
    withUnsafeBytes(of: (numbers.0.littleEndian, numbers.1.littleEndian, numbers.2.littleEndian, numbers.3.littleEndian)) { crc.update($0) }
    crc.update(collection)
    crc.update(key)
    return crc
  }
}

/// The address of a record: its collection and its key.
///
/// Addresses are ordered by the UTF-8 bytes of the collection, then by the UTF-8 bytes of the key.
public struct RecordAddress: Hashable, Comparable, Sendable {
  /// Name of the collection.
  public let collection: String
  /// Key within the collection.
  public let key: RecordKey

  /// Creates an address.
  public init(collection: String, key: RecordKey) {
    self.collection = collection
    self.key = key
  }

  /// True if the left address comes first by the bytes of the collection or, in one collection, by the bytes of the key.
  public static func < (left: RecordAddress, right: RecordAddress) -> Bool {
    // The names of collections are compared as `RecordKey`, which compares bytes, because records in files are sorted by bytes, and
    // `String` compares by Unicode rules.
    left.collection == right.collection ? left.key < right.key : RecordKey(left.collection) < RecordKey(right.collection)
  }
}

/// Records and tombstones that one call of ``StorageBackend/commit(_:)`` makes durable together.
public struct WriteBatch: Sendable {
  /// Records and tombstones in the order of their commits.
  ///
  /// If an address occurs more than once in a batch, the last record at this address is the one that the batch leaves in the store.
  public let records: [StoredRecord]
  /// Numbers of the commits in this batch, of which the first is one above the number of the store's newest commit.
  public let commits: ClosedRange<UInt64>
  /// Kind of failure after which the batch must still be stored.
  public let durability: Durability
  /// Changes of stored indexes, in the order of the commits.
  public let indexEdits: [IndexEdit]
  /// Stored indexes for which ``indexEdits`` has every change of the batch.
  ///
  /// Only a ``PagingBackend`` that stores indexes reads the list. It drops each other index of a collection that the batch changes.
  public let indexes: Set<StoredIndexID>
  /// Number of records after the batch, without tombstones, of each collection that the batch changes, or empty if it is unknown.
  ///
  /// A ``PagingBackend`` that keeps counts can use the numbers, and need not find out which records replace others.
  public let recordCounts: [String: Int]

  /// Creates a batch.
  public init(
    records: [StoredRecord], commits: ClosedRange<UInt64>, durability: Durability = .durable, indexEdits: [IndexEdit] = [],
    indexes: Set<StoredIndexID> = [], recordCounts: [String: Int] = [:]
  ) {
    self.records = records
    self.commits = commits
    self.durability = durability
    self.indexEdits = indexEdits
    self.indexes = indexes
    self.recordCounts = recordCounts
  }
}

/// Commits that other processes made to a store after a revision, with the records that the store needs to catch up.
public struct ForeignCommits: Sendable {
  /// Number of the newest commit in the files, which is also the newest commit in memory after ``records`` were applied.
  public let commit: Revision
  /// Records and tombstones with revisions after the requested revision, in any order: each address once, in its newest state.
  public let records: [StoredRecord]
  /// Addresses of all records in the store, or `nil` if ``records`` has a tombstone for every deletion after the requested revision.
  ///
  /// `addresses` is not `nil` if tombstones of deletions after the requested revision may have been removed. A record whose address is
  /// missing in `addresses` was deleted.
  public let addresses: Set<RecordAddress>?

  /// Creates a value from the newest commit and the records that were changed up to this commit.
  public init(commit: Revision, records: [StoredRecord], addresses: Set<RecordAddress>? = nil) {
    self.commit = commit
    self.records = records
    self.addresses = addresses
  }
}
