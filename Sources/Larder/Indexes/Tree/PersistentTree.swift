// Tree/ holds the persistent sorted tree under the geographic and the text index: a B+tree of arrays, whose nodes carry a summary.
// Invariant: a copy costs O(1) and never changes; an edit copies only the nodes on its path that another copy still shares, and none if
// there is no other. Called by GeoIndex and TextIndex.

/// What a tree stores: an element with the key that orders it, which is unique in its tree.
protocol SummaryTreeEntry: Sendable {
  associatedtype Key: Comparable & Sendable
  associatedtype Summary: SummaryTreeSummary where Summary.Entry == Self

  var key: Key { get }
}

extension SummaryTreeEntry {
  /// How many entries a leaf holds: about a kilobyte, which one edit may have to copy.
  static var leafCapacity: Int { Swift.max(16, Swift.min(256, 1_024 / Swift.max(1, MemoryLayout<Self>.stride))) }
}

/// What is known of all entries below a node without looking at them, such as the box around them.
protocol SummaryTreeSummary: Sendable {
  associatedtype Entry: SummaryTreeEntry

  init(_ entry: Entry)
  mutating func formUnion(_ other: Self)
}

/// Nothing is known.
struct NoSummary<Entry: SummaryTreeEntry>: SummaryTreeSummary {
  init(_ entry: Entry) {}
  mutating func formUnion(_ other: Self) {}
}

/// Entries in the order of their keys; a copy costs O(1), every edit O(log n).
struct SummaryTree<Entry: SummaryTreeEntry>: Sendable {
  private(set) var root: SummaryTreeNode<Entry>
  private(set) var count: Int

  init() {
    root = .leaf([])
    count = 0
  }

  /// Makes a tree of entries that are in strictly ascending order, in O(n).
  init(sorted entries: [Entry]) {
    count = entries.count
    // Not filled, so that the first insertions do not split every leaf.
    let part = Swift.max(1, Entry.leafCapacity * 3 / 4)
    var nodes = stride(from: 0, to: entries.count, by: part).map { start in
      SummaryTreeNode.leaf(Array(entries[start..<Swift.min(start + part, entries.count)]))
    }
    let fan = SummaryTreeNode<Entry>.fanOut * 3 / 4
    while nodes.count > 1 {
      nodes = stride(from: 0, to: nodes.count, by: fan).map { start in
        .inner(nodes[start..<Swift.min(start + fan, nodes.count)].compactMap { SummaryTreeNode.Child($0) })
      }
    }
    root = nodes.first ?? .leaf([])
  }

  var isEmpty: Bool { count == 0 }

  /// The entry of a key.
  func find(_ key: Entry.Key) -> Entry? { root.find(key) }

  /// Puts an entry in place of the one with its key, which is returned.
  @discardableResult mutating func insert(_ entry: Entry) -> Entry? {
    var old: Entry?
    if let right = root.insert(entry, replacing: &old) {
      let left = root
      root = .leaf([])
      root = .inner([left, right].compactMap { SummaryTreeNode.Child($0) })
    }
    if old == nil { count += 1 }
    return old
  }

  /// Changes the entry of a key in place, if there is one; the key must stay.
  @discardableResult mutating func update(_ key: Entry.Key, _ body: (inout Entry) -> Void) -> Bool { root.update(key, body) }

  @discardableResult mutating func remove(_ key: Entry.Key) -> Entry? {
    guard let old = root.remove(key) else { return nil }
    count -= 1
    while case .inner(let children) = root, children.count < 2 { root = children.first?.node ?? .leaf([]) }
    return old
  }

  /// Visits the entries from a key on, in order, until `visit` returns false.
  func forEach(from key: Entry.Key, _ visit: (Entry) -> Bool) { _ = root.forEach(from: key, visit) }

  /// Visits the leaves in order.
  func forEachLeaf(_ visit: ([Entry]) -> Void) { root.forEachLeaf(visit) }

  var first: Entry? { root.first }

  /// The leaf that holds the first entry at or after a key.
  func leaf(atOrAfter key: Entry.Key) -> [Entry]? { root.leaf(atOrAfter: key) }

  /// The last entry before a key, and the first one after it.
  func neighbours(of key: Entry.Key) -> (before: Entry?, after: Entry?) {
    var before: Entry?
    var after: Entry?
    root.neighbours(of: key, &before, &after)
    return (before, after)
  }
}
