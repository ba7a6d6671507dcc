// Eviction/ holds the order in which entries of a cache with limits are removed. Its main type is `EvictionIndex`.
// Invariant: An index has one item for each stored entry, and never evicts the entry that it makes room for.
// Called by `CachedRepository+Removing.swift` on the store's executor, and by answers, which count as uses.

/// The entries of a cache with limits, in the order of their eviction.
struct EvictionIndex<Key: Hashable & Codable & Sendable>: Sendable {
  /// Properties of an entry that decide when the entry is evicted.
  struct Item: Sendable {
    let byteCount: Int
    /// Moment of the monotonic clock at which the entry expires, if the wall clock was right about its age.
    let expiry: Duration
    /// Moment at which the expiry is certain without relying on one reading of the wall clock.
    ///
    /// The proven moment is never before ``expiry``.
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
  /// Entries in the order of their ``Item/provenExpiry``.
  private var proven = KeyQueue<Key>()
  /// Entries whose ``Item/expiry`` is earlier than their ``Item/provenExpiry``, in the order of ``Item/expiry``.
  private var doubtful = KeyQueue<Key>()
  /// Size of all entries in bytes.
  ///
  /// The sum is an `Int64`, because entries of up to 2 GiB each may add up to more than an `Int` of 32 bits holds.
  private var byteCount: Int64 = 0

  var count: Int { items.count }

  /// Counts a use of an entry, so that the entry is evicted later.
  mutating func touch(_ key: Key) { order.touch(key) }

  /// Removes an entry whose record was deleted.
  mutating func remove(_ key: Key) {
    order.remove(key)
    _ = removeItem(of: key)
  }

  /// Inserts an entry, and returns the victims that make room for the new entry.
  ///
  /// The new entry itself is never a victim.
  mutating func insert(_ key: Key, _ item: Item, policy: EvictionPolicy, now: Duration) -> [Victim] {
    // The old item of the key is removed before room is made, so that an entry that is stored again does not count twice.
    _ = removeItem(of: key)
    let victims = makeRoom(for: item.byteCount, policy: policy, now: now)
    order.insert(key)
    items[key] = item
    byteCount += Int64(item.byteCount)
    proven.insert(key, at: item.provenExpiry)
    // If `expiry` equals `provenExpiry`, the queue `proven` already lists the entry at this moment.
    if item.expiry < item.provenExpiry { doubtful.insert(key, at: item.expiry) }
    return victims
  }

  /// Removes the entries whose expiry is proven, and returns them.
  ///
  /// Under critical pressure, half of the remaining entries are removed too.
  mutating func relieve(_ pressure: MemoryPressure, now: Duration) -> [Victim] {
    var victims = takeExpired(now)
    guard pressure == .critical else { return victims }
    // Half is rounded up, so that a cache with one entry gives that entry up.
    for _ in 0..<(count + 1) / 2 {
      if let victim = evictNext(.memoryPressure, now) { victims.append(victim) }
    }
    return victims
  }

  /// Removes entries until an entry of `bytes` fits within the limits, and returns the removed entries.
  private mutating func makeRoom(for bytes: Int, policy: EvictionPolicy, now: Duration) -> [Victim] {
    guard excess(policy, bytes) != nil else { return [] }
    var victims = takeExpired(now)
    while let cause = excess(policy, bytes), let victim = evictNext(cause, now) { victims.append(victim) }
    return victims
  }

  /// Returns the limit that one more entry of `bytes` would pass, or `nil` if the entry fits.
  private func excess(_ policy: EvictionPolicy, _ bytes: Int) -> CacheStatistics.EvictionCause? {
    // An empty cache has room for any entry: `commitEntry` refuses an entry that by itself is larger than the byte limit.
    guard count > 0 else { return nil }
    if let limit = policy.countLimit, count + 1 > limit { return .count }
    if let limit = policy.byteLimit, byteCount + Int64(bytes) > limit { return .bytes }
    return nil
  }

  /// Removes the entries whose expiry is proven, and returns them as victims.
  private mutating func takeExpired(_ now: Duration) -> [Victim] {
    var victims: [Victim] = []
    while let key = proven.popFirst(by: now), let victim = victim(key, .expired) { victims.append(victim) }
    return victims
  }

  /// Removes an entry that has expired by the wall clock, or else the entry that the eviction order gives up first.
  private mutating func evictNext(_ cause: CacheStatistics.EvictionCause, _ now: Duration) -> Victim? {
    if let key = doubtful.popFirst(by: now) { return victim(key, cause) }
    while let key = order.evict() {
      // A key that is in the order and has no item belongs to the entry that is being stored again. `insert` adds this key to the order
      // anew.
      if let victim = victim(key, cause) { return victim }
    }
    return nil
  }

  /// Removes an entry and returns it as a victim.
  private mutating func victim(_ key: Key, _ cause: CacheStatistics.EvictionCause) -> Victim? {
    order.remove(key)
    return removeItem(of: key).map { Victim(key: key, recordKey: $0.recordKey, cause: cause) }
  }

  /// Removes the item of a key, and leaves the key's place in the eviction order to an entry that is stored again.
  private mutating func removeItem(of key: Key) -> Item? {
    guard let item = items.removeValue(forKey: key) else { return nil }
    byteCount -= Int64(item.byteCount)
    proven.remove(key)
    doubtful.remove(key)
    return item
  }
}
