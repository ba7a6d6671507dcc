/// The records that hold a word of a query, which may have several spellings.
enum PostingList {
  /// In ascending order of their numbers.
  case tree(SummaryTree<TextPosting>)
  /// By number: frequency and length, or zeros. For many spellings or common ones, made for one search.
  case table(frequencies: [UInt32], lengths: [UInt32], count: Int)

  var count: Int {
    switch self {
    case .tree(let tree): tree.count
    case .table(_, _, let count): count
    }
  }

  var isEmpty: Bool { count == 0 }

  /// Visits number, frequency and length of each record, by number.
  @inline(__always) func forEach(_ visit: (TextPosting) -> Void) {
    switch self {
    case .tree(let tree):
      tree.forEachLeaf { leaf in
        for posting in leaf { visit(posting) }
      }
    case .table(let frequencies, let lengths, _):
      for number in frequencies.indices where frequencies[number] > 0 {
        visit(TextPosting(number: UInt32(number), frequency: frequencies[number], length: lengths[number]))
      }
    }
  }

  /// Adds the frequencies of several words as if they were one; `numbers` is greater than any number in them.
  init(union spellings: [SummaryTree<TextPosting>], numbers: Int) {
    let total = spellings.reduce(0) { $0 + $1.count }
    if spellings.count <= 1 {
      self = .tree(spellings.first ?? SummaryTree())
    } else if total < numbers / 16 {
      self = .tree(SummaryTree(sorted: Self.sortedUnion(spellings, total: total)))
    } else {
      self = Self.table(spellings, numbers: numbers)
    }
  }

  private static func sortedUnion(_ spellings: [SummaryTree<TextPosting>], total: Int) -> [TextPosting] {
    var all: [TextPosting] = []
    all.reserveCapacity(total)
    for spelling in spellings { spelling.forEachLeaf { all += $0 } }
    all.sort { $0.number < $1.number }
    var union: [TextPosting] = []
    union.reserveCapacity(total)
    for posting in all {
      if let last = union.indices.last, union[last].number == posting.number {
        union[last].frequency += posting.frequency
      } else {
        union.append(posting)
      }
    }
    return union
  }

  private static func table(_ spellings: [SummaryTree<TextPosting>], numbers: Int) -> PostingList {
    var frequencies = [UInt32](repeating: 0, count: numbers)
    var lengths = frequencies
    var count = 0
    frequencies.withUnsafeMutableBufferPointer { frequencies in
      lengths.withUnsafeMutableBufferPointer { lengths in
        for spelling in spellings {
          spelling.forEachLeaf { leaf in
            for posting in leaf {
              let place = Int(posting.number)
              count += frequencies[place] == 0 ? 1 : 0
              frequencies[place] += posting.frequency
              lengths[place] = posting.length
            }
          }
        }
      }
    }
    return .table(frequencies: frequencies, lengths: lengths, count: count)
  }
}

/// Asks a list for the frequency in one record after the other, by ascending number.
struct PostingCursor {
  private let frequencies: [UInt32]
  private var cursor: SummaryTreeCursor<TextPosting>?

  init(_ list: PostingList) {
    switch list {
    case .tree(let tree): (frequencies, cursor) = ([], SummaryTreeCursor(tree))
    case .table(let frequencies, _, _): (self.frequencies, cursor) = (frequencies, nil)
    }
  }

  /// How often the word is in a record; 0 if it is not.
  mutating func frequency(_ number: UInt32) -> UInt32 {
    if cursor == nil { return frequencies[Int(number)] }
    guard let found = cursor?.seek(number), found.number == number else { return 0 }
    return found.frequency
  }
}
