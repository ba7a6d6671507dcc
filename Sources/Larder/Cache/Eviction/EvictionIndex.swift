/// The entries of a bounded cache in the order of their eviction.
struct EvictionIndex<Key: Hashable & Codable & Sendable>: Sendable {
  struct Item: Sendable {
    let byteCount: Int
    /// The moment when it expires, by the monotonic clock, if the wall clock was right about its age.
    let expiry: Duration
    /// The moment when it has expired whatever the wall clock says; not before ``expiry``.
    let provenExpiry: Duration
    let recordKey: RecordKey
  }

  /// An entry that is to be removed, and the cause.
  struct Victim: Sendable {
    let key: Key
    let recordKey: RecordKey
    let cause: CacheStatistics.EvictionCause
  }

  private var order = EvictionOrder<Key>()
  private var items: [Key: Item] = [:]
  /// The entries by the moment at which it is proven that they have expired.
  private var proven = KeyQueue<Key>()
  /// The entries that expire by the wall clock before that is proven.
  private var doubtful = KeyQueue<Key>()
  /// `Int64`, because many entries of up to 2 GiB may be more than an `Int` of 32 bits holds.
  private var byteCount: Int64 = 0

  var count: Int { items.count }

  mutating func touch(_ key: Key) { order.touch(key) }

  mutating func remove(_ key: Key) {
    order.remove(key)
    _ = take(key)
  }

  /// Puts an entry in, and takes out what must go for it: never the entry itself.
  mutating func insert(_ key: Key, _ item: Item, _ policy: EvictionPolicy, now: Duration) -> [Victim] {
    _ = take(key)
    let victims = makeRoom(policy, for: item.byteCount, now)
    order.insert(key)
    items[key] = item
    byteCount += Int64(item.byteCount)
    proven.insert(key, at: item.provenExpiry)
    if item.expiry < item.provenExpiry { doubtful.insert(key, at: item.expiry) }
    return victims
  }

  /// Takes out what has certainly expired and then, if so much is asked, the half of the rest.
  mutating func relieve(_ pressure: MemoryPressure, now: Duration) -> [Victim] {
    var victims = takeExpired(now)
    guard pressure == .critical else { return victims }
    for _ in 0..<(count + 1) / 2 {
      if let victim = takeNext(.memoryPressure, now) { victims.append(victim) }
    }
    return victims
  }

  private mutating func makeRoom(_ policy: EvictionPolicy, for bytes: Int, _ now: Duration) -> [Victim] {
    guard excess(policy, bytes) != nil else { return [] }
    var victims = takeExpired(now)
    while let cause = excess(policy, bytes), let victim = takeNext(cause, now) { victims.append(victim) }
    return victims
  }

  private func excess(_ policy: EvictionPolicy, _ bytes: Int) -> CacheStatistics.EvictionCause? {
    guard count > 0 else { return nil }
    if let limit = policy.countLimit, count + 1 > limit { return .count }
    if let limit = policy.byteLimit, byteCount + Int64(bytes) > limit { return .bytes }
    return nil
  }

  private mutating func takeExpired(_ now: Duration) -> [Victim] {
    var victims: [Victim] = []
    while let key = proven.popFirst(by: now), let victim = victim(key, .expired) { victims.append(victim) }
    return victims
  }

  /// Takes out what has expired by the wall clock, or else what is least worth keeping.
  private mutating func takeNext(_ cause: CacheStatistics.EvictionCause, _ now: Duration) -> Victim? {
    if let key = doubtful.popFirst(by: now) { return victim(key, cause) }
    while let key = order.evict() {
      // The one that comes is in the order only if it was there before; it comes again, as new.
      if let victim = victim(key, cause) { return victim }
    }
    return nil
  }

  /// Takes an entry out that is to be removed.
  private mutating func victim(_ key: Key, _ cause: CacheStatistics.EvictionCause) -> Victim? {
    order.remove(key)
    return take(key).map { Victim(key: key, recordKey: $0.recordKey, cause: cause) }
  }

  /// Takes out everything but the place in the order, which a key that comes again keeps.
  private mutating func take(_ key: Key) -> Item? {
    guard let item = items.removeValue(forKey: key) else { return nil }
    byteCount -= Int64(item.byteCount)
    proven.remove(key)
    doubtful.remove(key)
    return item
  }
}
