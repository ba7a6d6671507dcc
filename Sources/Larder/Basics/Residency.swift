/// The place from which an open store reads its records: memory, or the storage with a bounded cache in memory.
///
/// The residency changes the cost of a store, and neither its answers nor its promises. Choose it for a store with
/// ``StoreOptions/residency``, and for one collection with the parameter `residency` of ``RepositorySchema``:
///
/// ```swift
/// let options = StoreOptions(residency: .onDisk(cache: .megabytes(16)))
/// let photos = RepositorySchema<Photo>("photos", residency: .onDisk(cache: .megabytes(8)))
/// ```
public enum Residency: Hashable, Sendable {
  /// Memory holds every record.
  ///
  /// Opening reads the whole store, and no later read reads the storage.
  case full
  /// The records stay in the storage, and each collection has a cache of this size.
  ///
  /// Opening reads the first records of each collection only, to find out whether they decode, and all records of a collection with a
  /// unique index that the storage does not have. A record is read from the storage when it is needed and is not in the cache. The cache
  /// counts a record as 256 bytes and twice its encoded bytes, which is an estimate of the memory that it takes. A record that counts more
  /// than a sixteenth of the cache is not kept in it.
  ///
  /// Memory also holds the changes since the collection last moved on to a newer commit of its storage. The collection moves on after the
  /// commit with which the changes are 4,096 records, or count more than a quarter of the cache and 1 MiB.
  ///
  /// An ordered or unique index of stored properties stays in the storage with `.exclusive` access. Memory has up to 16,384 of its keys:
  /// about 2 MB, and more with long texts. Every other index that a query has needed is in memory, without the values of its records.
  case onDisk(cache: ByteCount)
  /// The records stay in the storage if their values together are longer than the limit when the store opens, and otherwise memory holds
  /// them.
  ///
  /// A store on disk then has caches of 16 MB. ``OpenReport/residency`` says which residency the opening has chosen. A backend that cannot
  /// leave records in its storage is opened as with ``full``.
  case automatic(limit: ByteCount)

  /// Size of the cache of a collection whose records stay in the storage, or `nil` if memory holds its records.
  ///
  /// An `.automatic` that the opening has not decided yet counts as ``full``.
  var cache: ByteCount? { if case .onDisk(let cache) = self { cache } else { nil } }

  /// Size of the caches that `.automatic` chooses for a store on disk.
  static let automaticCache = ByteCount.megabytes(16)
}

/// A number of bytes, written with its unit, such as `.megabytes(16)`.
public struct ByteCount: Hashable, Comparable, Sendable {
  /// The number of bytes, at least 0.
  public let bytes: Int

  /// Makes a number of bytes, where a negative number becomes 0.
  public static func bytes(_ count: Int) -> ByteCount { ByteCount(bytes: max(count, 0)) }

  /// Makes a number of megabytes of 1,000,000 bytes each.
  ///
  /// A negative number becomes 0, and a number that does not fit becomes the largest one.
  public static func megabytes(_ count: Int) -> ByteCount {
    let (bytes, isTooLarge) = max(count, 0).multipliedReportingOverflow(by: 1_000_000)
    return ByteCount(bytes: isTooLarge ? .max : bytes)
  }

  /// True if the left number of bytes is smaller.
  public static func < (left: ByteCount, right: ByteCount) -> Bool { left.bytes < right.bytes }
}
