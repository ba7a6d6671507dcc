public import Foundation

/// A stored record: its address, revision, schema version and encoded value, which a backend does not decode.
public struct StoredRecord: Sendable {
  /// Name of the collection that holds the record.
  public let collection: String
  /// Key of the record, unique within its collection.
  public let key: RecordKey
  /// Number of the commit that last changed the record, where a migration may count as no change.
  ///
  /// The revision is never above the number of the commit that writes the record. The revision is below the number of that commit if the
  /// commit belongs to a migration that has rewritten the record and kept its revision. To find the records that a commit wrote, use
  /// ``WriteBatch/commits``.
  public let revision: Revision
  /// Version of the schema by which the value is encoded.
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

  /// Copy of the record whose value has memory of its own, so that the copy does not keep a larger buffer alive.
  var detached: StoredRecord {
    StoredRecord(collection: collection, key: key, revision: revision, schemaVersion: schemaVersion, value: value.map { Data(Array($0)) })
  }

  /// Collection and key of the record.
  public var address: RecordAddress { RecordAddress(collection: collection, key: key) }

  /// Checksum that backends store beside a record and compare when they read it.
  ///
  /// The checksum is a CRC32C. The checksum first covers four numbers of eight bytes each, least significant byte first. The four numbers
  /// are the length of the collection's name, the length of the key, the revision, and twice the schema version plus one if there is a
  /// value. After the four numbers, the checksum covers the bytes of the name, the key and the value. Every backend uses this one formula,
  /// so that a record keeps its checksum when it moves between backends.
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

  /// Returns the ``checksum`` of a record without the bytes of its value, which the caller adds.
  package static func checksum(
    _ collection: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer, revision: UInt64, schemaVersion: Int, hasValue: Bool
  ) -> CRC32C {
    var crc = CRC32C()
    let version = UInt64(bitPattern: Int64(schemaVersion)) &* 2 &+ (hasValue ? 1 : 0)
    // The checksum begins with the lengths of the name and the key, so that bytes moved from the end of the name to the front of the key
    // change it.
    let numbers = (UInt64(collection.count), UInt64(key.count), revision, version)
    withUnsafeBytes(of: (numbers.0.littleEndian, numbers.1.littleEndian, numbers.2.littleEndian, numbers.3.littleEndian)) { crc.update($0) }
    crc.update(collection)
    crc.update(key)
    return crc
  }
}

/// The address of a record: its collection and its key.
///
/// Addresses are ordered by the UTF-8 bytes of the collection, then by those of the key.
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
    // The names of collections are compared as `RecordKey`, which compares bytes, because files are sorted by bytes and `String` compares
    // by Unicode rules.
    left.collection == right.collection ? left.key < right.key : RecordKey(left.collection) < RecordKey(right.collection)
  }
}

/// Records and tombstones that one call of ``StorageBackend/commit(_:)`` makes durable together.
public struct WriteBatch: Sendable {
  /// Records and tombstones in the order of their commits.
  ///
  /// If an address occurs more than once, the last record at this address is the one that the batch leaves in the store.
  public let records: [StoredRecord]
  /// Numbers of the commits in this batch, which start one above the store's newest commit and end at its next newest.
  public let commits: ClosedRange<UInt64>
  /// Kind of failure after which the batch must still be stored.
  public let durability: Durability

  /// Creates a batch.
  public init(records: [StoredRecord], commits: ClosedRange<UInt64>, durability: Durability = .durable) {
    self.records = records
    self.commits = commits
    self.durability = durability
  }
}

/// Commits that other processes made to a store after a revision, with the records that the store needs to catch up.
public struct ForeignCommits: Sendable {
  /// Number of the newest commit in the files, which is also the newest in memory after ``records`` are applied.
  public let commit: Revision
  /// Records and tombstones with later revisions than the requested one: each address once, in its newest state, in any order.
  public let records: [StoredRecord]
  /// Addresses of all records in the store, if tombstones after the requested revision may have been forgotten.
  ///
  /// A record whose address is missing from this set was deleted. The set is `nil` if ``records`` has a tombstone for every deletion.
  public let addresses: Set<RecordAddress>?

  /// Creates a value from the newest commit and the records that lead to it.
  public init(commit: Revision, records: [StoredRecord], addresses: Set<RecordAddress>? = nil) {
    self.commit = commit
    self.records = records
    self.addresses = addresses
  }
}
