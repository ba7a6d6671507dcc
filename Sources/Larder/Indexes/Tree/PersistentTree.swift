// Tree/ holds the persistent sorted tree under the ordered, geographic and text indexes and the cache's eviction queues. The tree is a
// B+tree of arrays, in which each node stores the count and a summary of the entries below it.
// Invariant: a copy of a tree costs O(1), and edits of the original never change the copy. An edit copies only the nodes on its path that
// another copy shares.
// Called by IndexSet, GeoIndex, TextIndex, the cache's KeyQueue, and the folder JSONFile/Paging/

/// An element of a ``PersistentTree``, with a key that is unique in its tree and by which the tree is sorted.
protocol TreeEntry: Sendable {
  associatedtype Key: Comparable & Sendable
  associatedtype Summary: TreeSummary where Summary.Entry == Self
  /// The form of a key that inner nodes store instead of the key.
  ///
  /// For most keys the digest is a few numbers, so that an edit that copies an inner node retains no keys.
  associatedtype Digest: Comparable & Sendable = Key

  var key: Key { get }
  /// Returns the digest of a key: the lesser of two keys never has the greater digest.
  static func digest(_ key: Key) -> Digest
  /// True if two keys with equal digests are always equal, so that the tree need not compare the keys.
  static var isDigestExact: Bool { get }
  /// Greatest number of entries in a leaf, which must be at least 3.
  static var leafCapacity: Int { get }
  /// Greatest number of children of an inner node of the tree, which must be at least 3.
  static var fanOut: Int { get }
}

extension TreeEntry where Digest == Key {
  static func digest(_ key: Key) -> Key { key }
  static var isDigestExact: Bool { true }
}

extension TreeEntry {
  /// A leaf takes about a kilobyte, because an edit of a tree that shares nodes with a copy must copy a whole leaf.
  static var leafCapacity: Int { Swift.max(16, Swift.min(256, 1_024 / Swift.max(1, MemoryLayout<Self>.stride))) }
  /// Inner nodes have few children, because an edit that copies an inner node retains all of its children.
  ///
  /// Copying a leaf retains the objects that its entries refer to, which are rarely in the processor's cache. Types of entries with
  /// references define a smaller ``leafCapacity``, so that a copy of a leaf retains fewer objects.
  static var fanOut: Int { 8 }
}

/// A summary of all entries below a tree node, such as the box around their places, which lets a search skip the node.
protocol TreeSummary: Sendable {
  associatedtype Entry: TreeEntry

  init(_ entry: Entry)
  mutating func formUnion(_ other: Self)
}

/// An empty summary, for a tree that is searched by key and rank only.
struct NoSummary<Entry: TreeEntry>: TreeSummary {
  init(_ entry: Entry) {}
  mutating func formUnion(_ other: Self) {}
}

/// A persistent B+tree, which finds entries by key and by rank, with copies in O(1) and edits in O(log n).
///
/// The rank of an entry is its position in the order of the keys, from 0.
struct PersistentTree<Entry: TreeEntry>: Sendable {
  private(set) var root: PersistentTreeNode<Entry>
  /// Number of entries in the tree.
  private(set) var count: Int

  /// Creates an empty tree.
  init() {
    root = .leaf([])
    count = 0
  }

  /// Creates a tree from entries whose keys must ascend strictly, in O(n).
  ///
  /// The order of the entries is not checked.
  init(sorted entries: [Entry]) {
    count = entries.count
    // Leaves are filled to seven eighths, because the first insertion into a full leaf splits it.
    let part = Swift.max(1, Entry.leafCapacity * 7 / 8)
    var nodes = stride(from: 0, to: entries.count, by: part).map { start in
      PersistentTreeNode.leaf(Array(entries[start..<Swift.min(start + part, entries.count)]))
    }
    // Inner nodes are filled to three quarters, so that the first splits of child nodes do not split the inner nodes, too.
    let fan = Entry.fanOut * 3 / 4
    while nodes.count > 1 {
      nodes = stride(from: 0, to: nodes.count, by: fan).map { start in
        .inner(nodes[start..<Swift.min(start + fan, nodes.count)].compactMap { PersistentTreeNode.Child($0) })
      }
    }
    root = nodes.first ?? .leaf([])
  }

  var isEmpty: Bool { count == 0 }

  /// Inserts an entry or replaces the entry with its key, and returns the replaced entry.
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

  /// Changes the entry of a key in place and returns true, or returns false if the tree has no such entry.
  ///
  /// `body` must not change the key of the entry.
  @discardableResult mutating func update(_ key: Entry.Key, _ body: (inout Entry) -> Void) -> Bool {
    root.update(key, Entry.digest(key), body)
  }

  /// Removes the entry of a key and returns the entry, or `nil` if the tree does not hold the key.
  @discardableResult mutating func remove(_ key: Entry.Key) -> Entry? {
    guard let old = root.remove(key, Entry.digest(key)) else { return nil }
    count -= 1
    // A root with only one child is replaced by its child. Without the replacement, each search would descend through one more level.
    while case .inner(let children) = root, children.count < 2 { root = children.first?.node ?? .leaf([]) }
    return old
  }
}

// MARK: - Reading

extension PersistentTree {
  /// Entry with the least key.
  var first: Entry? { root.first }

  /// Returns the entry of a key, or `nil` if the tree does not hold the key.
  func find(_ key: Entry.Key) -> Entry? { root.find(key, Entry.digest(key)) }

  /// Returns the last entry before a key and the first entry after the key.
  func neighbours(of key: Entry.Key) -> (before: Entry?, after: Entry?) {
    let position = rank(of: key)
    var before: Entry?
    var after: Entry?
    // `neighbours` reads up to three entries, because the entry of the key itself may lie between the two neighbours.
    forEach(in: position - 1..<position + 2) { entry in
      if entry.key < key { before = entry } else if entry.key != key, after == nil { after = entry }
      return true
    }
    return (before, after)
  }

  /// Returns the rank of the first entry whose key meets a predicate, or `count` if there is none.
  ///
  /// The predicate must be monotone: if a key meets the predicate, all later keys meet it, too. The predicate is called O(log n) times.
  ///
  /// - Parameter answer: Closure that returns whether the keys with a given digest meet the predicate, or `nil` if the digest does not
  ///   decide. After `nil`, the key is read from its leaf.
  func rank(
    whereFirst isAtOrAfter: (Entry.Key) -> Bool, byDigest answer: (Entry.Digest) -> Bool? = { _ in nil }
  ) -> Int {
    root.rank(whereFirst: isAtOrAfter, byDigest: answer)
  }

  /// Returns the number of entries whose keys are less than a key.
  private func rank(of key: Entry.Key) -> Int {
    let digest = Entry.digest(key)
    return rank(whereFirst: { !($0 < key) }, byDigest: { $0 < digest ? false : Entry.isDigestExact || digest < $0 ? true : nil })
  }

  /// Returns the entry at a rank, which must be in `0..<count`.
  ///
  /// Cost: O(log n).
  func entry(at rank: Int) -> Entry { root.entry(at: rank) }

  /// Visits the entries of a range of ranks in order or in reverse, until `body` returns `false`.
  ///
  /// Ranks outside the tree are ignored. Cost: O(log n + number of visited entries).
  func forEach<Failure: Error>(
    in ranks: Range<Int>, reversed: Bool = false, _ body: (Entry) throws(Failure) -> Bool
  ) throws(Failure) {
    // Callers may pass ranks outside the tree. For example, `neighbours` passes -1 for a key before the first entry.
    let ranks = ranks.clamped(to: 0..<count)
    if ranks.isEmpty { return }
    _ = reversed ? try root.visitReversed(ranks, body) : try root.visit(ranks, body)
  }

  /// Visits the entries at and after a key in order, until `visit` returns `false`.
  func forEach(from key: Entry.Key, _ visit: (Entry) -> Bool) {
    forEach(in: rank(of: key)..<count, visit)
  }

  /// Visits the leaves of the tree in the order of their keys.
  func forEachLeaf(_ visit: ([Entry]) -> Void) { root.forEachLeaf(visit) }

  /// Returns the leaf that holds the first entry at or after a key, or `nil` if all keys of the tree are less than the key.
  func leaf(atOrAfter key: Entry.Key) -> [Entry]? { root.leaf(atOrAfter: key, Entry.digest(key)) }
}

/// A forward-only position in a tree, with which a caller finds many ascending keys without a descent from the root for each key.
struct PersistentTreeCursor<Entry: TreeEntry> {
  private let tree: PersistentTree<Entry>
  private var leaf: [Entry] = []
  private var index = 0

  /// Entry at the cursor's position, which may be read only after ``move(to:)`` has returned `true`.
  var current: Entry { leaf[index] }

  init(_ tree: PersistentTree<Entry>) { self.tree = tree }

  /// Moves to the first entry at or after a key, and returns true if this entry has the key.
  ///
  /// The keys must not descend from call to call.
  mutating func move(to key: Entry.Key) -> Bool {
    if leaf.isEmpty || leaf[leaf.count - 1].key < key {
      // For a key that is greater than all keys of the current leaf, one descent from the root finds the key's leaf, even in a distant part
      // of the tree.
      guard let next = tree.leaf(atOrAfter: key) else { return false }
      leaf = next
      index = PersistentTreeNode.position(of: key, in: leaf)
    } else {
      // In the posting list of a common word, the next record is usually a few entries ahead, so the cursor first takes up to six single
      // steps. If the key is farther ahead, the cursor doubles its steps until it has passed the key, and then searches the last step in
      // halves.
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
