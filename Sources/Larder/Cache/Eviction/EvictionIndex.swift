// Eviction/ holds the order in which entries of a cache with limits are removed. The main type of the folder Eviction/ is `EvictionIndex`.
// Invariant: An index has one item for each stored entry, and never evicts the new entry for which it evicts other entries.
// Called by `CachedRepository+Removing.swift` on the store's executor, and by each answer of the cache, to count a use of the entry.

/// The entries of a cache with limits, in the order of their eviction.
struct EvictionIndex<Key: Hashable & Codable & Sendable>: Sendable {
  /// Properties of an entry that decide when the entry is evicted.
  struct Item: Sendable {
    let byteCount: Int
    /// Moment of the monotonic clock at which the entry expires, if the wall clock was right about the entry's age.
    let expiry: Duration
    /// Moment of the monotonic clock at which the entry has certainly expired, even if one reading of the wall clock was wrong.
    ///
    /// `provenExpiry` is never before ``expiry``.
    let provenExpiry: Duration
    let recordKey: RecordKey
  }

  /// An entry to evict, with the cause of its eviction.
  struct Victim: Sendable {
    let key: Key
    let recordKey: RecordKey
    let cause: CacheStatistics.EvictionCause
  }

  private var order = EvictionOrder<Key>()
  private var items: [Key: Item] = [:]
  /// Entries in the order of their ``Item/provenExpiry``.
  private var proven = KeyQueue<Key>()
  /// Entries whose ``Item/expiry`` is earlier than their ``Item/provenExpiry``, in the order of ``Item/expiry``.
  private var doubtful = KeyQueue<Key>()
  /// Size of all entries of the index in bytes.
  ///
  /// The sum is an `Int64`, because entries of up to 2 GiB each may add up to more than an `Int` of 32 bits holds.
  private var byteCount: Int64 = 0

  var count: Int { items.count }

  /// Counts a use of an entry, so that the entry is evicted later than unused entries.
  mutating func touch(_ key: Key) { order.touch(key) }

  /// Removes an entry from the index, because its record was deleted.
  mutating func remove(_ key: Key) {
    order.remove(key)
    _ = removeItem(of: key)
  }

  /// Inserts an entry, and returns the entries to evict so that the new entry fits within the limits.
  ///
  /// The new entry itself is never evicted.
  mutating func insert(_ key: Key, _ item: Item, policy: EvictionPolicy, now: Duration) -> [Victim] {
    // The old item of the key is removed before other entries are evicted, so that an entry that is stored again does not count twice.
    _ = removeItem(of: key)
    let victims = makeRoom(for: item.byteCount, policy: policy, now: now)
    order.insert(key)
    items[key] = item
    byteCount += Int64(item.byteCount)
    proven.insert(key, at: item.provenExpiry)
    // If `expiry` equals `provenExpiry`, the queue `proven` already holds the entry at the moment of its expiry.
    if item.expiry < item.provenExpiry { doubtful.insert(key, at: item.expiry) }
    return victims
  }

  /// Removes the entries that have provably expired, and returns them as entries to evict.
  ///
  /// Under critical pressure, half of the remaining entries are removed too.
  mutating func relieve(_ pressure: MemoryPressure, now: Duration) -> [Victim] {
    var victims = takeExpired(now)
    guard pressure == .critical else { return victims }
    // Half the number of entries is rounded up, so that a cache with one entry evicts this entry.
    for _ in 0..<(count + 1) / 2 {
      if let victim = evictNext(.memoryPressure, now) { victims.append(victim) }
    }
    return victims
  }

  /// Removes entries until a new entry of `bytes` bytes fits within the limits, and returns the removed entries.
  private mutating func makeRoom(for bytes: Int, policy: EvictionPolicy, now: Duration) -> [Victim] {
    guard excess(policy, bytes) != nil else { return [] }
    var victims = takeExpired(now)
    while let cause = excess(policy, bytes), let victim = evictNext(cause, now) { victims.append(victim) }
    return victims
  }

  /// Returns which limit one more entry of `bytes` bytes would exceed, or `nil` if the entry fits.
  private func excess(_ policy: EvictionPolicy, _ bytes: Int) -> CacheStatistics.EvictionCause? {
    // Any entry fits into an empty cache, because `commitEntry` refuses an entry that by itself is larger than the byte limit.
    guard count > 0 else { return nil }
    if let limit = policy.countLimit, count + 1 > limit { return .count }
    if let limit = policy.byteLimit, byteCount + Int64(bytes) > limit { return .bytes }
    return nil
  }

  /// Removes the entries that have provably expired at the moment `now`, and returns them.
  private mutating func takeExpired(_ now: Duration) -> [Victim] {
    var victims: [Victim] = []
    while let key = proven.popFirst(by: now), let victim = victim(key, .expired) { victims.append(victim) }
    return victims
  }

  /// Removes an entry that has expired by the wall clock, or else the entry that the eviction order evicts first.
  private mutating func evictNext(_ cause: CacheStatistics.EvictionCause, _ now: Duration) -> Victim? {
    if let key = doubtful.popFirst(by: now) { return victim(key, cause) }
    while let key = order.evict() {
      // A key that is in the eviction order and has no item belongs to the entry that is being stored again. `insert` adds the key of that
      // entry to the eviction order anew.
      if let victim = victim(key, cause) { return victim }
    }
    return nil
  }

  /// Removes an entry from the index, and returns it with the cause of its eviction.
  private mutating func victim(_ key: Key, _ cause: CacheStatistics.EvictionCause) -> Victim? {
    order.remove(key)
    return removeItem(of: key).map { Victim(key: key, recordKey: $0.recordKey, cause: cause) }
  }

  /// Removes the item of a key, but keeps the key in the eviction order for an entry that is stored again.
  private mutating func removeItem(of key: Key) -> Item? {
    guard let item = items.removeValue(forKey: key) else { return nil }
    byteCount -= Int64(item.byteCount)
    proven.remove(key)
    doubtful.remove(key)
    return item
  }
}

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
