/// An order of eviction by recency and frequency, S3-FIFO (Yang et al., SOSP 2023).
///
/// A new key enters a small queue, which holds a tenth of all keys. At its front, a key that was used moves to the main queue. A key that
/// was not used is evicted and remembered for a while as a *ghost*: if it comes back, it enters the main queue at once. At the front of the
/// main queue, a used key goes to the back again, once for each of up to three uses. So keys that are used once, as in a scan, only evict
/// each other.
struct EvictionOrder<Key: Hashable & Sendable>: Sendable {
  /// Uses of each key since it entered its queue.
  private var uses: [Key: UInt8] = [:]
  private var small = KeyQueue<Key>()
  private var main = KeyQueue<Key>()
  private var ghosts = KeyQueue<Key>()

  var count: Int { uses.count }

  /// Counts a use of a key.
  mutating func touch(_ key: Key) {
    guard let index = uses.index(forKey: key) else { return }
    // At most three, as in the paper. A counter without a limit would keep keys that were popular long ago.
    if uses.values[index] < 3 { uses.values[index] += 1 }
  }

  /// Adds a key as the newest one.
  ///
  /// A key that is there counts as used.
  mutating func insert(_ key: Key) {
    if uses[key] != nil { return touch(key) }
    uses[key] = 0
    if ghosts.remove(key) { main.insert(key) } else { small.insert(key) }
  }

  /// Removes a key without leaving a ghost.
  mutating func remove(_ key: Key) {
    guard uses.removeValue(forKey: key) != nil else { return }
    small.remove(key)
    main.remove(key)
  }

  /// Removes the key that is least worth keeping, and returns it.
  mutating func evict() -> Key? {
    // From the small queue only above its share of a tenth, as in the paper.
    if small.count >= max(count / 10, 1), let key = evictFromSmall() { return key }
    return evictFromMain() ?? evictFromSmall()
  }

  /// Evicts the first unused key of the small queue.
  ///
  /// Used keys before it move to the main queue.
  private mutating func evictFromSmall() -> Key? {
    while let key = small.popFirst() {
      // One use is enough to stay. The paper asks for two, but in a small cache that evicts an entry right after its first use.
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

  /// Evicts the first key of the main queue without uses left.
  ///
  /// Each key before it goes to the back with one use less.
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

  /// Remembers a key that has left the small queue as a ghost.
  ///
  /// There are at most as many ghosts as keys.
  private mutating func remember(_ key: Key) {
    ghosts.insert(key)
    // Bounded, or a scan would add ghosts without end.
    while ghosts.count > max(count, 1) { _ = ghosts.popFirst() }
  }
}

/// A queue of keys with moments.
///
/// The key with the earliest moment comes out first, and of equal moments the key that entered first.
///
/// Without moments it is a queue in the order of arrival. It holds a key once. Each call costs O(log n).
struct KeyQueue<Key: Hashable & Sendable>: Sendable {
  private struct Position: Comparable, Sendable {
    let moment: Duration
    let serial: UInt64

    static func < (left: Position, right: Position) -> Bool {
      (left.moment, left.serial) < (right.moment, right.serial)
    }
  }

  private struct Element: TreeEntry {
    typealias Summary = NoSummary<Element>

    let key: Position
    let queued: Key
  }

  private var elements = PersistentTree<Element>()
  private var positions: [Key: Position] = [:]
  private var serial: UInt64 = 0

  var count: Int { positions.count }

  /// Inserts a key, or moves it if it is there.
  mutating func insert(_ key: Key, at moment: Duration = .zero) {
    remove(key)
    serial += 1
    // The serial tells two keys of one moment apart, which would otherwise be one element of the tree.
    let position = Position(moment: moment, serial: serial)
    positions[key] = position
    elements.insert(Element(key: position, queued: key))
  }

  /// Removes a key, and returns whether it was there.
  @discardableResult mutating func remove(_ key: Key) -> Bool {
    guard let position = positions.removeValue(forKey: key) else { return false }
    elements.remove(position)
    return true
  }

  /// Removes and returns the earliest key if its moment has come.
  mutating func popFirst(by now: Duration = .zero) -> Key? {
    guard let first = elements.first, first.key.moment <= now else { return nil }
    remove(first.queued)
    return first.queued
  }
}
