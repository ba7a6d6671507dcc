/// An order of eviction by recency and frequency: SIEVE (Zhang et al., NSDI 2024).
///
/// New keys come to the head; a hand walks from the tail to the head and round. It spares a key that was used since it last came by, and
/// takes the first that was not. So a use costs one bit, and keys that are used once leave before they have crowded others out.
struct Sieve<Key: Hashable & Sendable>: Sendable {
  private struct Node: Sendable {
    let key: Key
    var isVisited = false
    /// Towards the head, which is the newer side.
    var newer: Int?
    var older: Int?
  }

  private var nodes: [Node?] = []
  private var free: [Int] = []
  private var positions: [Key: Int] = [:]
  private var head: Int?
  private var tail: Int?
  private var hand: Int?

  var count: Int { positions.count }

  /// Notes a use; `false` when the key is not there.
  @discardableResult mutating func touch(_ key: Key) -> Bool {
    guard let position = positions[key] else { return false }
    nodes[position]?.isVisited = true
    return true
  }

  /// Adds a key as the newest; one that is there counts as used.
  mutating func insert(_ key: Key) {
    if touch(key) { return }
    let node = Node(key: key, older: head)
    let position: Int
    if let reused = free.popLast() {
      position = reused
      nodes[position] = node
    } else {
      position = nodes.count
      nodes.append(node)
    }
    if let head { nodes[head]?.newer = position }
    head = position
    if tail == nil { tail = position }
    positions[key] = position
  }

  /// Takes a key out.
  mutating func remove(_ key: Key) {
    guard let position = positions.removeValue(forKey: key), let node = nodes[position] else { return }
    if let newer = node.newer { nodes[newer]?.older = node.older } else { head = node.older }
    if let older = node.older { nodes[older]?.newer = node.newer } else { tail = node.newer }
    if hand == position { hand = node.newer }
    nodes[position] = nil
    free.append(position)
  }

  /// Takes out the key that is least worth keeping.
  mutating func evict() -> Key? {
    while let position = hand ?? tail, let node = nodes[position] {
      guard node.isVisited else {
        hand = position
        remove(node.key)
        return node.key
      }
      nodes[position]?.isVisited = false
      hand = node.newer
    }
    return nil
  }
}
