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

/// Some records of the list that leads, with their scores so far; filled again for the next block, so that it stays in the cache.
///
/// Records that cannot reach the score to beat, whatever the other words add, are left out early.
struct PostingBlock {
  private(set) var postings: [TextPosting] = []
  private(set) var scores: [Double] = []

  /// Takes the records of a block that have at least the score `least` by what they start at and their first word.
  mutating func load(
    _ block: [TextPosting], weight: Double, _ ranking: BM25, startingAt whole: inout WholeWords, atLeast least: Double
  ) {
    postings.removeAll(keepingCapacity: true)
    scores.removeAll(keepingCapacity: true)
    for posting in block {
      let score = whole.start(posting.number) + ranking.score(weight: weight, frequency: posting.frequency, length: posting.length)
      guard score >= least else { continue }
      postings.append(posting)
      scores.append(score)
    }
  }

  /// Keeps the records that another word is in, too, if they then have at least the score `least`.
  mutating func keep(_ cursor: inout PostingCursor, weight: Double, _ ranking: BM25, atLeast least: Double) {
    var kept = 0
    for (index, posting) in postings.enumerated() {
      let frequency = cursor.frequency(posting.number)
      guard frequency > 0 else { continue }
      let score = scores[index] + ranking.score(weight: weight, frequency: frequency, length: posting.length)
      guard score >= least else { continue }
      (postings[kept], scores[kept]) = (posting, score)
      kept += 1
    }
    postings.removeSubrange(kept...)
    scores.removeSubrange(kept...)
  }
}

/// The scores that records begin with, one after the other by ascending number: a bonus where a prefix is a word of its own.
///
/// A value that is handed on and no closure: what closures capture is guarded at every access, which would cost more than the scores.
struct WholeWords {
  private var words: [Word] = []
  private let bonus: Double

  /// Takes the records that hold each prefix as a word; `numbers` is greater than any number in them.
  init(_ words: [PersistentTree<TextPosting>], bonus: Double, numbers: Int) {
    self.bonus = bonus
    self.words = words.map { Word($0, numbers: numbers) }
  }

  /// Returns the score that a record begins with.
  mutating func start(_ number: UInt32) -> Double {
    var sum = 0.0
    for index in words.indices where words[index].isIn(number) { sum += bonus }
    return sum
  }

  private struct Word {
    /// By number, for a common word: quicker than to look for each; empty for others.
    private var isHolder: [Bool] = []
    private var cursor: PersistentTreeCursor<TextPosting>

    init(_ postings: PersistentTree<TextPosting>, numbers: Int) {
      cursor = PersistentTreeCursor(postings)
      guard postings.count > numbers / 32 else { return }
      isHolder = [Bool](repeating: false, count: numbers)
      postings.forEachLeaf { leaf in for posting in leaf { isHolder[Int(posting.number)] = true } }
    }

    mutating func isIn(_ number: UInt32) -> Bool { isHolder.isEmpty ? cursor.move(to: number) : isHolder[Int(number)] }
  }
}
