/// Entries that storage has refused, for as long as it does: the newest hundred, and no more than may be stored.
struct UnsavedEntries<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  private struct Element: Sendable {
    let entry: CacheEntry<Key, Value>
    let serial: UInt64
  }

  static var limit: Int { 100 }
  private var elements: [Key: Element] = [:]
  /// The number of the newest entry that was inserted.
  private(set) var serial: UInt64 = 0
  private(set) var byteCount = 0

  /// The number of entries, apart from the dictionary, whose type is looked up at each question: every hit asks.
  private var count = 0

  @inline(__always) var isEmpty: Bool { count == 0 }
  subscript(key: Key) -> CacheEntry<Key, Value>? { isEmpty ? nil : elements[key]?.entry }

  /// Inserts an entry, and removes the oldest beyond the limits, which are those of storage too.
  /// - Returns: The entry; of no version if it is beyond the limits itself.
  mutating func insert(_ stored: CachedEntry<Key, Value>, _ uptime: Duration, _ policy: EvictionPolicy) -> CacheEntry<Key, Value> {
    remove(stored.key)
    serial += 1
    let entry = CacheEntry(stored, .unsaved(serial), nil, uptime: uptime)
    elements[stored.key] = Element(entry: entry, serial: serial)
    count += 1
    byteCount += stored.byteCount
    let (count, bytes) = (min(policy.countLimit ?? Self.limit, Self.limit), policy.byteLimit ?? .max)
    while elements.count > count || byteCount > bytes, let oldest = elements.min(by: { $0.value.serial < $1.value.serial }) {
      remove(oldest.key)
    }
    return elements[stored.key] == nil ? CacheEntry(stored, .none, nil, uptime: uptime) : entry
  }

  mutating func remove(_ key: Key, upTo serial: UInt64 = .max) {
    guard let element = elements[key], element.serial <= serial else { return }
    elements[key] = nil
    count -= 1
    byteCount -= element.entry.stored.byteCount
  }

  mutating func removeAll(upTo serial: UInt64) {
    for key in elements.keys { remove(key, upTo: serial) }
  }
}
