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
  private var items: [Key: (item: Item, serial: UInt64)] = [:]
  private var proven = ExpiryQueue<Key>()
  /// The entries that expire by the wall clock before that is proven.
  private var doubtful = ExpiryQueue<Key>()
  private(set) var byteCount = 0
  private var serial: UInt64 = 0

  var count: Int { items.count }

  mutating func touch(_ key: Key) { order.touch(key) }

  mutating func remove(_ key: Key) {
    if take(key) != nil { order.remove(key) }
  }

  private mutating func take(_ key: Key) -> Item? {
    guard let item = items.removeValue(forKey: key)?.item else { return nil }
    byteCount -= item.byteCount
    return item
  }

  /// Puts an entry in, and takes out what must go for it: never the entry itself.
  mutating func insert(_ key: Key, _ item: Item, _ policy: EvictionPolicy, now: Duration) -> [Victim] {
    _ = take(key)
    let victims = makeRoom(policy, for: item.byteCount, now)
    order.insert(key)
    serial += 1
    items[key] = (item, serial)
    byteCount += item.byteCount
    proven.insert(key, at: item.provenExpiry, serial)
    if item.expiry < item.provenExpiry { doubtful.insert(key, at: item.expiry, serial) }
    closeUp()
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
    if let limit = policy.byteLimit, byteCount + bytes > limit { return .bytes }
    return nil
  }

  private mutating func takeExpired(_ now: Duration) -> [Victim] {
    var victims: [Victim] = []
    while let key = Self.next(&proven, items, now), let item = take(key) {
      order.remove(key)
      victims.append(Victim(key: key, recordKey: item.recordKey, cause: .expired))
    }
    return victims
  }

  /// Takes out what has expired by the wall clock, or else what is least worth keeping.
  private mutating func takeNext(_ cause: CacheStatistics.EvictionCause, _ now: Duration) -> Victim? {
    if let key = Self.next(&doubtful, items, now), let item = take(key) {
      order.remove(key)
      return Victim(key: key, recordKey: item.recordKey, cause: cause)
    }
    while let key = order.evict() {
      // The one that comes is in the order only if it was there before; it comes again, as new.
      guard let item = take(key) else { continue }
      return Victim(key: key, recordKey: item.recordKey, cause: cause)
    }
    return nil
  }

  private static func next(_ queue: inout ExpiryQueue<Key>, _ items: [Key: (item: Item, serial: UInt64)], _ now: Duration) -> Key? {
    while let first = queue.popFirst(by: now) {
      if items[first.key]?.serial == first.serial { return first.key }
    }
    return nil
  }

  /// Drops what the queues have of entries that are gone, once that is the larger part.
  private mutating func closeUp() {
    let limit = 2 * items.count + 64
    let items = items
    if proven.count > limit { proven.removeAll { items[$0.key]?.serial != $0.serial } }
    if doubtful.count > limit { doubtful.removeAll { items[$0.key]?.serial != $0.serial } }
  }
}
