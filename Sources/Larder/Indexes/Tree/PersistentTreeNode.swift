/// A node of a ``PersistentTree``: entries, or children that are as deep as each other.
enum PersistentTreeNode<Entry: TreeEntry>: Sendable {
  case leaf([Entry])
  case inner([Child])

  /// A node below another, never empty, with the digest of its first key, which finds the way to it.
  struct Child: Sendable {
    var first: Entry.Digest
    var count: Int
    var summary: Entry.Summary
    var node: PersistentTreeNode

    init?(_ node: PersistentTreeNode) {
      switch node {
      case .leaf(let entries):
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

  /// The number of its entries or children.
  var width: Int {
    switch self {
    case .leaf(let entries): entries.count
    case .inner(let children): children.count
    }
  }

  var isLeaf: Bool { if case .leaf = self { true } else { false } }

  /// Returns the position of the first entry whose key is not before `key`.
  @inline(__always)
  static func position(of key: Entry.Key, in entries: [Entry]) -> Int {
    (0..<entries.count).partitionPoint { !(entries[$0].key < key) }
  }

  /// Returns the position of the child that holds `key`, if any does.
  @inline(__always)
  static func position(of key: Entry.Key, _ digest: Entry.Digest, in children: [Child]) -> Int {
    (1..<children.count).partitionPoint { position in
      if digest < children[position].first { return true }
      // Only of keys with one digest is the first one of a child looked up.
      if Entry.isDigestExact || children[position].first < digest { return false }
      return children[position].node.first.map { key < $0.key } ?? false
    } - 1
  }
}

extension Range<Int> {
  /// Returns the first position at which a condition holds that holds at all later ones, too; the end if there is none.
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
  func find(_ key: Entry.Key, _ digest: Entry.Digest) -> Entry? {
    switch self {
    case .leaf(let entries):
      let position = Self.position(of: key, in: entries)
      return position < entries.count && entries[position].key == key ? entries[position] : nil
    case .inner(let children):
      return children[Self.position(of: key, digest, in: children)].node.find(key, digest)
    }
  }

  func forEachLeaf(_ visit: ([Entry]) -> Void) {
    switch self {
    case .leaf(let entries): visit(entries)
    case .inner(let children): for child in children { child.node.forEachLeaf(visit) }
    }
  }

  func leaf(atOrAfter key: Entry.Key, _ digest: Entry.Digest) -> [Entry]? {
    switch self {
    case .leaf(let entries):
      guard let last = entries.last, !(last.key < key) else { return nil }
      return entries
    case .inner(let children):
      let position = Self.position(of: key, digest, in: children)
      if let leaf = children[position].node.leaf(atOrAfter: key, digest) { return leaf }
      return position + 1 < children.count ? children[position + 1].node.leaf(atOrAfter: key, digest) : nil
    }
  }

  func rank(whereFirst isAtOrAfter: (Entry.Key) -> Bool, byDigest answer: (Entry.Digest) -> Bool?) -> Int {
    switch self {
    case .leaf(let entries):
      return (0..<entries.count).partitionPoint { isAtOrAfter(entries[$0].key) }
    case .inner(let children):
      // The last child that begins before: the entry is in it, or is the first of the next one.
      let position =
        (1..<children.count).partitionPoint { position in
          answer(children[position].first) ?? children[position].node.first.map { isAtOrAfter($0.key) } ?? true
        } - 1
      var before = 0
      for child in 0..<position { before += children[child].count }
      return before + children[position].node.rank(whereFirst: isAtOrAfter, byDigest: answer)
    }
  }

  func entry(at rank: Int) -> Entry {
    switch self {
    case .leaf(let entries):
      return entries[rank]
    case .inner(let children):
      var (index, rank) = (0, rank)
      while rank >= children[index].count {
        rank -= children[index].count
        index += 1
      }
      return children[index].node.entry(at: rank)
    }
  }

  /// Visits a range of ranks of this node that is not empty.
  /// - Returns: Whether to go on.
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

  /// Visits a range of ranks of this node that is not empty, from its end to its start.
  /// - Returns: Whether to go on.
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

  var first: Entry? {
    switch self {
    case .leaf(let entries): entries.first
    case .inner(let children): children.first?.node.first
    }
  }
}
