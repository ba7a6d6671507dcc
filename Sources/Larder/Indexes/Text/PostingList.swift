/// The records that hold a word of a query, which may have several spellings.
enum PostingList {
  /// One spelling, or few records.
  case tree(SummaryTree<TextPosting>)
  /// A common spelling and some rare ones: what these add, by number.
  case extended(SummaryTree<TextPosting>, extra: [TextPosting], count: Int)
  /// By number: how often and of how many words, or zeros. For many spellings or common ones, made for one search.
  case table([Tally], count: Int)

  /// How often a word is in a record, beside the length of the record, which is asked for with it.
  struct Tally {
    var frequency: UInt32 = 0
    var length: UInt32 = 0
  }

  var count: Int {
    switch self {
    case .tree(let tree): tree.count
    case .extended(_, _, let count), .table(_, let count): count
    }
  }

  var isEmpty: Bool { count == 0 }

  /// Visits the records in blocks, by number.
  func forEachBlock(_ visit: ([TextPosting]) -> Void) {
    switch self {
    case .tree(let tree): tree.forEachLeaf(visit)
    case .extended(let tree, let extra, _):
      var rest = extra[...]
      tree.forEachLeaf { leaf in
        guard let last = leaf.last, let next = rest.first, next.number <= last.number else { return visit(leaf) }
        let end = rest.firstIndex { $0.number > last.number } ?? rest.endIndex
        visit(Self.union(leaf, rest[..<end]))
        rest = rest[end...]
      }
      if !rest.isEmpty { visit(Array(rest)) }
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
  init(union spellings: [SummaryTree<TextPosting>], numbers: Int) {
    let total = spellings.reduce(0) { $0 + $1.count }
    let largest = spellings.indices.max { spellings[$0].count < spellings[$1].count }
    guard let largest, spellings.count > 1 else {
      self = .tree(spellings.first ?? SummaryTree())
      return
    }
    let common = spellings[largest]
    if total < numbers / 16 {
      self = .tree(SummaryTree(sorted: Self.union(spellings)))
    } else if total - common.count < numbers / 32 {
      let extra = Self.union(spellings[..<largest] + spellings[(largest + 1)...])
      var cursor = SummaryTreeCursor(common)
      self = .extended(common, extra: extra, count: common.count + extra.count { !cursor.move(to: $0.number) })
    } else {
      self = Self.table(spellings, numbers: numbers)
    }
  }

  private static func union(_ spellings: some Sequence<SummaryTree<TextPosting>>) -> [TextPosting] {
    var all: [TextPosting] = []
    for spelling in spellings { spelling.forEachLeaf { all += $0 } }
    all.sort { $0.number < $1.number }
    return all.reduce(into: []) { add($1, to: &$0) }
  }

  private static func union(_ leaf: [TextPosting], _ extra: ArraySlice<TextPosting>) -> [TextPosting] {
    var (union, rest) = ([TextPosting](), extra)
    union.reserveCapacity(leaf.count + extra.count)
    for posting in leaf {
      while let next = rest.first, next.number < posting.number { union.append(rest.removeFirst()) }
      union.append(posting)
      if let next = rest.first, next.number == posting.number { add(rest.removeFirst(), to: &union) }
    }
    return union + rest
  }

  private static func add(_ posting: TextPosting, to union: inout [TextPosting]) {
    if let last = union.indices.last, union[last].number == posting.number {
      union[last].frequency += posting.frequency
    } else {
      union.append(posting)
    }
  }

  private static func table(_ spellings: [SummaryTree<TextPosting>], numbers: Int) -> PostingList {
    var tallies = [Tally](repeating: Tally(), count: numbers)
    var count = 0
    tallies.withUnsafeMutableBufferPointer { tallies in
      for spelling in spellings {
        spelling.forEachLeaf { leaf in
          for posting in leaf {
            let tally = tallies[Int(posting.number)]
            count += tally.frequency == 0 ? 1 : 0
            tallies[Int(posting.number)] = Tally(frequency: tally.frequency + posting.frequency, length: posting.length)
          }
        }
      }
    }
    return .table(tallies, count: count)
  }
}

/// Asks a list for the frequency in one record after the other, by ascending number.
struct PostingCursor {
  private let table: [PostingList.Tally]?
  private let extra: [TextPosting]
  private var next = 0
  private var cursor: SummaryTreeCursor<TextPosting>

  init(_ list: PostingList) {
    (table, extra, cursor) =
      switch list {
      case .tree(let tree): (nil, [], SummaryTreeCursor(tree))
      case .extended(let tree, let extra, _): (nil, extra, SummaryTreeCursor(tree))
      case .table(let tallies, _): (tallies, [], SummaryTreeCursor(SummaryTree()))
      }
  }

  /// Returns how often the word is in a record; 0 if it is not.
  mutating func frequency(_ number: UInt32) -> UInt32 {
    if let table { return table[Int(number)].frequency }
    while next < extra.count, extra[next].number < number { next += 1 }
    let added = next < extra.count && extra[next].number == number ? extra[next].frequency : 0
    return cursor.move(to: number) ? added + cursor.current.frequency : added
  }
}
