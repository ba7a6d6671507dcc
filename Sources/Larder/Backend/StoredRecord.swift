public import Foundation

/// A stored record: its address, revision, schema version and encoded value, which a backend does not decode.
public struct StoredRecord: Sendable {
  /// Name of the collection that holds the record.
  public let collection: String
  /// Key of the record, unique within its collection.
  public let key: RecordKey
  /// Commit that last changed the record's meaning.
  ///
  /// It is never above the commit that writes the record. It is below that commit when a migration rewrites the record. To find the records
  /// that a commit wrote, use ``WriteBatch/commits``.
  public let revision: Revision
  /// Schema version of the value.
  public let schemaVersion: Int
  /// One JSON value in UTF-8 without a line feed, or `nil` for a tombstone, whose record this revision deleted.
  public let value: Data?

  /// Creates a record or, without a value, a tombstone.
  public init(collection: String, key: RecordKey, revision: Revision, schemaVersion: Int, value: Data?) {
    self.collection = collection
    self.key = key
    self.revision = revision
    self.schemaVersion = schemaVersion
    self.value = value
  }

  /// Copy of the record with bytes of its own, so that its value keeps no larger block in memory.
  var detached: StoredRecord {
    StoredRecord(collection: collection, key: key, revision: revision, schemaVersion: schemaVersion, value: value.map { Data(Array($0)) })
  }

  /// Collection and key of the record.
  public var address: RecordAddress { RecordAddress(collection: collection, key: key) }

  /// Checksum that backends store beside a record and compare when they read it.
  ///
  /// It is the CRC32C of, in this order: the length of the collection's name and of the key (eight bytes each), the revision, twice the
  /// schema version plus one if there is a value (eight bytes each, all least significant byte first), the name, the key and the value.
  /// Every backend uses this one formula, so that a record keeps its checksum when it moves between backends.
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

  /// Returns the ``checksum`` of a record except for its value, whose bytes the caller adds.
  package static func checksum(
    _ collection: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer, revision: UInt64, schemaVersion: Int, hasValue: Bool
  ) -> CRC32C {
    var crc = CRC32C()
    let version = UInt64(bitPattern: Int64(schemaVersion)) &* 2 &+ (hasValue ? 1 : 0)
    // The lengths come first, so that bytes moved from the name to the key change the checksum.
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

  /// True if the left address is smaller by the bytes of its collection, then of its key.
  public static func < (left: RecordAddress, right: RecordAddress) -> Bool {
    // `String` compares by Unicode rules. Files are sorted by bytes, as `RecordKey` compares.
    left.collection == right.collection ? left.key < right.key : RecordKey(left.collection) < RecordKey(right.collection)
  }
}

/// Records and tombstones that one call of ``StorageBackend/commit(_:)`` makes durable together.
public struct WriteBatch: Sendable {
  /// Records and tombstones in the order of their commits.
  ///
  /// If an address occurs more than once, its last record holds.
  public let records: [StoredRecord]
  /// Numbers of the commits in this batch, which start one above the store's newest commit and end at its next newest.
  public let commits: ClosedRange<UInt64>
  /// Kind of failure that the batch must survive.
  public let durability: Durability

  /// Creates a batch.
  public init(records: [StoredRecord], commits: ClosedRange<UInt64>, durability: Durability = .durable) {
    self.records = records
    self.commits = commits
    self.durability = durability
  }
}

/// The commits that other processes made to a store since a revision, as needed to catch up with them.
public struct ForeignCommits: Sendable {
  /// Newest commit of the store, which these records lead to.
  public let commit: Revision
  /// Records and tombstones with later revisions than the requested one: each address once, in its newest state, in any order.
  public let records: [StoredRecord]
  /// Addresses of all records in the store, if tombstones after the requested revision may have been forgotten.
  ///
  /// A record that is not among them was deleted. `nil` if ``records`` has a tombstone for every deletion.
  public let addresses: Set<RecordAddress>?

  /// Creates the description of some commits.
  public init(commit: Revision, records: [StoredRecord], addresses: Set<RecordAddress>? = nil) {
    self.commit = commit
    self.records = records
    self.addresses = addresses
  }
}
