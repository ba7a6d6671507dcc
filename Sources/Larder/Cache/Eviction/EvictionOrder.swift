/// An order of eviction by recency and frequency: S3-FIFO (Yang et al., SOSP 2023).
///
/// A new key comes into a small queue, a tenth of all. One that was used by the time it is at the front goes on to the
/// main queue; one that was not leaves, and is remembered as a ghost for a while: if it comes again, it goes to the main
/// queue at once. There, a key that was used goes round again, once for each of up to three uses. So what is asked for
/// once, as in a scan, crowds out only what is as new.
struct EvictionOrder<Key: Hashable & Sendable>: Sendable {
  /// The keys, with their uses since they came into their queue.
  private var uses: [Key: UInt8] = [:]
  private var small = KeyQueue<Key>()
  private var main = KeyQueue<Key>()
  private var ghosts = KeyQueue<Key>()

  var count: Int { uses.count }

  /// Notes a use.
  mutating func touch(_ key: Key) {
    guard let index = uses.index(forKey: key) else { return }
    if uses.values[index] < 3 { uses.values[index] += 1 }
  }

  /// Adds a key as the newest; one that is there counts as used.
  mutating func insert(_ key: Key) {
    if uses[key] != nil { return touch(key) }
    uses[key] = 0
    if ghosts.remove(key) { main.insert(key) } else { small.insert(key) }
  }

  /// Takes a key out; it leaves no ghost.
  mutating func remove(_ key: Key) {
    guard uses.removeValue(forKey: key) != nil else { return }
    small.remove(key)
    main.remove(key)
  }

  /// Takes out the key that is least worth keeping.
  mutating func evict() -> Key? {
    if small.count >= max(count / 10, 1), let key = evictFromSmall() { return key }
    return evictFromMain() ?? evictFromSmall()
  }

  private mutating func evictFromSmall() -> Key? {
    while let key = small.popFirst() {
      if uses[key] == 0 {
        uses[key] = nil
        remember(key)
        return key
      }
      uses[key] = 0
      main.insert(key)
    }
    return nil
  }

  private mutating func evictFromMain() -> Key? {
    while let key = main.popFirst() {
      guard let left = uses[key], left > 0 else {
        uses[key] = nil
        return key
      }
      uses[key] = left - 1
      main.insert(key)
    }
    return nil
  }

  /// Notes that a key has left the small queue: as many are remembered as there are keys.
  private mutating func remember(_ key: Key) {
    ghosts.insert(key)
    while ghosts.count > max(count, 1) { _ = ghosts.popFirst() }
  }
}
