/// The posting list of a word of a query, in one of two forms that design note 0010 measures.
///
/// A prefix counts as one word with several spellings.
enum PostingList {
  /// For one spelling, or few records.
  case tree(PersistentTree<TextPosting>)
  /// For many spellings or common ones: a table by record number, made for one search. Records without the word have zeros.
  case table([Tally], count: Int)

  /// The frequency of a word in a record, and the record's length, which ranking needs with it.
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

  /// Visits the records in blocks, by ascending number.
  func forEachBlock(_ visit: ([TextPosting]) -> Void) {
    switch self {
    case .tree(let tree): tree.forEachLeaf(visit)
    case .table(let tallies, _):
      // 256 postings of 12 bytes stay in the processor's cache while they are scored.
      for start in stride(from: 0, to: tallies.count, by: 256) {
        let part = tallies[start..<min(start + 256, tallies.count)]
        // Every posting is written and kept only if it has the word. A branch over the others would be mispredicted half of the time.
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

  /// Creates the union of several spellings with their frequencies added.
  ///
  /// `numbers` must be greater than any record number.
  init(union spellings: [Postings], numbers: Int) {
    // One spelling is a list already, shared without a copy.
    guard spellings.count > 1 else {
      self = .tree(spellings.first?.tree ?? PersistentTree())
      return
    }
    // A table costs a read of every number. Sorting many postings costs far more than that, sorting few costs less.
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
    // Without the pointer, each access would check for a shared array and its bounds.
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

/// A forward-only cursor through a posting list, which returns the word's frequency in records of ascending number.
struct PostingCursor {
  private let table: [PostingList.Tally]?
  private var cursor: PersistentTreeCursor<TextPosting>

  init(_ list: PostingList) {
    (table, cursor) =
      switch list {
      case .tree(let tree): (nil, PersistentTreeCursor(tree))
      // The cursor of an empty tree fills the field and is never moved.
      case .table(let tallies, _): (tallies, PersistentTreeCursor(PersistentTree()))
      }
  }

  /// Returns the frequency of the word in a record, or 0 if it does not occur.
  ///
  /// Record numbers must not descend from call to call.
  mutating func frequency(_ number: UInt32) -> UInt32 {
    if let table { return table[Int(number)].frequency }
    return cursor.move(to: number) ? cursor.current.frequency : 0
  }
}

/// A block of records of the shortest posting list, with their scores so far.
///
/// It is reused for each block, so that it stays in the cache.
///
/// Records that cannot reach the score to beat, even with the most that the other words can add, are dropped early.
struct PostingBlock {
  private(set) var postings: [TextPosting] = []
  private(set) var scores: [Double] = []

  /// Loads the records of a block whose initial score and first word add up to at least `least`.
  mutating func load(
    _ block: [TextPosting], weight: Double, _ ranking: BM25, startingAt whole: inout WholeWords, atLeast least: Double
  ) {
    // The capacity is kept, so that a search allocates its block once.
    postings.removeAll(keepingCapacity: true)
    scores.removeAll(keepingCapacity: true)
    for posting in block {
      let score = whole.start(posting.number) + ranking.score(weight: weight, frequency: posting.frequency, length: posting.length)
      guard score >= least else { continue }
      postings.append(posting)
      scores.append(score)
    }
  }

  /// Keeps the records that also hold another word, if their score then is at least `least`.
  mutating func keep(_ cursor: inout PostingCursor, weight: Double, _ ranking: BM25, atLeast least: Double) {
    var kept = 0
    for (index, posting) in postings.enumerated() {
      let frequency = cursor.frequency(posting.number)
      // Every word must occur, so a record without this one is no result.
      guard frequency > 0 else { continue }
      let score = scores[index] + ranking.score(weight: weight, frequency: frequency, length: posting.length)
      guard score >= least else { continue }
      // Compacted in place: a new array for each word of each block would cost more than the scores.
      (postings[kept], scores[kept]) = (posting, score)
      kept += 1
    }
    postings.removeSubrange(kept...)
    scores.removeSubrange(kept...)
  }
}

/// The initial scores of records, read by ascending number: a bonus where the prefix of a query is a word of its own.
///
/// A value that is passed on, not a closure: Swift checks exclusive access to captured variables at every use, which would cost more than
/// the scores.
struct WholeWords {
  private var words: [Word] = []
  private let bonus: Double

  /// Creates the scores from the postings of each prefix as a word.
  ///
  /// `numbers` must be greater than any record number.
  init(_ words: [PersistentTree<TextPosting>], bonus: Double, numbers: Int) {
    self.bonus = bonus
    self.words = words.map { Word($0, numbers: numbers) }
  }

  /// Returns the initial score of a record.
  mutating func start(_ number: UInt32) -> Double {
    var sum = 0.0
    for index in words.indices where words[index].isIn(number) { sum += bonus }
    return sum
  }

  private struct Word {
    /// One flag for each record number if the word is common, which is quicker than a search for each record, or none otherwise.
    private var isHolder: [Bool] = []
    private var cursor: PersistentTreeCursor<TextPosting>

    init(_ postings: PersistentTree<TextPosting>, numbers: Int) {
      cursor = PersistentTreeCursor(postings)
      // For a rarer word, filling the table costs more than the searches that it saves.
      guard postings.count > numbers / 32 else { return }
      isHolder = [Bool](repeating: false, count: numbers)
      postings.forEachLeaf { leaf in for posting in leaf { isHolder[Int(posting.number)] = true } }
    }

    mutating func isIn(_ number: UInt32) -> Bool { isHolder.isEmpty ? cursor.move(to: number) : isHolder[Int(number)] }
  }
}
