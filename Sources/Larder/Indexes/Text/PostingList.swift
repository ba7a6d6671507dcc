/// The posting list of a word of a query: the records that hold the word, as a tree or as a table.
///
/// Design note 0010 measures the costs of trees and tables. A prefix in a query counts as one word. The spellings of a prefix are the words
/// of the index that begin with the prefix.
enum PostingList {
  /// A tree of postings, for a word with one spelling, or for a prefix whose spellings occur in few records.
  case tree(PersistentTree<TextPosting>)
  /// A table by record number, made for one search, for a prefix whose spellings have many postings.
  ///
  /// The table holds a `Tally` of zeros for a record without the word.
  case table([Tally], count: Int)

  /// The frequency of a word in a record, and the record's length in words, both of which the ranking needs.
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

  /// Visits the postings in blocks, by ascending record number.
  func forEachBlock(_ visit: ([TextPosting]) -> Void) {
    switch self {
    case .tree(let tree): tree.forEachLeaf(visit)
    case .table(let tallies, _):
      // A block has at most 256 postings of 12 bytes, so that it stays in the processor's cache while its records are scored.
      for start in stride(from: 0, to: tallies.count, by: 256) {
        let part = tallies[start..<min(start + 256, tallies.count)]
        // The loop writes a posting for every record, and overwrites it in the next step if the record does not have the word. A branch for
        // records without the word would be mispredicted up to half of the time.
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

  /// Creates the union of the posting lists of several spellings, with the frequencies of a record added.
  ///
  /// `numbers` must be greater than every record number of the index, because `numbers` is the size of a table by record number.
  init(union spellings: [Postings], numbers: Int) {
    // A single spelling needs no union, so its posting list is shared without a copy.
    guard spellings.count > 1 else {
      self = .tree(spellings.first?.tree ?? PersistentTree())
      return
    }
    // A search that visits a table reads the entry of every record number. For many postings, reading the table costs far less than sorting
    // the postings for a tree. For few postings, sorting costs less than reading the table.
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
    // The postings are counted through a pointer, because each access to the array itself would check that the array is unshared and the
    // index in bounds.
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

/// A forward-only cursor through the posting list of a word, which returns the word's frequency in records of ascending number.
struct PostingCursor {
  private let table: [PostingList.Tally]?
  private var cursor: PersistentTreeCursor<TextPosting>

  init(_ list: PostingList) {
    (table, cursor) =
      switch list {
      case .tree(let tree): (nil, PersistentTreeCursor(tree))
      // If the posting list is a table, all calls read the table. The field `cursor` is not optional, so it gets the cursor of an empty
      // tree, which no call reads.
      case .table(let tallies, _): (tallies, PersistentTreeCursor(PersistentTree()))
      }
  }

  /// Returns the frequency of the word in a record, or 0 if the record does not have the word.
  ///
  /// The record numbers must not descend from call to call.
  mutating func frequency(_ number: UInt32) -> UInt32 {
    if let table { return table[Int(number)].frequency }
    return cursor.move(to: number) ? cursor.current.frequency : 0
  }
}

/// A block of records from the shortest posting list of a search, with the sum of their scores for the words processed so far.
///
/// A search reuses one object for all blocks, so that its memory stays in the processor's cache.
///
/// The parameter `least` is the lowest score that a record may have after the words processed so far. `load` and `keep` drop a record with
/// a lower score than `least`, because the remaining words cannot raise its score enough to be a result.
struct PostingBlock {
  private(set) var postings: [TextPosting] = []
  private(set) var scores: [Double] = []

  /// Replaces the content by the records of a block whose initial score plus the score of the first word is at least `least`.
  mutating func load(
    _ block: [TextPosting], weight: Double, _ ranking: BM25, startingAt whole: inout WholeWords, atLeast least: Double
  ) {
    // The arrays keep their capacity, so that a search allocates memory for its blocks once.
    postings.removeAll(keepingCapacity: true)
    scores.removeAll(keepingCapacity: true)
    for posting in block {
      let score = whole.start(posting.number) + ranking.score(weight: weight, frequency: posting.frequency, length: posting.length)
      guard score >= least else { continue }
      postings.append(posting)
      scores.append(score)
    }
  }

  /// Keeps only the records that also hold another word and whose score with this word is at least `least`.
  mutating func keep(_ cursor: inout PostingCursor, weight: Double, _ ranking: BM25, atLeast least: Double) {
    var kept = 0
    for (index, posting) in postings.enumerated() {
      let frequency = cursor.frequency(posting.number)
      // A result must hold every word of the query, so a record without one of the words is dropped.
      guard frequency > 0 else { continue }
      let score = scores[index] + ranking.score(weight: weight, frequency: frequency, length: posting.length)
      guard score >= least else { continue }
      // The kept records move to the front of the same arrays, because new arrays for each word of each block would cost more than
      // computing the scores.
      (postings[kept], scores[kept]) = (posting, score)
      kept += 1
    }
    postings.removeSubrange(kept...)
    scores.removeSubrange(kept...)
  }
}

/// The initial scores of records in a search: a bonus for each prefix of the query that the record holds as a whole word.
///
/// A search passes the initial scores as a parameter and not in a closure. Swift checks exclusive access to a captured variable at every
/// use, and the checks would cost more than computing the scores.
struct WholeWords {
  private var words: [Word] = []
  private let bonus: Double

  /// Creates the initial scores from the posting list of each prefix that is also a whole word of the index.
  ///
  /// `numbers` must be greater than every record number of the index, because `numbers` is the size of a table by record number.
  init(_ words: [PersistentTree<TextPosting>], bonus: Double, numbers: Int) {
    self.bonus = bonus
    self.words = words.map { Word($0, numbers: numbers) }
  }

  /// Returns the initial score of a record.
  ///
  /// The record numbers must not descend from call to call.
  mutating func start(_ number: UInt32) -> Double {
    var sum = 0.0
    for index in words.indices where words[index].isIn(number) { sum += bonus }
    return sum
  }

  private struct Word {
    /// One flag for each record number if the word is common, or an empty array if the word is rare.
    ///
    /// Reading a flag is faster than moving ``cursor`` for each record.
    private var isHolder: [Bool] = []
    private var cursor: PersistentTreeCursor<TextPosting>

    init(_ postings: PersistentTree<TextPosting>, numbers: Int) {
      cursor = PersistentTreeCursor(postings)
      // For a word in few records, filling the array of flags costs more than the moves of the cursor that the flags save.
      guard postings.count > numbers / 32 else { return }
      isHolder = [Bool](repeating: false, count: numbers)
      postings.forEachLeaf { leaf in for posting in leaf { isHolder[Int(posting.number)] = true } }
    }

    mutating func isIn(_ number: UInt32) -> Bool { isHolder.isEmpty ? cursor.move(to: number) : isHolder[Int(number)] }
  }
}
