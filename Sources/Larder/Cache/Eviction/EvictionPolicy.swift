/// The limits of a cache, on disk as in memory.
///
/// When a limit is passed, entries that are expired go first, then those that were used seldom and long ago. Of entries
/// that only one reading of the wall clock says are expired, as at the start of a process, no more go than there must:
/// the clock may be wrong.
public struct EvictionPolicy: Hashable, Sendable {
  /// The largest number of entries; `nil` for any number.
  public let countLimit: Int?
  /// The largest number of bytes of all values together, as JSON; `nil` for any number.
  ///
  /// A value that is larger by itself is served and not stored.
  public let byteLimit: Int?

  /// Makes a policy; a limit below 1 becomes 1.
  public init(countLimit: Int? = nil, byteLimit: Int? = nil) {
    self.countLimit = countLimit.map { max($0, 1) }
    self.byteLimit = byteLimit.map { max($0, 1) }
  }

  /// Keeps everything, expired entries included, until it is removed by a call.
  public static let none = EvictionPolicy()
}

/// The urgency with which the system asks for memory.
public enum MemoryPressure: Hashable, Sendable {
  /// Entries go that have expired by more than one reading of the wall clock.
  case warning
  /// As with `warning`, and then the half of the rest that has expired, or was used seldom and long ago.
  case critical
}
