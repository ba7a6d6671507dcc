/// What a bounded cache holds, and what goes next.
struct EvictionIndex<Key: Hashable & Codable & Sendable>: Sendable {
  struct Item: Sendable {
    let byteCount: Int
    /// When it expires, by the monotonic clock.
    let expiry: Duration
    let recordKey: RecordKey
  }

  /// What is to be removed, and why.
  struct Victim: Sendable {
    let key: Key
    let recordKey: RecordKey
    let cause: CacheStatistics.EvictionCause
  }

  private var order = EvictionOrder<Key>()
  private var items: [Key: Item] = [:]
  private(set) var byteCount = 0
  /// How many came since what is expired was last looked for.
  private var arrivals = 0

  var count: Int { items.count }

  mutating func touch(_ key: Key) { order.touch(key) }

  mutating func remove(_ key: Key) {
    guard let item = items.removeValue(forKey: key) else { return }
    byteCount -= item.byteCount
    order.remove(key)
  }

  /// Puts an entry in, and takes out what must go for it: never the entry itself.
  mutating func insert(_ key: Key, _ item: Item, _ policy: EvictionPolicy, now: Duration) -> [Victim] {
    if let old = items.removeValue(forKey: key) { byteCount -= old.byteCount }
    let victims = makeRoom(policy, for: item.byteCount, now)
    order.insert(key)
    items[key] = item
    byteCount += item.byteCount
    arrivals += 1
    return victims
  }

  /// Takes out what is expired and then, if so much is asked, the half of the rest.
  mutating func relieve(_ pressure: MemoryPressure, now: Duration) -> [Victim] {
    var victims = takeExpired(now)
    guard pressure == .critical else { return victims }
    for _ in 0..<(count + 1) / 2 {
      if let victim = takeNext(.memoryPressure) { victims.append(victim) }
    }
    return victims
  }

  private mutating func makeRoom(_ policy: EvictionPolicy, for bytes: Int, _ now: Duration) -> [Victim] {
    guard excess(policy, bytes) != nil else { return [] }
    var victims: [Victim] = []
    // Expired entries are searched when as many came as a search has to look at, so that a search costs each of them a constant.
    if arrivals >= count / 2 {
      arrivals = 0
      victims = takeExpired(now)
    }
    while let cause = excess(policy, bytes) {
      guard let next = order.evict() else { break }
      // The one that comes is in the order only if it was there before; it comes again, as new.
      guard let item = items.removeValue(forKey: next) else { continue }
      byteCount -= item.byteCount
      victims.append(Victim(key: next, recordKey: item.recordKey, cause: item.expiry <= now ? .expired : cause))
    }
    return victims
  }

  private func excess(_ policy: EvictionPolicy, _ bytes: Int) -> CacheStatistics.EvictionCause? {
    guard count > 0 else { return nil }
    if let limit = policy.countLimit, count + 1 > limit { return .count }
    if let limit = policy.byteLimit, byteCount + bytes > limit { return .bytes }
    return nil
  }

  private mutating func takeExpired(_ now: Duration) -> [Victim] {
    let expired = items.filter { $0.value.expiry <= now }
    for key in expired.keys { remove(key) }
    return expired.map { Victim(key: $0.key, recordKey: $0.value.recordKey, cause: .expired) }
  }

  private mutating func takeNext(_ cause: CacheStatistics.EvictionCause) -> Victim? {
    guard let key = order.evict(), let item = items.removeValue(forKey: key) else { return nil }
    byteCount -= item.byteCount
    return Victim(key: key, recordKey: item.recordKey, cause: cause)
  }
}
