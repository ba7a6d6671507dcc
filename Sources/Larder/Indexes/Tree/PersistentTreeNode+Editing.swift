// Each edit takes the array out of the node before it changes it, and puts it back. Otherwise the node would hold a second reference, and
// the array would be copied each time.
extension PersistentTreeNode {
  /// Inserts an entry, and returns the right half of the node if it became too wide.
  ///
  /// - Parameter isLast: True if no node of the tree comes after this one.
  mutating func insert(
    _ entry: Entry, _ digest: Entry.Digest, isLast: Bool, replacing old: inout Entry?
  ) -> PersistentTreeNode? {
    switch self {
    case .leaf(var entries):
      self = .leaf([])
      defer { self = .leaf(entries) }
      let position = Self.position(of: entry.key, in: entries)
      if position < entries.count, entries[position].key == entry.key {
        old = entries[position]
        entries[position] = entry
        return nil
      }
      entries.insert(entry, at: position)
      return Self.splitOff(&entries, capacity: Entry.leafCapacity, isAppended: isLast && position == entries.count - 1).map { .leaf($0) }
    case .inner(var children):
      self = .leaf([])
      defer { self = .inner(children) }
      let position = Self.position(of: entry.key, digest, in: children)
      let isLast = isLast && position == children.count - 1
      let right = children[position].node.insert(entry, digest, isLast: isLast, replacing: &old)
      // After a split all fields of the child have changed. The other cases update single fields and save a read of the node.
      if right != nil {
        children[position].refresh()
      } else if old != nil {
        children[position].refresh(replacing: digest)
      } else {
        children[position].count += 1
        children[position].summary.formUnion(Entry.Summary(entry))
        // Only the first child of a node receives entries before the node's first one.
        if position == 0, digest < children[0].first { children[0].first = digest }
      }
      guard let right, let child = Child(right) else { return nil }
      children.insert(child, at: position + 1)
      return Self.splitOff(&children, capacity: Entry.fanOut, isAppended: isLast).map { .inner($0) }
    }
  }

  /// Splits a node that has become too wide, and returns its right half.
  ///
  /// Keys that arrive in order leave full nodes behind: the last node of the tree gives off its last element only.
  private static func splitOff<Element>(_ elements: inout [Element], capacity: Int, isAppended: Bool) -> [Element]? {
    guard elements.count > capacity else { return nil }
    let middle = isAppended ? elements.count - 1 : elements.count / 2
    let right = Array(elements[middle...])
    elements.removeSubrange(middle...)
    return right
  }

  /// Changes the entry of a key in place, or returns false if there is none.
  mutating func update(_ key: Entry.Key, _ digest: Entry.Digest, _ body: (inout Entry) -> Void) -> Bool {
    switch self {
    case .leaf(var entries):
      let position = Self.position(of: key, in: entries)
      guard position < entries.count, entries[position].key == key else { return false }
      self = .leaf([])
      body(&entries[position])
      self = .leaf(entries)
      return true
    case .inner(var children):
      self = .leaf([])
      defer { self = .inner(children) }
      let position = Self.position(of: key, digest, in: children)
      guard children[position].node.update(key, digest, body) else { return false }
      children[position].refreshSummary()
      return true
    }
  }

  /// Removes the entry of a key and returns it, or `nil` if there is none.
  mutating func remove(_ key: Entry.Key, _ digest: Entry.Digest) -> Entry? {
    switch self {
    case .leaf(var entries):
      let position = Self.position(of: key, in: entries)
      guard position < entries.count, entries[position].key == key else { return nil }
      self = .leaf([])
      defer { self = .leaf(entries) }
      return entries.remove(at: position)
    case .inner(var children):
      self = .leaf([])
      defer { self = .inner(children) }
      let position = Self.position(of: key, digest, in: children)
      guard let old = children[position].node.remove(key, digest) else { return nil }
      // A child must not be empty: its digest and summary come from its first entry.
      if children[position].node.width == 0 {
        children.remove(at: position)
      } else {
        children[position].refresh(without: digest)
        Self.mend(&children, at: position)
      }
      return old
    }
  }

  /// Joins a narrow child with its sibling, and splits the result evenly if it is too wide.
  private static func mend(_ children: inout [Child], at position: Int) {
    let capacity = children[position].node.isLeaf ? Entry.leafCapacity : Entry.fanOut
    // A quarter of the capacity and not half: otherwise joining and splitting could alternate at one boundary.
    guard children[position].node.width < fewest(of: capacity), children.count > 1 else { return }
    let left = position > 0 ? position - 1 : position
    let joined: [PersistentTreeNode]
    switch (children[left].node, children[left + 1].node) {
    case (.leaf(let first), .leaf(let second)): joined = parts(of: first + second, capacity: capacity).map { .leaf($0) }
    case (.inner(let first), .inner(let second)): joined = parts(of: first + second, capacity: capacity).map { .inner($0) }
    // All children are equally deep, so a leaf never stands beside an inner node.
    default: return
    }
    children.replaceSubrange(left...left + 1, with: joined.compactMap { Child($0) })
  }

  private static func parts<Element>(of elements: [Element], capacity: Int) -> [[Element]] {
    if elements.count <= capacity { return [elements] }
    let middle = elements.count / 2
    return [Array(elements[..<middle]), Array(elements[middle...])]
  }

  /// Returns the least width of a node below the root.
  ///
  /// The last node of each level may be narrower.
  ///
  /// It is at least two, so that every child but the last has a sibling to be joined with.
  static func fewest(of capacity: Int) -> Int { max(2, capacity / 4) }
}

extension PersistentTreeNode.Child {
  /// Recomputes the first digest, the count and the summary from the node.
  fileprivate mutating func refresh() {
    guard let fresh = Self(node) else { return }  // an empty child is removed instead
    (first, count, summary) = (fresh.first, fresh.count, fresh.summary)
  }

  /// Recomputes the summary after a change of an entry that kept its key.
  fileprivate mutating func refreshSummary() {
    // Without a summary there is nothing to recompute, and a read of all entries is saved.
    if Entry.Summary.self != NoSummary<Entry>.self { refresh() }
  }

  /// Updates the fields after an entry was replaced by one with its key, which has this digest.
  fileprivate mutating func refresh(replacing digest: Entry.Digest) {
    // A digest may refer to the memory of its entry. The new digest lets the replaced entry go.
    if digest == first { first = digest }
    refreshSummary()
  }

  /// Updates the fields after the removal of an entry with this digest.
  fileprivate mutating func refresh(without digest: Entry.Digest) {
    guard Entry.Summary.self == NoSummary<Entry>.self else { return refresh() }
    count -= 1
    // Reading the first entry descends to its leaf, and it changes only if the removed one had its digest.
    if digest == first, let entry = node.first { first = Entry.digest(entry.key) }
  }
}
