internal import DequeModule

/// Values by key, in the order in which they were last used.
///
/// Every operation takes constant time on average: a use puts the key at the end of a queue, and what stood for it before is stale. Stale
/// uses are never first in the queue, and are taken out of it when they outweigh the others.
struct RecencyList<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct Use: Sendable {
    let key: Key
    let number: Int
  }

  private var entries: [Key: (value: Value, lastUse: Int)] = [:]
  private var uses: Deque<Use> = []
  private var lastNumber = 0

  var count: Int { entries.count }

  /// The value of a key, which does not count as a use.
  subscript(key: Key) -> Value? { entries[key]?.value }

  /// Puts a value in, or a new one in its place, as the one used last.
  ///
  /// - Returns: The value that was there.
  @discardableResult
  mutating func use(_ key: Key, _ value: Value) -> Value? {
    lastNumber += 1
    let old = entries.updateValue((value, lastNumber), forKey: key)
    uses.append(Use(key: key, number: lastNumber))
    removeStaleUses()
    return old?.value
  }

  /// Makes a key the one used last, if it is there.
  ///
  /// - Returns: Its value.
  @discardableResult
  mutating func use(_ key: Key) -> Value? {
    guard let value = self[key] else { return nil }
    use(key, value)
    return value
  }

  /// Takes a value out.
  @discardableResult
  mutating func remove(_ key: Key) -> Value? {
    guard let entry = entries.removeValue(forKey: key) else { return nil }
    removeStaleUses()
    return entry.value
  }

  /// The key that was used longest ago.
  var leastRecent: Key? { uses.first?.key }

  /// All keys, from the one used longest ago to the one used last.
  var keys: some Sequence<Key> { uses.lazy.filter(isCurrent).map(\.key) }

  private func isCurrent(_ use: Use) -> Bool { entries[use.key]?.lastUse == use.number }

  private mutating func removeStaleUses() {
    while let first = uses.first, !isCurrent(first) { uses.removeFirst() }
    if uses.count > 2 * entries.count + 16 { uses = Deque(uses.filter(isCurrent)) }
  }
}
