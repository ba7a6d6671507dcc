/// The records that hold a word of a query, which may have several spellings; see note 0010 on its two forms.
enum PostingList {
  /// One spelling, or few records.
  case tree(PersistentTree<TextPosting>)
  /// By number: how often and of how many words, or zeros. For many spellings or common ones, made for one search.
  case table([Tally], count: Int)

  /// The frequency of a word in a record, beside the length of the record, which is needed with it.
  struct Tally {
    var frequency: UInt32 = 0
    var length: UInt32 = 0
  }

  var count: Int {
    switch self {
    case .tree(let tree): tree.count
    case .table(_, let count): count
    }
  }

  var isEmpty: Bool { count == 0 }

  /// Visits the records in blocks, by number.
  func forEachBlock(_ visit: ([TextPosting]) -> Void) {
    switch self {
    case .tree(let tree): tree.forEachLeaf(visit)
    case .table(let tallies, _):
      for start in stride(from: 0, to: tallies.count, by: 256) {
        let part = tallies[start..<min(start + 256, tallies.count)]
        // Each is written, and stays if there is something: to jump over those without would be guessed wrong half of the time.
        let block = [TextPosting](unsafeUninitializedCapacity: part.count) { block, count in
          var filled = 0
          for number in part.indices {
            let tally = part[number]
            block.initializeElement(
              at: filled, to: TextPosting(number: UInt32(truncatingIfNeeded: number), frequency: tally.frequency, length: tally.length))
            filled += tally.frequency == 0 ? 0 : 1
          }
          count = filled
        }
        visit(block)
      }
    }
  }

  /// Adds the frequencies of several words as if they were one; `numbers` is greater than any number in them.
  init(union spellings: [Postings], numbers: Int) {
    guard spellings.count > 1 else {
      self = .tree(spellings.first?.tree ?? PersistentTree())
      return
    }
    // A table costs a look at every number, which sorting many postings exceeds by far, and few do not.
    let isRare = spellings.reduce(0) { $0 + $1.count } < numbers / 16
    self = isRare ? .tree(PersistentTree(sorted: Self.union(spellings))) : Self.table(spellings, numbers: numbers)
  }

  private static func union(_ spellings: [Postings]) -> [TextPosting] {
    var all: [TextPosting] = []
    for spelling in spellings { spelling.forEach { all.append($0) } }
    all.sort { $0.number < $1.number }
    return all.reduce(into: []) { union, posting in
      if let last = union.indices.last, union[last].number == posting.number {
        union[last].frequency += posting.frequency
      } else {
        union.append(posting)
      }
    }
  }

  private static func table(_ spellings: [Postings], numbers: Int) -> PostingList {
    var tallies = [Tally](repeating: Tally(), count: numbers)
    var count = 0
    tallies.withUnsafeMutableBufferPointer { tallies in
      for spelling in spellings {
        spelling.forEach { posting in
          let tally = tallies[Int(posting.number)]
          count += tally.frequency == 0 ? 1 : 0
          tallies[Int(posting.number)] = Tally(frequency: tally.frequency + posting.frequency, length: posting.length)
        }
      }
    }
    return .table(tallies, count: count)
  }
}

/// A cursor through a list, which gives the frequency in one record after the other, by ascending number.
struct PostingCursor {
  private let table: [PostingList.Tally]?
  private var cursor: PersistentTreeCursor<TextPosting>

  init(_ list: PostingList) {
    (table, cursor) =
      switch list {
      case .tree(let tree): (nil, PersistentTreeCursor(tree))
      case .table(let tallies, _): (tallies, PersistentTreeCursor(PersistentTree()))
      }
  }

  /// Returns how often the word is in a record; 0 if it is not.
  mutating func frequency(_ number: UInt32) -> UInt32 {
    if let table { return table[Int(number)].frequency }
    return cursor.move(to: number) ? cursor.current.frequency : 0
  }
}
