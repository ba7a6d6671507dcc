/// The limits of a cache's size, which apply to its entries on disk and in memory.
///
/// If a new entry would exceed a limit, expired entries are removed first, then entries that were used rarely and long ago. After a launch,
/// the expiry of an entry may depend on one reading of the wall clock, which may be wrong. An entry whose expiry depends on one reading is
/// removed only if the new entry needs its room.
public struct EvictionPolicy: Hashable, Sendable {
  /// Largest number of entries, or `nil` for no limit.
  public let countLimit: Int?
  /// Largest size of all values together, in bytes of JSON, or `nil` for no limit.
  ///
  /// A fetched value that is larger than the byte limit by itself is returned and not stored.
  public let byteLimit: Int?

  /// Makes an eviction policy.
  ///
  /// A count limit or a byte limit below 1 becomes 1.
  public init(countLimit: Int? = nil, byteLimit: Int? = nil) {
    self.countLimit = countLimit.map { max($0, 1) }
    self.byteLimit = byteLimit.map { max($0, 1) }
  }

  /// An eviction policy without limits.
  ///
  /// Without limits, entries stay stored until a call removes them, even after they have expired.
  public static let none = EvictionPolicy()
}

/// The urgency with which the system asks for memory, for ``CachedRepository/relieve(_:)``.
public enum MemoryPressure: Hashable, Sendable {
  /// Removes the entries that have provably expired, by the monotonic clock or by more than one reading of the wall clock.
  case warning
  /// Does the same as `warning`, then removes half of the other entries.
  ///
  /// Entries that have expired by the wall clock are removed first, then entries that were used rarely and long ago.
  case critical
}
