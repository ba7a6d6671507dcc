// Each edit takes the array of entries or children out of the node, changes the array, and puts the array back. If the node kept the array
// during the change, the array would have a second owner, and each change would copy the array.
extension PersistentTreeNode {
  /// Inserts an entry, and returns a new right sibling if the node exceeded its capacity and was split.
  ///
  /// - Parameter isLast: True if this node is the last node of its level in the tree.
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
      // A split changes all fields of the child, so all fields are recomputed. An insertion without a split updates single fields of the
      // child without reading the child's node. A replacement recomputes the child's fields only in a tree with a summary.
      if right != nil {
        children[position].refresh()
      } else if old != nil {
        children[position].refresh(replacing: digest)
      } else {
        children[position].count += 1
        children[position].summary.formUnion(Entry.Summary(entry))
        // An entry that comes before all entries of the node goes into its first child, so only this child's first digest can change.
        if position == 0, digest < children[0].first { children[0].first = digest }
      }
      guard let right, let child = Child(right) else { return nil }
      children.insert(child, at: position + 1)
      return Self.splitOff(&children, capacity: Entry.fanOut, isAppended: isLast).map { .inner($0) }
    }
  }

  /// Splits the elements of a node with more elements than its capacity, and returns the right part.
  ///
  /// If the new element is the last of the whole tree, only the new element moves to the right part. Moving only the last element lets a
  /// series of insertions with ascending keys fill each node before the next node is created. If the new element is not the last of the
  /// tree, the node is split in the middle.
  private static func splitOff<Element>(_ elements: inout [Element], capacity: Int, isAppended: Bool) -> [Element]? {
    guard elements.count > capacity else { return nil }
    let middle = isAppended ? elements.count - 1 : elements.count / 2
    let right = Array(elements[middle...])
    elements.removeSubrange(middle...)
    return right
  }

  /// Changes the entry of a key in place and returns true, or returns false if the node does not hold the key.
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

  /// Removes the entry of a key and returns the entry, or `nil` if the node does not hold the key.
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
      // An empty child is removed, because a child's digest and summary are computed from its entries.
      if children[position].node.width == 0 {
        children.remove(at: position)
      } else {
        children[position].refresh(without: digest)
        Self.mend(&children, at: position)
      }
      return old
    }
  }

  /// Joins a child that has too few elements with its sibling, and splits the result evenly if it is too large for one node.
  private static func mend(_ children: inout [Child], at position: Int) {
    let capacity = children[position].node.isLeaf ? Entry.leafCapacity : Entry.fanOut
    // A child is joined with its sibling if it has fewer elements than a quarter of the capacity. With half the capacity as the limit, an
    // insertion and a removal in turn could split and join the same nodes each time.
    guard children[position].node.width < fewest(of: capacity), children.count > 1 else { return }
    let left = position > 0 ? position - 1 : position
    let joined: [PersistentTreeNode]
    switch (children[left].node, children[left + 1].node) {
    case (.leaf(let first), .leaf(let second)): joined = parts(of: first + second, capacity: capacity).map { .leaf($0) }
    case (.inner(let first), .inner(let second)): joined = parts(of: first + second, capacity: capacity).map { .inner($0) }
    // All leaves of a tree are at the same depth, so a leaf never has an inner node as its sibling.
    default: return
    }
    children.replaceSubrange(left...left + 1, with: joined.compactMap { Child($0) })
  }

  private static func parts<Element>(of elements: [Element], capacity: Int) -> [[Element]] {
    if elements.count <= capacity { return [elements] }
    let middle = elements.count / 2
    return [Array(elements[..<middle]), Array(elements[middle...])]
  }

  /// Returns the least number of entries or children of a node below the root, for a node of the given capacity.
  ///
  /// The last node of each level may have fewer elements than the returned number, for example after an insertion at the end of the tree,
  /// which moves one element to a new node.
  ///
  /// The returned number is at least two, so that each child has a sibling with which it can be joined, except for children of a level's
  /// last node.
  static func fewest(of capacity: Int) -> Int { max(2, capacity / 4) }
}

extension PersistentTreeNode.Child {
  /// Recomputes the child's first digest, count and summary from its node.
  fileprivate mutating func refresh() {
    guard let fresh = Self(node) else { return }  // the node is never empty, because callers remove empty children
    (first, count, summary) = (fresh.first, fresh.count, fresh.summary)
  }

  /// Recomputes the child's summary after a change of an entry that kept its key.
  fileprivate mutating func refreshSummary() {
    // For `NoSummary` nothing is recomputed, which saves a read of all entries or children of the node.
    if Entry.Summary.self != NoSummary<Entry>.self { refresh() }
  }

  /// Updates the child's fields after an entry was replaced by an entry with the same key, whose digest is `digest`.
  fileprivate mutating func refresh(replacing digest: Entry.Digest) {
    // A digest may refer to an object of its entry. If the child takes over the equal digest of the new entry, the object of the replaced
    // entry can be freed.
    if digest == first { first = digest }
    refreshSummary()
  }

  /// Updates the child's fields after the removal of an entry whose digest is `digest`.
  fileprivate mutating func refresh(without digest: Entry.Digest) {
    guard Entry.Summary.self == NoSummary<Entry>.self else { return refresh() }
    count -= 1
    // The child's first digest can change only if the removed entry had the same digest. If the digests differ, `refresh` does not descend
    // to the leaf of the first entry.
    if digest == first, let entry = node.first { first = Entry.digest(entry.key) }
  }
}
