/// A place in a tree that moves forward: cheap for a sequence of ascending keys.
struct SummaryTreeCursor<Entry: SummaryTreeEntry> {
  private let tree: SummaryTree<Entry>
  private var leaf: [Entry] = []
  private var index = 0

  init(_ tree: SummaryTree<Entry>) { self.tree = tree }

  /// The first entry at or after a key; no key may be before the one asked for last.
  mutating func seek(_ key: Entry.Key) -> Entry? {
    if let last = leaf.last, !(last.key < key) {
      // Steps that double, then halves between the last two: near places are found at once.
      var (low, step) = (index, 1)
      while low + step < leaf.count, leaf[low + step].key < key {
        low += step
        step *= 2
      }
      var high = min(low + step, leaf.count - 1)
      while low < high {
        let middle = (low + high) / 2
        if leaf[middle].key < key { low = middle + 1 } else { high = middle }
      }
      index = low
      return leaf[low]
    }
    guard let next = tree.leaf(atOrAfter: key) else { return nil }
    leaf = next
    index = SummaryTreeNode.place(of: key, in: leaf)
    return leaf[index]
  }
}
