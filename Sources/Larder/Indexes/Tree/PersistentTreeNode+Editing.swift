// Each edit takes the array out of the node before it changes it, and puts it back: otherwise the node would hold a second reference, and
// the array would be copied each time.
extension SummaryTreeNode {
  /// Inserts, and returns the right half if the node became too wide.
  mutating func insert(_ entry: Entry, replacing old: inout Entry?) -> SummaryTreeNode? {
    switch self {
    case .leaf(var entries):
      self = .leaf([])
      defer { self = .leaf(entries) }
      let place = Self.place(of: entry.key, in: entries)
      if place < entries.count, entries[place].key == entry.key {
        old = entries[place]
        entries[place] = entry
        return nil
      }
      entries.insert(entry, at: place)
      guard entries.count > Entry.leafCapacity else { return nil }
      // Where entries come in order, full leaves stay full.
      let middle = place == entries.count - 1 ? entries.count - 1 : entries.count / 2
      let right = Array(entries[middle...])
      entries.removeSubrange(middle...)
      return .leaf(right)
    case .inner(var children):
      self = .leaf([])
      defer { self = .inner(children) }
      let place = Self.place(of: entry.key, in: children)
      let right = children[place].node.insert(entry, replacing: &old)
      if right != nil || old != nil {
        children[place].refresh()
      } else {
        children[place].count += 1
        children[place].summary.formUnion(Entry.Summary(entry))
        if entry.key < children[place].first { children[place].first = entry.key }
      }
      guard let right, let child = Child(right) else { return nil }
      children.insert(child, at: place + 1)
      guard children.count > Self.fanOut else { return nil }
      let middle = place + 1 == children.count - 1 ? children.count - 1 : children.count / 2
      let rest = Array(children[middle...])
      children.removeSubrange(middle...)
      return .inner(rest)
    }
  }

  mutating func update(_ key: Entry.Key, _ body: (inout Entry) -> Void) -> Bool {
    switch self {
    case .leaf(var entries):
      let place = Self.place(of: key, in: entries)
      guard place < entries.count, entries[place].key == key else { return false }
      self = .leaf([])
      body(&entries[place])
      self = .leaf(entries)
      return true
    case .inner(var children):
      self = .leaf([])
      defer { self = .inner(children) }
      let place = Self.place(of: key, in: children)
      guard children[place].node.update(key, body) else { return false }
      if Entry.Summary.self != NoSummary<Entry>.self { children[place].refresh() }
      return true
    }
  }

  mutating func remove(_ key: Entry.Key) -> Entry? {
    switch self {
    case .leaf(var entries):
      let place = Self.place(of: key, in: entries)
      guard place < entries.count, entries[place].key == key else { return nil }
      self = .leaf([])
      defer { self = .leaf(entries) }
      return entries.remove(at: place)
    case .inner(var children):
      self = .leaf([])
      defer { self = .inner(children) }
      let place = Self.place(of: key, in: children)
      guard let old = children[place].node.remove(key) else { return nil }
      if children[place].node.width == 0 {
        children.remove(at: place)
      } else {
        children[place].refresh()
        Self.merge(&children, around: place)
      }
      return old
    }
  }

  /// Joins a child that became narrow with one beside it, if both fit.
  private static func merge(_ children: inout [Child], around place: Int) {
    let capacity = children[place].node.isLeaf ? Entry.leafCapacity : fanOut
    guard children[place].node.width * 4 < capacity, children.count > 1 else { return }
    let left = place > 0 ? place - 1 : place
    let joined: SummaryTreeNode
    switch (children[left].node, children[left + 1].node) {
    case (.leaf(let first), .leaf(let second)) where first.count + second.count <= capacity: joined = .leaf(first + second)
    case (.inner(let first), .inner(let second)) where first.count + second.count <= capacity: joined = .inner(first + second)
    default: return
    }
    guard let child = Child(joined) else { return }
    children[left] = child
    children.remove(at: left + 1)
  }
}

extension SummaryTreeNode.Child {
  /// Takes the key, count and summary from the node anew.
  fileprivate mutating func refresh() {
    guard let fresh = Self(node) else { return }  // an empty child is removed instead
    (first, count, summary) = (fresh.first, fresh.count, fresh.summary)
  }
}
