public import Foundation

/// A record as backends see it: addressed, numbered, and opaque.
public struct StoredRecord: Sendable {
  /// The collection that holds it.
  public let collection: String
  /// Its key, unique within the collection.
  public let key: RecordKey
  /// The commit that last changed what it means.
  ///
  /// It is not above the commit that writes the record, and below it when a migration rewrites one; so a backend that has to tell what a
  /// commit brought looks at ``WriteBatch/commits``.
  public let revision: Revision
  /// The schema version of its value.
  public let schemaVersion: Int
  /// One JSON value in UTF-8 without a line feed, or `nil` for a tombstone: the record was deleted by this revision.
  public let value: Data?

  /// Makes a record.
  public init(collection: String, key: RecordKey, revision: Revision, schemaVersion: Int, value: Data?) {
    self.collection = collection
    self.key = key
    self.revision = revision
    self.schemaVersion = schemaVersion
    self.value = value
  }

  /// The record with a value in memory of its own, where the value was a part of a larger block.
  var detached: StoredRecord {
    StoredRecord(collection: collection, key: key, revision: revision, schemaVersion: schemaVersion, value: value.map { Data(Array($0)) })
  }

  /// The address of the record.
  public var address: RecordAddress { RecordAddress(collection: collection, key: key) }

  /// The checksum that backends store beside a record and compare when they read it.
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

  /// Returns the ``checksum`` of a record up to its value, which is still to be added.
  package static func checksum(
    _ collection: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer, revision: UInt64, schemaVersion: Int, hasValue: Bool
  ) -> CRC32C {
    var crc = CRC32C()
    let version = UInt64(bitPattern: Int64(schemaVersion)) &* 2 &+ (hasValue ? 1 : 0)
    let numbers = (UInt64(collection.count), UInt64(key.count), revision, version)
    withUnsafeBytes(of: (numbers.0.littleEndian, numbers.1.littleEndian, numbers.2.littleEndian, numbers.3.littleEndian)) { crc.update($0) }
    crc.update(collection)
    crc.update(key)
    return crc
  }
}

/// The address of a record: its collection and its key, ordered by the bytes of the first, then of the second.
public struct RecordAddress: Hashable, Comparable, Sendable {
  /// The collection.
  public let collection: String
  /// The key in it.
  public let key: RecordKey

  /// Makes an address.
  public init(collection: String, key: RecordKey) {
    self.collection = collection
    self.key = key
  }

  /// Whether the left address comes first: by the bytes of the collection, then of the key.
  public static func < (left: RecordAddress, right: RecordAddress) -> Bool {
    left.collection == right.collection ? left.key < right.key : RecordKey(left.collection) < RecordKey(right.collection)
  }
}

/// Records to be made durable together, by one call of ``StorageBackend/commit(_:)``.
public struct WriteBatch: Sendable {
  /// The records and tombstones in the order of their commits; an address may occur more than once, and the last one holds.
  public let records: [StoredRecord]
  /// The numbers of the commits in this batch: it starts one above the store's newest commit, and ends at its new newest.
  public let commits: ClosedRange<UInt64>
  /// The kind of failure that the batch must survive.
  public let durability: Durability

  /// Makes a batch.
  public init(records: [StoredRecord], commits: ClosedRange<UInt64>, durability: Durability = .durable) {
    self.records = records
    self.commits = commits
    self.durability = durability
  }
}

/// The commits of other processes to a store since a revision: all that it takes to catch up with them.
public struct ForeignCommits: Sendable {
  /// The store's newest commit, which what is here leads to.
  public let commit: Revision
  /// The records and tombstones of later revisions than the one asked about: each address once, as it is now, in any order.
  public let records: [StoredRecord]
  /// The addresses of all records, if tombstones after the revision asked about may have been forgotten: a record that is not among them
  /// was deleted.
  ///
  /// `nil` when ``records`` has a tombstone for every deletion.
  public let addresses: Set<RecordAddress>?

  /// Describes what was committed.
  public init(commit: Revision, records: [StoredRecord], addresses: Set<RecordAddress>? = nil) {
    self.commit = commit
    self.records = records
    self.addresses = addresses
  }
}
