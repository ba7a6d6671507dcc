internal import Foundation

/// The entries that were added to a sorted run of keys and removed from it, for a run that does not change itself.
struct EntryEdits: Sendable {
  /// Entries that the run does not have.
  private(set) var added = PersistentTree<IndexEntry>()
  /// Entries of the run that were removed.
  private(set) var removed = PersistentTree<IndexEntry>()

  var isEmpty: Bool { added.isEmpty && removed.isEmpty }

  /// Applies the change of a record's entry.
  mutating func replace(_ old: IndexEntry?, with new: IndexEntry?) {
    if let old, let new, old == new {
      // The key in the run stays as it is. An entry in memory has the revision of its record, so it is replaced.
      if added.find(old) != nil { added.insert(new) }
      return
    }
    if let old, added.remove(old) == nil { removed.insert(old) }
    if let new, removed.remove(new) == nil { added.insert(new) }
  }
}

extension PersistentTree<IndexEntry> {
  /// Returns the ranks of the entries whose keys lie in a range.
  func ranks(from lower: Data, below upper: Data?) -> Range<Int> {
    if isEmpty { return 0..<0 }
    let start = rank(whereFirst: { !IndexKey.bytes(of: $0).precedes(lower) })
    let end = upper.map { upper in rank(whereFirst: { !IndexKey.bytes(of: $0).precedes(upper) }) } ?? count
    return start..<Swift.max(start, end)
  }
}
