/// A node of a ``PersistentTree``: a leaf of entries, or an inner node with children of equal depth.
enum PersistentTreeNode<Entry: TreeEntry>: Sendable {
  case leaf([Entry])
  case inner([Child])

  /// A child of an inner node: a node that is not empty, with the count of its entries, their summary and the digest of the first key.
  struct Child: Sendable {
    var first: Entry.Digest
    var count: Int
    var summary: Entry.Summary
    var node: PersistentTreeNode

    init?(_ node: PersistentTreeNode) {
      switch node {
      case .leaf(let entries):
        // Searches choose a child by its first key. An empty node has no first key, so it cannot become a child.
        guard let first = entries.first else { return nil }
        self.first = Entry.digest(first.key)
        summary = Entry.Summary(first)
        for entry in entries.dropFirst() { summary.formUnion(Entry.Summary(entry)) }
        count = entries.count
      case .inner(let children):
        guard let first = children.first else { return nil }
        self.first = first.first
        summary = first.summary
        count = 0
        for child in children {
          summary.formUnion(child.summary)
          count += child.count
        }
      }
      self.node = node
    }
  }

  /// Number of entries or children of the node.
  var width: Int {
    switch self {
    case .leaf(let entries): entries.count
    case .inner(let children): children.count
    }
  }

  var isLeaf: Bool { if case .leaf = self { true } else { false } }

  /// Returns the position in a leaf of the first entry at or after a key, or the number of entries if there is none.
  @inline(__always)
  static func position(of key: Entry.Key, in entries: [Entry]) -> Int {
    (0..<entries.count).partitionPoint { !(entries[$0].key < key) }
  }

  /// Returns the position of the only child that can hold a key.
  @inline(__always)
  static func position(of key: Entry.Key, _ digest: Entry.Digest, in children: [Child]) -> Int {
    // The binary search begins at child 1, because child 0 also takes all keys less than its first key.
    (1..<children.count).partitionPoint { position in
      if digest < children[position].first { return true }
      // If two digests are equal but do not imply equal keys, only the keys decide. The child's first key is in the leftmost leaf below the
      // child, and reading the key costs a descent to this leaf.
      if Entry.isDigestExact || children[position].first < digest { return false }
      return children[position].node.first.map { key < $0.key } ?? false
    } - 1
  }
}

extension Range<Int> {
  /// Returns the first position at which a monotone condition holds, or the end of the range if there is none.
  @inline(__always)
  func partitionPoint(where isMet: (Int) -> Bool) -> Int {
    var (low, high) = (lowerBound, upperBound)
    while low < high {
      let middle = (low + high) / 2
      if isMet(middle) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}

extension PersistentTreeNode {
  /// Returns the entry of a key, or `nil` if the node does not hold the key.
  func find(_ key: Entry.Key, _ digest: Entry.Digest) -> Entry? {
    switch self {
    case .leaf(let entries):
      let position = Self.position(of: key, in: entries)
      return position < entries.count && entries[position].key == key ? entries[position] : nil
    case .inner(let children):
      return children[Self.position(of: key, digest, in: children)].node.find(key, digest)
    }
  }

  /// Visits the leaves below this node in the order of their keys.
  func forEachLeaf(_ visit: ([Entry]) -> Void) {
    switch self {
    case .leaf(let entries): visit(entries)
    case .inner(let children): for child in children { child.node.forEachLeaf(visit) }
    }
  }

  /// Returns the leaf that holds the first entry at or after a key, or `nil` if every key below this node is less than the key.
  func leaf(atOrAfter key: Entry.Key, _ digest: Entry.Digest) -> [Entry]? {
    switch self {
    case .leaf(let entries):
      guard let last = entries.last, !(last.key < key) else { return nil }
      return entries
    case .inner(let children):
      let position = Self.position(of: key, digest, in: children)
      if let leaf = children[position].node.leaf(atOrAfter: key, digest) { return leaf }
      // If the key lies between the last key of a child and the first key of the next child, the next child begins with the first entry
      // after the key.
      return position + 1 < children.count ? children[position + 1].node.leaf(atOrAfter: key, digest) : nil
    }
  }

  /// Returns the rank within this node of the first entry whose key meets a monotone predicate, or the number of entries if there is none.
  func rank(whereFirst isAtOrAfter: (Entry.Key) -> Bool, byDigest answer: (Entry.Digest) -> Bool?) -> Int {
    switch self {
    case .leaf(let entries):
      return (0..<entries.count).partitionPoint { isAtOrAfter(entries[$0].key) }
    case .inner(let children):
      // The last child whose first key does not meet the predicate either holds the sought entry or ends directly before the sought entry.
      let position =
        (1..<children.count).partitionPoint { position in
          answer(children[position].first) ?? children[position].node.first.map { isAtOrAfter($0.key) } ?? true
        } - 1
      var before = 0
      for child in 0..<position { before += children[child].count }
      return before + children[position].node.rank(whereFirst: isAtOrAfter, byDigest: answer)
    }
  }

  /// Returns the entry at a rank within this node.
  func entry(at rank: Int) -> Entry {
    switch self {
    case .leaf(let entries):
      return entries[rank]
    case .inner(let children):
      // An inner node has few children, so a loop over their counts is fast enough.
      var (index, rank) = (0, rank)
      while rank >= children[index].count {
        rank -= children[index].count
        index += 1
      }
      return children[index].node.entry(at: rank)
    }
  }

  /// Visits the entries of a non-empty range of ranks within this node, until `body` returns `false`.
  ///
  /// - Returns: False if `body` ended the visit.
  func visit<Failure: Error>(_ ranks: Range<Int>, _ body: (Entry) throws(Failure) -> Bool) throws(Failure) -> Bool {
    switch self {
    case .leaf(let entries):
      for index in ranks { if try !body(entries[index]) { return false } }
    case .inner(let children):
      var start = 0
      for child in children {
        let end = start + child.count
        if start >= ranks.upperBound { return true }
        if end > ranks.lowerBound {
          let inside = max(ranks.lowerBound, start) - start..<min(ranks.upperBound, end) - start
          if try !child.node.visit(inside, body) { return false }
        }
        start = end
      }
    }
    return true
  }

  /// Visits the entries of a non-empty range of ranks within this node from the last to the first, until `body` returns `false`.
  ///
  /// - Returns: False if `body` ended the visit.
  func visitReversed<Failure: Error>(_ ranks: Range<Int>, _ body: (Entry) throws(Failure) -> Bool) throws(Failure) -> Bool {
    switch self {
    case .leaf(let entries):
      for index in ranks.reversed() { if try !body(entries[index]) { return false } }
    case .inner(let children):
      var end = children.reduce(0) { $0 + $1.count }
      for child in children.reversed() {
        let start = end - child.count
        if end <= ranks.lowerBound { return true }
        if start < ranks.upperBound {
          let inside = max(ranks.lowerBound, start) - start..<min(ranks.upperBound, end) - start
          if try !child.node.visitReversed(inside, body) { return false }
        }
        end = start
      }
    }
    return true
  }

  /// Entry with the least key below this node.
  var first: Entry? {
    switch self {
    case .leaf(let entries): entries.first
    case .inner(let children): children.first?.node.first
    }
  }
}
