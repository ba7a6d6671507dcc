/// Values by key, in the order in which they were last used.
///
/// Every operation takes constant time: the order is a linked list through an array.
struct RecencyList<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct Node: Sendable {
    var key: Key
    var value: Value
    var older: Int?
    var newer: Int?
  }

  private var nodes: [Node?] = []
  private var places: [Key: Int] = [:]
  private var free: [Int] = []
  private var oldest: Int?
  private var newest: Int?

  var count: Int { places.count }

  /// The value of a key, which does not count as a use.
  subscript(key: Key) -> Value? { places[key].flatMap { nodes[$0]?.value } }

  /// Puts a value in, or a new one in its place, as the one used last.
  ///
  /// - Returns: The value that was there.
  @discardableResult
  mutating func use(_ key: Key, _ value: Value) -> Value? {
    let old = remove(key)
    let node = Node(key: key, value: value, older: newest, newer: nil)
    let place = free.popLast() ?? nodes.count
    if place == nodes.count { nodes.append(node) } else { nodes[place] = node }
    if let newest { nodes[newest]?.newer = place } else { oldest = place }
    newest = place
    places[key] = place
    return old
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
    guard let place = places.removeValue(forKey: key), let node = nodes[place] else { return nil }
    if let older = node.older { nodes[older]?.newer = node.newer } else { oldest = node.newer }
    if let newer = node.newer { nodes[newer]?.older = node.older } else { newest = node.older }
    nodes[place] = nil
    free.append(place)
    return node.value
  }

  /// The key that was used longest ago.
  var leastRecent: Key? { oldest.flatMap { nodes[$0]?.key } }

  /// All keys, from the one used longest ago to the one used last.
  var keys: some Sequence<Key> {
    sequence(first: oldest) { place in place.flatMap { nodes[$0]?.newer } }.lazy
      .prefix { $0 != nil }.compactMap { place in place.flatMap { nodes[$0]?.key } }
  }
}
