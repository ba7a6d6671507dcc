/// An order of eviction by recency and frequency of use: the algorithm S3-FIFO (Yang et al., SOSP 2023).
///
/// A new key enters a small queue, which holds about a tenth of all keys. At the front of the small queue, a key that was used moves to the
/// main queue. A key of the small queue that was not used is evicted and remembered for a while as a *ghost*. If a ghost is inserted again,
/// it enters the main queue at once. At the front of the main queue, a used key goes to the back again, once for each of up to three uses.
/// Keys that are inserted and not used again, as in a scan, therefore mostly evict each other.
struct EvictionOrder<Key: Hashable & Sendable>: Sendable {
  /// Number of uses of each key since the key entered its present queue, at most three.
  private var uses: [Key: UInt8] = [:]
  private var small = KeyQueue<Key>()
  private var main = KeyQueue<Key>()
  private var ghosts = KeyQueue<Key>()

  var count: Int { uses.count }

  /// Counts a use of a key.
  mutating func touch(_ key: Key) {
    guard let index = uses.index(forKey: key) else { return }
    // A key counts at most three uses, as in the S3-FIFO paper. A counter without a limit would keep keys that were popular long ago.
    if uses.values[index] < 3 { uses.values[index] += 1 }
  }

  /// Adds a key as the newest key of the eviction order.
  ///
  /// If the eviction order already holds the key, `insert(_:)` counts a use of the key instead.
  mutating func insert(_ key: Key) {
    if uses[key] != nil { return touch(key) }
    uses[key] = 0
    if ghosts.remove(key) { main.insert(key) } else { small.insert(key) }
  }

  /// Removes a key from the eviction order, and does not remember the key as a ghost.
  mutating func remove(_ key: Key) {
    guard uses.removeValue(forKey: key) != nil else { return }
    small.remove(key)
    main.remove(key)
  }

  /// Removes and returns the key that S3-FIFO evicts next, or returns `nil` if there is no key.
  mutating func evict() -> Key? {
    // Keys of the small queue are evicted only while the small queue holds at least a tenth of all keys, as in the S3-FIFO paper.
    if small.count >= max(count / 10, 1), let key = evictFromSmall() { return key }
    return evictFromMain() ?? evictFromSmall()
  }

  /// Evicts the first unused key of the small queue, and returns it.
  ///
  /// Used keys at the front of the small queue move to the main queue first.
  private mutating func evictFromSmall() -> Key? {
    while let key = small.popFirst() {
      // A key with one use moves to the main queue. The S3-FIFO paper requires two uses, but in a small cache the rule of the paper would
      // evict an entry right after its first use.
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

  /// Evicts the first key of the main queue that has no uses left, and returns it.
  ///
  /// Each used key at the front of the main queue goes to the back of the queue, with one use less.
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

  /// Remembers a key that was evicted from the small queue as a ghost.
  ///
  /// There are at most as many ghosts as keys in both queues.
  private mutating func remember(_ key: Key) {
    ghosts.insert(key)
    // Without a bound, a scan over many keys would add ghosts without end.
    while ghosts.count > max(count, 1) { _ = ghosts.popFirst() }
  }
}

/// A priority queue of keys, ordered by the moment that is given for each key, and then by the order of insertion.
///
/// The key with the earliest moment comes out first. If no moments are given, the queue is first in, first out. Each key occurs at most
/// once. Each call of a method costs O(log n).
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

  /// Inserts a key with a moment, or moves a key that is already in the queue to the new moment.
  mutating func insert(_ key: Key, at moment: Duration = .zero) {
    remove(key)
    serial += 1
    // The serial makes the positions of two keys with the same moment different. With equal positions, one key would replace the other in
    // the tree.
    let position = Position(moment: moment, serial: serial)
    positions[key] = position
    elements.insert(Element(key: position, queued: key))
  }

  /// Removes a key, and returns true if the queue held the key.
  @discardableResult mutating func remove(_ key: Key) -> Bool {
    guard let position = positions.removeValue(forKey: key) else { return false }
    elements.remove(position)
    return true
  }

  /// Removes and returns the first key of the queue if its moment is not later than `now`.
  mutating func popFirst(by now: Duration = .zero) -> Key? {
    guard let first = elements.first, first.key.moment <= now else { return nil }
    remove(first.queued)
    return first.queued
  }
}
