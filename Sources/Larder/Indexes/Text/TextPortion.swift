/// The counted words of some records.
///
/// A full-text index is built from portions that are made in parallel.
struct TextPortion: Sendable {
  private(set) var slots: [RecordSlot] = []
  private(set) var lengths: [UInt32] = []
  /// Words, in order.
  private(set) var terms: [Term] = []
  /// First eight bytes of each of ``terms``, which compare faster.
  private(set) var heads: [UInt64] = []
  /// Postings of all words, one word's after the other's, with positions in ``slots`` as record numbers.
  private var allPostings: [TextPosting] = []
  /// Range in ``allPostings`` of each of ``terms``.
  private var parts: [Range<Int>] = []

  /// Returns the postings of a word, given its position in ``terms``.
  func postings(_ place: Int) -> ArraySlice<TextPosting> { allPostings[parts[place]] }

  /// Counts the words of records and leaves out records without a word.
  init(_ records: some Sequence<(RecordSlot, [String])>) {
    var draft = Draft()
    for (slot, texts) in records { draft.add(slot, texts) }
    self = draft.finish()
  }

  private init() {}

  /// A portion under construction, to which records are added.
  struct Draft {
    private var portion = TextPortion()
    private var folding = TextFolding()
    private var known: [Term: Int] = [:]
    // One list of all occurrences in their order: a list for each word would be looked up and grown at every word.
    private var occurrences: [(word: Int, posting: TextPosting)] = []
    /// For each word, its last position in `occurrences` and the number of its postings.
    private var last: [Int] = []
    private var counts: [Int] = []

    /// Counts the words of a record and leaves out a record without a word.
    mutating func add(_ slot: RecordSlot, _ texts: [String]) {
      let number = UInt32(portion.slots.count)
      let start = occurrences.count
      var length: UInt32 = 0
      // Swapped out while it is used, so that its cache has one owner and is not copied.
      var folding = TextFolding()
      swap(&folding, &self.folding)
      for text in texts {
        folding.words(in: text) { term, _ in
          length += 1
          note(term, number: number, start: start)
        }
      }
      swap(&folding, &self.folding)
      // Nothing was noted for a record without words, so the next record takes its number.
      guard length > 0 else { return }
      // The length is known only now, after all texts of the record.
      for position in start..<occurrences.count { occurrences[position].posting.length = length }
      portion.slots.append(slot)
      portion.lengths.append(length)
    }

    private mutating func note(_ term: Term, number: UInt32, start: Int) {
      let word: Int
      if let found = known[term] {
        word = found
      } else {
        word = last.count
        known[term] = word
        last.append(-1)
        counts.append(0)
      }
      // The word's last occurrence is in this record, so only its frequency grows.
      if last[word] >= start {
        occurrences[last[word]].posting.frequency += 1
      } else {
        last[word] = occurrences.count
        counts[word] += 1
        occurrences.append((word, TextPosting(number: number, frequency: 1, length: 0)))
      }
    }

    /// Sorts the words and returns the finished portion.
    consuming func finish() -> TextPortion {
      var portion = portion
      // Sorted here and not while portions are joined, because here all cores sort.
      var order = known.map { (head: $0.key.head, term: $0.key, word: $0.value) }
      order.sort { $0.head == $1.head ? $0.term < $1.term : $0.head < $1.head }
      portion.terms = order.map(\.term)
      portion.heads = order.map(\.head)
      // A counting sort by word: the number of postings of each word is known, so each posting is moved once.
      var next = counts
      var end = 0
      for (_, _, word) in order {
        portion.parts.append(end..<end + counts[word])
        next[word] = end
        end += counts[word]
      }
      portion.allPostings = [TextPosting](repeating: TextPosting(number: 0, frequency: 0, length: 0), count: end)
      for (word, posting) in occurrences {
        portion.allPostings[next[word]] = posting
        next[word] += 1
      }
      return portion
    }
  }
}

extension TextIndex {
  /// Creates an index from portions, whose records must all have different keys.
  init(_ portions: [TextPortion], keys: KeyOrder = .bytes) {
    self.init(keys: keys)
    let slots = portions.flatMap(\.slots)
    let lengths = portions.flatMap(\.lengths)
    // A build passes the records in the order of their keys, which saves the sort.
    let isOrdered = zip(slots, slots.dropFirst()).allSatisfy { keys.isBefore($0.key, $1.key) }
    let order = isOrdered ? Array(slots.indices) : slots.indices.sorted { keys.isBefore(slots[$0].key, slots[$1].key) }
    let step = Self.rankStep(count: slots.count)
    var ranks = [UInt64](repeating: 0, count: slots.count)
    for (place, number) in order.enumerated() { ranks[number] = Self.firstRank + UInt64(place) * step }

    documents = PersistentTree(
      sorted: slots.indices.map { TextDocument(number: UInt32($0), length: lengths[$0], rank: ranks[$0], slot: slots[$0]) })
    numbers = PersistentTree(
      sorted: order.map { TextNumber(key: OrderedKey(key: slots[$0].key, order: keys), number: UInt32($0), rank: ranks[$0]) })
    nextNumber = UInt32(slots.count)
    wordCount = lengths.reduce(0) { $0 + Int($1) }

    // Each portion numbers its records from 0, so its numbers are shifted by the records before it.
    let starts = portions.indices.map { index in UInt32(portions[..<index].reduce(0) { $0 + $1.slots.count }) }
    terms = PersistentTree(sorted: ConcurrentMap.blockingMap(Self.merged(portions)) { $0.entry(portions, starts) })
  }

  /// Returns the words of all portions in order, each with its positions in the portions that have it.
  private static func merged(_ portions: [TextPortion]) -> [JoinedTerm] {
    var joined: [JoinedTerm] = []
    var next = portions.map { _ in 0 }
    while true {
      var least: (head: UInt64, term: Term)?
      for (portion, place) in zip(portions, next) where place < portion.terms.count {
        let head = portion.heads[place]
        // Heads decide between most words without a read of their texts.
        if let least, least.head < head || least.head == head && !(portion.terms[place] < least.term) { continue }
        least = (head, portion.terms[place])
      }
      guard let least else { return joined }
      var places: [(portion: Int, place: Int)] = []
      for (index, portion) in portions.enumerated() where next[index] < portion.terms.count {
        let place = next[index]
        guard portion.heads[place] == least.head, portion.terms[place] == least.term else { continue }
        places.append((index, place))
        next[index] += 1
      }
      joined.append(JoinedTerm(term: least.term, places: places))
    }
  }
}

/// A word, with its positions in the portions that have it.
private struct JoinedTerm: Sendable {
  let term: Term
  let places: [(portion: Int, place: Int)]

  /// Returns the index entry of the word.
  ///
  /// `starts` holds the first record number of each portion.
  func entry(_ portions: [TextPortion], _ starts: [UInt32]) -> TermEntry {
    var postings: [TextPosting] = []
    postings.reserveCapacity(places.reduce(0) { $0 + portions[$1.portion].postings($1.place).count })
    for (portion, place) in places {
      for posting in portions[portion].postings(place) {
        postings.append(
          TextPosting(number: posting.number + starts[portion], frequency: posting.frequency, length: posting.length))
      }
    }
    return TermEntry(term: term, postings: Postings(sorted: postings))
  }
}
