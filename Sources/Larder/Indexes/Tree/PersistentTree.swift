// Tree/ holds the one persistent sorted tree, under the ordered, the geographic and the text index, and the queues of eviction: a B+tree
// of arrays, whose nodes count the entries below them and carry a summary of them.
// Invariant: a copy costs O(1) and never changes; an edit copies only the nodes on its path that another copy still shares, and none if
// there is no other. Called by IndexSet, GeoIndex, TextIndex and the cache's KeyQueue.

/// An element that a tree stores, with the key that orders it, which is unique in its tree.
protocol TreeEntry: Sendable {
  associatedtype Key: Comparable & Sendable
  associatedtype Summary: TreeSummary where Summary.Entry == Self
  /// The part of a key that inner nodes keep: of a key that refers to memory a few numbers.
  ///
  /// So an edit that copies a node counts no references.
  associatedtype Digest: Comparable & Sendable = Key

  var key: Key { get }
  /// Returns the digest of a key: a key that comes before another has a digest that comes before the other's or equals it.
  static func digest(_ key: Key) -> Digest
  /// Whether keys are ordered as their digests, so that of equal digests the keys are equal.
  static var isDigestExact: Bool { get }
  /// The greatest number of entries in a leaf, at least 3.
  static var leafCapacity: Int { get }
  /// The greatest number of children of an inner node, at least 3.
  static var fanOut: Int { get }
}

extension TreeEntry where Digest == Key {
  static func digest(_ key: Key) -> Key { key }
  static var isDigestExact: Bool { true }
}

extension TreeEntry {
  /// About a kilobyte, which one edit may have to copy.
  static var leafCapacity: Int { Swift.max(16, Swift.min(256, 1_024 / Swift.max(1, MemoryLayout<Self>.stride))) }
  /// Few, as an edit beside a copy counts the references of all children on its path.
  ///
  /// The same holds for the entries of a leaf: what refers to memory, most of which is in no cache, has small leaves of its own.
  static var fanOut: Int { 8 }
}

/// A digest of all entries below a node, such as the box around them, by which a search rules the node out.
protocol TreeSummary: Sendable {
  associatedtype Entry: TreeEntry

  init(_ entry: Entry)
  mutating func formUnion(_ other: Self)
}

/// The summary of a tree that is searched by key and rank alone.
struct NoSummary<Entry: TreeEntry>: TreeSummary {
  init(_ entry: Entry) {}
  mutating func formUnion(_ other: Self) {}
}

/// Entries in the order of their keys, which know their ranks; a copy costs O(1), every edit O(log n).
struct PersistentTree<Entry: TreeEntry>: Sendable {
  private(set) var root: PersistentTreeNode<Entry>
  /// The number of entries.
  private(set) var count: Int

  /// Makes an empty tree.
  init() {
    root = .leaf([])
    count = 0
  }

  /// Makes a tree of entries whose keys ascend strictly, in O(n); the caller answers for the order.
  init(sorted entries: [Entry]) {
    count = entries.count
    // Not filled, so that the first insertions do not split every leaf.
    let part = Swift.max(1, Entry.leafCapacity * 7 / 8)
    var nodes = stride(from: 0, to: entries.count, by: part).map { start in
      PersistentTreeNode.leaf(Array(entries[start..<Swift.min(start + part, entries.count)]))
    }
    let fan = Entry.fanOut * 3 / 4
    while nodes.count > 1 {
      nodes = stride(from: 0, to: nodes.count, by: fan).map { start in
        .inner(nodes[start..<Swift.min(start + fan, nodes.count)].compactMap { PersistentTreeNode.Child($0) })
      }
    }
    root = nodes.first ?? .leaf([])
  }

  var isEmpty: Bool { count == 0 }

  /// Inserts an entry, or replaces the one with its key, which is returned.
  @discardableResult mutating func insert(_ entry: Entry) -> Entry? {
    var old: Entry?
    if let right = root.insert(entry, Entry.digest(entry.key), isLast: true, replacing: &old) {
      let left = root
      root = .leaf([])
      root = .inner([left, right].compactMap { PersistentTreeNode.Child($0) })
    }
    if old == nil { count += 1 }
    return old
  }

  /// Changes the entry of a key in place, if there is one; the key must stay.
  @discardableResult mutating func update(_ key: Entry.Key, _ body: (inout Entry) -> Void) -> Bool {
    root.update(key, Entry.digest(key), body)
  }

  /// Removes the entry of a key, which is returned; `nil` when there is none.
  @discardableResult mutating func remove(_ key: Entry.Key) -> Entry? {
    guard let old = root.remove(key, Entry.digest(key)) else { return nil }
    count -= 1
    while case .inner(let children) = root, children.count < 2 { root = children.first?.node ?? .leaf([]) }
    return old
  }
}

// MARK: - Reading

extension PersistentTree {
  /// The entry with the least key.
  var first: Entry? { root.first }

  /// Returns the entry of a key.
  func find(_ key: Entry.Key) -> Entry? { root.find(key, Entry.digest(key)) }

  /// Returns the last entry before a key, and the first one after it.
  func neighbours(of key: Entry.Key) -> (before: Entry?, after: Entry?) {
    let position = rank(of: key)
    var before: Entry?
    var after: Entry?
    forEach(in: position - 1..<position + 2) { entry in
      if entry.key < key { before = entry } else if entry.key != key, after == nil { after = entry }
      return true
    }
    return (before, after)
  }

  /// Returns the number of entries before the first whose key meets the predicate: the rank of that entry, or `count` if there is none.
  ///
  /// The predicate is monotone: once a key meets it, all that follow do. It is asked O(log n) times.
  /// - Parameter answer: Whether the keys of a digest meet the predicate, where the digest tells; otherwise a key is looked up.
  func rank(
    whereFirst isAtOrAfter: (Entry.Key) -> Bool, byDigest answer: (Entry.Digest) -> Bool? = { _ in nil }
  ) -> Int {
    root.rank(whereFirst: isAtOrAfter, byDigest: answer)
  }

  /// Returns the number of entries before a key.
  private func rank(of key: Entry.Key) -> Int {
    let digest = Entry.digest(key)
    return rank(whereFirst: { !($0 < key) }, byDigest: { $0 < digest ? false : Entry.isDigestExact || digest < $0 ? true : nil })
  }

  /// Returns the entry of a rank, which the caller knows to be in `0..<count`.
  ///
  /// Cost: O(log n).
  func entry(at rank: Int) -> Entry { root.entry(at: rank) }

  /// Visits the entries of a range of ranks in order, or from the last to the first, until the body returns `false`.
  ///
  /// Ranks that do not exist are left out. Cost: O(log n + visited).
  func forEach<Failure: Error>(
    in ranks: Range<Int>, reversed: Bool = false, _ body: (Entry) throws(Failure) -> Bool
  ) throws(Failure) {
    let ranks = ranks.clamped(to: 0..<count)
    if ranks.isEmpty { return }
    _ = reversed ? try root.visitReversed(ranks, body) : try root.visit(ranks, body)
  }

  /// Visits the entries from a key on, in order, until `visit` returns `false`.
  func forEach(from key: Entry.Key, _ visit: (Entry) -> Bool) {
    forEach(in: rank(of: key)..<count, visit)
  }

  /// Visits the leaves in order.
  func forEachLeaf(_ visit: ([Entry]) -> Void) { root.forEachLeaf(visit) }

  /// Returns the leaf that holds the first entry at or after a key.
  func leaf(atOrAfter key: Entry.Key) -> [Entry]? { root.leaf(atOrAfter: key, Entry.digest(key)) }
}

/// A position in a tree that moves forward: cheap for a sequence of ascending keys.
struct PersistentTreeCursor<Entry: TreeEntry> {
  private let tree: PersistentTree<Entry>
  private var leaf: [Entry] = []
  private var index = 0

  /// The entry at the position, once ``move(to:)`` has returned `true`.
  var current: Entry { leaf[index] }

  init(_ tree: PersistentTree<Entry>) { self.tree = tree }

  /// Moves to the first entry at or after a key, and returns whether it has that key; no key may be before the one of the last call.
  mutating func move(to key: Entry.Key) -> Bool {
    if leaf.isEmpty || leaf[leaf.count - 1].key < key {
      guard let next = tree.leaf(atOrAfter: key) else { return false }
      leaf = next
      index = PersistentTreeNode.position(of: key, in: leaf)
    } else {
      // Some single steps, as lists of common words go, then steps that double, and halves between the last two.
      let near = min(index + 6, leaf.count)
      while index < near, leaf[index].key < key { index += 1 }
      if index < near { return leaf[index].key == key }
      var (low, step) = (index, 1)
      while low + step < leaf.count, leaf[low + step].key < key {
        low += step
        step *= 2
      }
      index = (low..<min(low + step, leaf.count - 1)).partitionPoint { !(leaf[$0].key < key) }
    }
    return leaf[index].key == key
  }
}
