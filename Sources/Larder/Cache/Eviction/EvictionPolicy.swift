/// The limits of a cache's size, which hold on disk as in memory.
///
/// Over a limit, expired entries are removed first, then entries that were used rarely and long ago. The wall clock may be wrong, so an
/// entry is removed no earlier than needed if only one reading of the wall clock says that it has expired, as after a launch.
public struct EvictionPolicy: Hashable, Sendable {
  /// Largest number of entries, or `nil` for no limit.
  public let countLimit: Int?
  /// Largest size of all values together, in bytes of JSON, or `nil` for no limit.
  ///
  /// A value that is larger by itself is returned and not stored.
  public let byteLimit: Int?

  /// Makes a policy.
  ///
  /// A limit below 1 becomes 1.
  public init(countLimit: Int? = nil, byteLimit: Int? = nil) {
    self.countLimit = countLimit.map { max($0, 1) }
    self.byteLimit = byteLimit.map { max($0, 1) }
  }

  /// A policy without limits.
  ///
  /// Entries stay until a call removes them, expired entries too.
  public static let none = EvictionPolicy()
}

/// Urgency with which the system asks for memory.
public enum MemoryPressure: Hashable, Sendable {
  /// Removes the entries whose expiry is proven by more than one reading of the wall clock.
  case warning
  /// Does the same as `warning`, then removes half of the other entries.
  ///
  /// The removed half has expired, or was used rarely and long ago.
  case critical
}
