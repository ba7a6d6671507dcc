// Tree/ holds the persistent sorted tree under the ordered, geographic and text indexes and the cache's eviction queues: a B+tree of
// arrays, whose nodes count the entries below them and carry a summary of them. Invariant: a copy costs O(1) and never changes. An edit
// copies only the nodes on its path that another copy still shares, and none if there is no other. Called by IndexSet, GeoIndex, TextIndex
// and the cache's KeyQueue.

/// An element of a ``PersistentTree``, with a key that orders it and occurs once in its tree.
protocol TreeEntry: Sendable {
  associatedtype Key: Comparable & Sendable
  associatedtype Summary: TreeSummary where Summary.Entry == Self
  /// The form of a key that inner nodes store: for most keys a few numbers, so that an edit that copies a node retains no memory.
  associatedtype Digest: Comparable & Sendable = Key

  var key: Key { get }
  /// Returns the digest of a key. Digests never descend where keys ascend, but different keys may have equal digests.
  static func digest(_ key: Key) -> Digest
  /// True if keys with equal digests are equal.
  static var isDigestExact: Bool { get }
  /// Greatest number of entries in a leaf, at least 3.
  static var leafCapacity: Int { get }
  /// Greatest number of children of an inner node, at least 3.
  static var fanOut: Int { get }
}

extension TreeEntry where Digest == Key {
  static func digest(_ key: Key) -> Key { key }
  static var isDigestExact: Bool { true }
}

extension TreeEntry {
  /// About a kilobyte, which an edit may have to copy.
  static var leafCapacity: Int { Swift.max(16, Swift.min(256, 1_024 / Swift.max(1, MemoryLayout<Self>.stride))) }
  /// Few children, because an edit beside a copy retains all children of each node on its path.
  ///
  /// For the same reason, entries that refer to memory, which is rarely in the processor's cache, define small leaves of their own.
  static var fanOut: Int { 8 }
}

/// A summary of all entries below a tree node, such as the box around them, by which a search skips the node.
protocol TreeSummary: Sendable {
  associatedtype Entry: TreeEntry

  init(_ entry: Entry)
  mutating func formUnion(_ other: Self)
}

/// The empty summary of a tree that is searched by key and rank only.
struct NoSummary<Entry: TreeEntry>: TreeSummary {
  init(_ entry: Entry) {}
  mutating func formUnion(_ other: Self) {}
}

/// A persistent B+tree, which finds entries by key and by rank, with copies in O(1) and edits in O(log n).
struct PersistentTree<Entry: TreeEntry>: Sendable {
  private(set) var root: PersistentTreeNode<Entry>
  /// Number of entries.
  private(set) var count: Int

  /// Creates an empty tree.
  init() {
    root = .leaf([])
    count = 0
  }

  /// Creates a tree of entries whose keys ascend strictly, in O(n), without a check of their order.
  init(sorted entries: [Entry]) {
    count = entries.count
    // Leaves are filled to seven eighths, so that the first insertions do not split every leaf.
    let part = Swift.max(1, Entry.leafCapacity * 7 / 8)
    var nodes = stride(from: 0, to: entries.count, by: part).map { start in
      PersistentTreeNode.leaf(Array(entries[start..<Swift.min(start + part, entries.count)]))
    }
    // Room for the first splits, as in the leaves.
    let fan = Entry.fanOut * 3 / 4
    while nodes.count > 1 {
      nodes = stride(from: 0, to: nodes.count, by: fan).map { start in
        .inner(nodes[start..<Swift.min(start + fan, nodes.count)].compactMap { PersistentTreeNode.Child($0) })
      }
    }
    root = nodes.first ?? .leaf([])
  }

  var isEmpty: Bool { count == 0 }

  /// Inserts an entry or replaces the one with its key, and returns the replaced entry.
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

  /// Changes the entry of a key in place, except for its key, and returns true, or returns false if there is none.
  @discardableResult mutating func update(_ key: Entry.Key, _ body: (inout Entry) -> Void) -> Bool {
    root.update(key, Entry.digest(key), body)
  }

  /// Removes the entry of a key and returns it, or `nil` if there is none.
  @discardableResult mutating func remove(_ key: Entry.Key) -> Entry? {
    guard let old = root.remove(key, Entry.digest(key)) else { return nil }
    count -= 1
    // A root with one child would add a level to every search.
    while case .inner(let children) = root, children.count < 2 { root = children.first?.node ?? .leaf([]) }
    return old
  }
}

// MARK: - Reading

extension PersistentTree {
  /// Entry with the least key.
  var first: Entry? { root.first }

  /// Returns the entry of a key, or `nil` if there is none.
  func find(_ key: Entry.Key) -> Entry? { root.find(key, Entry.digest(key)) }

  /// Returns the last entry before a key and the first entry after it.
  func neighbours(of key: Entry.Key) -> (before: Entry?, after: Entry?) {
    let position = rank(of: key)
    var before: Entry?
    var after: Entry?
    // Up to three entries: the key itself may be in the tree between its neighbours.
    forEach(in: position - 1..<position + 2) { entry in
      if entry.key < key { before = entry } else if entry.key != key, after == nil { after = entry }
      return true
    }
    return (before, after)
  }

  /// Returns the rank of the first entry whose key meets a predicate, or `count` if there is none.
  ///
  /// The predicate must be monotone: once a key meets it, all later keys do. It is called O(log n) times.
  ///
  /// - Parameter answer: Returns whether keys with a digest meet the predicate, or `nil` if the digest does not decide. Then a key is read.
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

  /// Returns the entry of a rank, which must be in `0..<count`.
  ///
  /// Cost: O(log n).
  func entry(at rank: Int) -> Entry { root.entry(at: rank) }

  /// Visits the entries of a range of ranks in order or in reverse, until the body returns `false`.
  ///
  /// Ranks outside the tree are ignored. Cost: O(log n + visited).
  func forEach<Failure: Error>(
    in ranks: Range<Int>, reversed: Bool = false, _ body: (Entry) throws(Failure) -> Bool
  ) throws(Failure) {
    // Callers pass ranks outside the tree, as `neighbours` does at both ends.
    let ranks = ranks.clamped(to: 0..<count)
    if ranks.isEmpty { return }
    _ = reversed ? try root.visitReversed(ranks, body) : try root.visit(ranks, body)
  }

  /// Visits the entries from a key on in order, until `visit` returns `false`.
  func forEach(from key: Entry.Key, _ visit: (Entry) -> Bool) {
    forEach(in: rank(of: key)..<count, visit)
  }

  /// Visits the leaves in order.
  func forEachLeaf(_ visit: ([Entry]) -> Void) { root.forEachLeaf(visit) }

  /// Returns the leaf that holds the first entry at or after a key, or `nil` if there is none.
  func leaf(atOrAfter key: Entry.Key) -> [Entry]? { root.leaf(atOrAfter: key, Entry.digest(key)) }
}

/// A forward-only position in a tree, for a lookup of many ascending keys without a descent for each.
struct PersistentTreeCursor<Entry: TreeEntry> {
  private let tree: PersistentTree<Entry>
  private var leaf: [Entry] = []
  private var index = 0

  /// Entry at the cursor's position, which is valid once ``move(to:)`` has returned `true`.
  var current: Entry { leaf[index] }

  init(_ tree: PersistentTree<Entry>) { self.tree = tree }

  /// Moves to the first entry at or after a key, which must not descend from call to call, and returns whether the entry has that key.
  mutating func move(to key: Entry.Key) -> Bool {
    if leaf.isEmpty || leaf[leaf.count - 1].key < key {
      // Past the leaf: one descent finds the next one, however far away it is.
      guard let next = tree.leaf(atOrAfter: key) else { return false }
      leaf = next
      index = PersistentTreeNode.position(of: key, in: leaf)
    } else {
      // The lists of common words advance by few entries: six single steps, then a galloping search with doubling steps.
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
