/// A node of a ``SummaryTree``: entries, or children that are as deep as each other.
enum SummaryTreeNode<Entry: SummaryTreeEntry>: Sendable {
  case leaf([Entry])
  case inner([Child])

  /// How many children a node has at most; few, as an edit beside a copy counts the references of all on its path.
  static var fanOut: Int { 8 }

  /// A node below another, never empty, with what finds the way to it.
  struct Child: Sendable {
    var first: Entry.Key
    var count: Int
    var summary: Entry.Summary
    var node: SummaryTreeNode

    init?(_ node: SummaryTreeNode) {
      switch node {
      case .leaf(let entries):
        guard let first = entries.first else { return nil }
        self.first = first.key
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

  /// How many entries or children it has.
  var width: Int {
    switch self {
    case .leaf(let entries): entries.count
    case .inner(let children): children.count
    }
  }

  var isLeaf: Bool { if case .leaf = self { true } else { false } }

  /// The first place whose key is not before `key`.
  static func place(of key: Entry.Key, in entries: [Entry]) -> Int {
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].key < key { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// The child that holds `key`, if any does.
  static func place(of key: Entry.Key, in children: [Child]) -> Int {
    var (low, high) = (1, children.count)
    while low < high {
      let middle = (low + high) / 2
      if key < children[middle].first { high = middle } else { low = middle + 1 }
    }
    return low - 1
  }
}

extension SummaryTreeNode {
  func find(_ key: Entry.Key) -> Entry? {
    switch self {
    case .leaf(let entries):
      let place = Self.place(of: key, in: entries)
      return place < entries.count && entries[place].key == key ? entries[place] : nil
    case .inner(let children):
      return children[Self.place(of: key, in: children)].node.find(key)
    }
  }

  func forEach(from key: Entry.Key, _ visit: (Entry) -> Bool) -> Bool {
    switch self {
    case .leaf(let entries):
      for index in Self.place(of: key, in: entries)..<entries.count where !visit(entries[index]) { return false }
    case .inner(let children):
      for index in Self.place(of: key, in: children)..<children.count where !children[index].node.forEach(from: key, visit) {
        return false
      }
    }
    return true
  }

  func forEachLeaf(_ visit: ([Entry]) -> Void) {
    switch self {
    case .leaf(let entries): visit(entries)
    case .inner(let children): for child in children { child.node.forEachLeaf(visit) }
    }
  }

  func leaf(atOrAfter key: Entry.Key) -> [Entry]? {
    switch self {
    case .leaf(let entries):
      guard let last = entries.last, !(last.key < key) else { return nil }
      return entries
    case .inner(let children):
      let place = Self.place(of: key, in: children)
      if let leaf = children[place].node.leaf(atOrAfter: key) { return leaf }
      return place + 1 < children.count ? children[place + 1].node.leaf(atOrAfter: key) : nil
    }
  }

  func neighbours(of key: Entry.Key, _ before: inout Entry?, _ after: inout Entry?) {
    switch self {
    case .leaf(let entries):
      let place = Self.place(of: key, in: entries)
      if place > 0 { before = entries[place - 1] }
      let next = place < entries.count && entries[place].key == key ? place + 1 : place
      if next < entries.count { after = entries[next] }
    case .inner(let children):
      let place = Self.place(of: key, in: children)
      children[place].node.neighbours(of: key, &before, &after)
      if before == nil, place > 0 { before = children[place - 1].node.last }
      if after == nil, place + 1 < children.count { after = children[place + 1].node.first }
    }
  }

  var first: Entry? {
    switch self {
    case .leaf(let entries): entries.first
    case .inner(let children): children.first?.node.first
    }
  }

  var last: Entry? {
    switch self {
    case .leaf(let entries): entries.last
    case .inner(let children): children.last?.node.last
    }
  }
}
