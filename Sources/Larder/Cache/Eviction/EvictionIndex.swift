// Eviction/ holds the order in which entries of a cache with limits are removed. Its main type is `EvictionIndex`.
// Invariant: An index has one item for each stored entry, and never evicts the entry that it makes room for.
// Called by `CachedRepository+Removing.swift` on the store's executor, and by answers, which count as uses.

/// The entries of a cache with limits, in the order of their eviction.
struct EvictionIndex<Key: Hashable & Codable & Sendable>: Sendable {
  /// Facts about an entry that decide when it is evicted.
  struct Item: Sendable {
    let byteCount: Int
    /// Moment of its expiry by the monotonic clock, if the wall clock was right about its age.
    let expiry: Duration
    /// Moment of its proven expiry, which does not depend on one reading of the wall clock and is not before ``expiry``.
    let provenExpiry: Duration
    let recordKey: RecordKey
  }

  /// An entry to evict, with the cause.
  struct Victim: Sendable {
    let key: Key
    let recordKey: RecordKey
    let cause: CacheStatistics.EvictionCause
  }

  private var order = EvictionOrder<Key>()
  private var items: [Key: Item] = [:]
  /// Entries in the order of their proven expiry.
  private var proven = KeyQueue<Key>()
  /// Entries that expire by the wall clock before that is proven.
  private var doubtful = KeyQueue<Key>()
  /// Size of all entries.
  ///
  /// `Int64`, because entries of up to 2 GiB each may sum to more than an `Int` of 32 bits holds.
  private var byteCount: Int64 = 0

  var count: Int { items.count }

  /// Counts a use of an entry, which keeps it for longer.
  mutating func touch(_ key: Key) { order.touch(key) }

  /// Removes an entry that was deleted.
  mutating func remove(_ key: Key) {
    order.remove(key)
    _ = removeItem(of: key)
  }

  /// Inserts an entry, and returns the victims that make room for it.
  ///
  /// The entry itself is never one of them.
  mutating func insert(_ key: Key, _ item: Item, policy: EvictionPolicy, now: Duration) -> [Victim] {
    // Before making room, so that an entry that is stored again does not count twice.
    _ = removeItem(of: key)
    let victims = makeRoom(for: item.byteCount, policy: policy, now: now)
    order.insert(key)
    items[key] = item
    byteCount += Int64(item.byteCount)
    proven.insert(key, at: item.provenExpiry)
    // Otherwise `proven` has the entry at the same moment, and it needs no second place.
    if item.expiry < item.provenExpiry { doubtful.insert(key, at: item.expiry) }
    return victims
  }

  /// Removes the entries that have certainly expired.
  ///
  /// Under critical pressure, also removes half of the others.
  mutating func relieve(_ pressure: MemoryPressure, now: Duration) -> [Victim] {
    var victims = takeExpired(now)
    guard pressure == .critical else { return victims }
    // Rounded up, so that a cache of one entry gives it up.
    for _ in 0..<(count + 1) / 2 {
      if let victim = evictNext(.memoryPressure, now) { victims.append(victim) }
    }
    return victims
  }

  /// Removes entries until one of `bytes` fits within the limits, and returns them.
  private mutating func makeRoom(for bytes: Int, policy: EvictionPolicy, now: Duration) -> [Victim] {
    guard excess(policy, bytes) != nil else { return [] }
    var victims = takeExpired(now)
    while let cause = excess(policy, bytes), let victim = evictNext(cause, now) { victims.append(victim) }
    return victims
  }

  /// Returns the limit that one more entry of `bytes` would pass, or `nil` if it fits.
  private func excess(_ policy: EvictionPolicy, _ bytes: Int) -> CacheStatistics.EvictionCause? {
    // A first entry always fits: one that is larger than the limit was refused before.
    guard count > 0 else { return nil }
    if let limit = policy.countLimit, count + 1 > limit { return .count }
    if let limit = policy.byteLimit, byteCount + Int64(bytes) > limit { return .bytes }
    return nil
  }

  /// Removes the entries whose expiry is proven.
  private mutating func takeExpired(_ now: Duration) -> [Victim] {
    var victims: [Victim] = []
    while let key = proven.popFirst(by: now), let victim = victim(key, .expired) { victims.append(victim) }
    return victims
  }

  /// Removes an entry that has expired by the wall clock, or else the one that is least worth keeping.
  private mutating func evictNext(_ cause: CacheStatistics.EvictionCause, _ now: Duration) -> Victim? {
    if let key = doubtful.popFirst(by: now) { return victim(key, cause) }
    while let key = order.evict() {
      // A key without an item is the one that is being stored again. It keeps no place here, and returns as a new key.
      if let victim = victim(key, cause) { return victim }
    }
    return nil
  }

  /// Removes an entry and returns it as a victim.
  private mutating func victim(_ key: Key, _ cause: CacheStatistics.EvictionCause) -> Victim? {
    order.remove(key)
    return removeItem(of: key).map { Victim(key: key, recordKey: $0.recordKey, cause: cause) }
  }

  /// Removes the item of a key but not its place in the order, which an entry that is stored again keeps.
  private mutating func removeItem(of key: Key) -> Item? {
    guard let item = items.removeValue(forKey: key) else { return nil }
    byteCount -= Int64(item.byteCount)
    proven.remove(key)
    doubtful.remove(key)
    return item
  }
}
