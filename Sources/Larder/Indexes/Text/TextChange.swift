/// A change of a record in an index of words: the texts that it had, and those that it has now.
struct TextChange {
  let old: (slot: RecordSlot, texts: [String])?
  let new: (slot: RecordSlot, texts: [String])?
}

/// Edits of the postings of words, which are gathered and then made word by word.
struct PostingEdits {
  private var edits: [(term: Term, edit: Edit)] = []

  /// The new posting of a record, or that it has none any more.
  struct Edit {
    let number: UInt32
    let posting: TextPosting?
  }

  mutating func add(_ posting: TextPosting?, _ number: UInt32, _ term: Term) {
    edits.append((term, Edit(number: number, posting: posting)))
  }

  /// Returns the edits of each word, those of one record in their order, and forgets them.
  mutating func removeAll() -> [(term: Term, edits: [Edit])] {
    let all = edits
    edits = []
    var groups: [(term: Term, edits: [Edit])] = []
    // In the order of the words, so that edits that are beside each other in the tree come one after the other.
    for position in all.indices.sorted(by: { all[$0].term == all[$1].term ? $0 < $1 : all[$0].term < all[$1].term }) {
      let (term, edit) = all[position]
      if groups.last?.term == term {
        groups[groups.count - 1].edits.append(edit)
      } else {
        groups.append((term, [edit]))
      }
    }
    return groups
  }
}
