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
