internal import DequeModule
internal import Foundation

/// Least-recently-used cache of the blobs in memory, with limits on count and bytes.
struct BlobMemory: Sendable {
  struct Entry: Sendable {
    let data: Data
    let storedAt: Date
  }

  private let countLimit: Int
  private let byteLimit: Int
  private var entries = RecencyList<String, Entry>()
  private(set) var bytes = 0
  /// Ids of blobs that were read from memory since ``BlobStore`` last updated its order of use.
  ///
  /// A read from memory does not run on the store's executor, and only the executor may change the store's order of use.
  private var used = RecencyList<String, Bool>()

  init(_ limits: BlobStore.Limits) {
    countLimit = limits.memoryCount
    byteLimit = limits.memoryBytes
  }

  var count: Int { entries.count }

  /// Returns the blob with an id if memory holds the blob, and makes it the most recently used one.
  mutating func use(_ id: String) -> Entry? {
    guard let entry = entries.use(id) else { return nil }
    used.use(id, true)
    return entry
  }

  /// Adds a blob to memory, and drops the least recently used blobs until memory is within its limits.
  ///
  /// A blob that is larger than the byte limit of the memory is not added.
  mutating func keep(_ entry: Entry, _ id: String) {
    // The old blob of the key is dropped even if the new blob is too large for memory. Otherwise reads of the key would return the old
    // blob.
    remove(id)
    guard countLimit > 0, entry.data.count <= byteLimit else { return }
    entries.use(id, entry)
    bytes += entry.data.count
    while entries.count > countLimit || bytes > byteLimit, let victim = entries.leastRecent { remove(victim) }
  }

  mutating func remove(_ id: String) {
    guard let entry = entries.remove(id) else { return }
    bytes -= entry.data.count
  }

  mutating func removeAll() {
    entries = RecencyList()
    bytes = 0
  }

  /// Returns the ids of blobs that were read from memory since the last call, least recently used first.
  mutating func takeUsed() -> [String] {
    defer { used = RecencyList() }
    return Array(used.keys)
  }
}

/// Dictionary whose keys are ordered by their last use.
///
/// Every operation takes constant time on average. Each use appends the key to a queue and makes the key's earlier element in the queue
/// stale. The first element of the queue is never stale. When stale elements outnumber the current elements by more than 16, all stale
/// elements are removed.
struct RecencyList<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct Use: Sendable {
    let key: Key
    let number: Int
  }

  private var entries: [Key: (value: Value, lastUse: Int)] = [:]
  private var uses: Deque<Use> = []
  private var lastNumber = 0

  var count: Int { entries.count }

  /// Value of a key.
  ///
  /// Reading a value through the subscript does not count as a use.
  subscript(key: Key) -> Value? { entries[key]?.value }

  /// Inserts or replaces the value of a key, and makes the key the most recently used.
  ///
  /// - Returns: The value that was replaced.
  @discardableResult
  mutating func use(_ key: Key, _ value: Value) -> Value? {
    lastNumber += 1
    let old = entries.updateValue((value, lastNumber), forKey: key)
    uses.append(Use(key: key, number: lastNumber))
    removeStaleUses()
    return old?.value
  }

  /// Makes a key the most recently used, if the list holds the key.
  ///
  /// - Returns: The value of the key.
  @discardableResult
  mutating func use(_ key: Key) -> Value? {
    guard let value = self[key] else { return nil }
    use(key, value)
    return value
  }

  /// Removes a key, and returns its value.
  @discardableResult
  mutating func remove(_ key: Key) -> Value? {
    guard let entry = entries.removeValue(forKey: key) else { return nil }
    removeStaleUses()
    return entry.value
  }

  /// Least recently used key.
  var leastRecent: Key? { uses.first?.key }

  /// All keys, least recently used first.
  var keys: some Sequence<Key> { uses.lazy.filter(isCurrent).map(\.key) }

  private func isCurrent(_ use: Use) -> Bool { entries[use.key]?.lastUse == use.number }

  private mutating func removeStaleUses() {
    // `leastRecent` returns the key of the queue's first element without a check, so the first element must not be stale.
    while let first = uses.first, !isCurrent(first) { uses.removeFirst() }
    // A key that is used again and again would let the queue grow without bound. Stale elements are removed only when the queue is more
    // than twice as long as the number of entries, so that the average cost of a use stays constant.
    if uses.count > 2 * entries.count + 16 { uses = Deque(uses.filter(isCurrent)) }
  }
}
