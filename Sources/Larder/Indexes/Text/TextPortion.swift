/// A part of a full-text index: the words of some records, each with its postings (the records that contain the word).
///
/// The build of a full-text index makes several portions in parallel, and merges them into the whole index.
struct TextPortion: Sendable {
  private(set) var slots: [RecordSlot] = []
  private(set) var lengths: [UInt32] = []
  /// Sum of the digests of each record's words.
  private(set) var digests: [UInt32] = []
  /// Different words of the records, in ascending order.
  private(set) var terms: [Term] = []
  /// First eight bytes of each word in ``terms`` as a number, which compares faster than the word.
  private(set) var heads: [UInt64] = []
  /// Postings of all words in the order of ``terms``.
  ///
  /// The record number of a posting is the record's position in ``slots``.
  private var allPostings: [TextPosting] = []
  /// Range in ``allPostings`` of the postings of each word in ``terms``.
  private var parts: [Range<Int>] = []

  /// Returns the postings of the word at a position in ``terms``.
  func postings(_ place: Int) -> ArraySlice<TextPosting> { allPostings[parts[place]] }

  /// Counts the words of the given records, and leaves out records without a word.
  init(_ records: some Sequence<(RecordSlot, [String])>) {
    var draft = Draft()
    for (slot, texts) in records { draft.add(slot, texts) }
    self = draft.finish()
  }

  private init() {}

  /// A portion of a full-text index under construction, to which records are added one by one.
  struct Draft {
    private var portion = TextPortion()
    private var folding = TextFolding()
    private var known: [Term: Int] = [:]
    // The postings of all words are in one list, in the order of the records. Separate lists for the words would allocate memory for each
    // word.
    private var occurrences: [(word: Int, posting: TextPosting)] = []
    /// For each word, the position of its last posting in `occurrences`, or -1 if the word has no posting yet.
    private var last: [Int] = []
    /// For each word, the number of its postings.
    private var counts: [Int] = []
    /// For each word, its digest, which is made once for all records that have the word.
    private var wordDigests: [UInt32] = []

    /// Counts the words of a record and adds the record to the portion, unless the record has no word.
    mutating func add(_ slot: RecordSlot, _ texts: [String]) {
      let number = UInt32(portion.slots.count)
      let start = occurrences.count
      var (length, digest) = (UInt32(0), UInt32(0))
      // While the closure changes `self`, the folding is in a local variable, so that the folding's cache of words has one owner and is not
      // copied.
      var folding = TextFolding()
      swap(&folding, &self.folding)
      for text in texts {
        folding.words(in: text) { term, _ in
          length += 1
          digest &+= wordDigests[note(term, number: number, start: start)]
        }
      }
      swap(&folding, &self.folding)
      // A record without words is not added to the portion, so the next record gets the same number.
      guard length > 0 else { return }
      // The record's length is written into its postings last, because the length is known only after all texts of the record were counted.
      for position in start..<occurrences.count { occurrences[position].posting.length = length }
      portion.slots.append(slot)
      portion.lengths.append(length)
      portion.digests.append(digest)
    }

    /// Counts an occurrence of a word in a record, and returns the position of the word.
    private mutating func note(_ term: Term, number: UInt32, start: Int) -> Int {
      let word: Int
      if let found = known[term] {
        word = found
      } else {
        word = last.count
        known[term] = word
        last.append(-1)
        counts.append(0)
        wordDigests.append(term.digest)
      }
      // If the word's last posting belongs to the current record, the word occurs again in the record, and only the frequency grows.
      if last[word] >= start {
        occurrences[last[word]].posting.frequency += 1
      } else {
        last[word] = occurrences.count
        counts[word] += 1
        occurrences.append((word, TextPosting(number: number, frequency: 1, length: 0)))
      }
      return word
    }

    /// Sorts the words and returns the finished portion.
    consuming func finish() -> TextPortion {
      var portion = portion
      // Each portion sorts its own words, in parallel on all cores. Merging the words of the portions, which runs on one core, then needs
      // no sort.
      var order = known.map { (head: $0.key.head, term: $0.key, word: $0.value) }
      order.sort { $0.head == $1.head ? $0.term < $1.term : $0.head < $1.head }
      portion.terms = order.map(\.term)
      portion.heads = order.map(\.head)
      // The postings are moved into the order of the words by a counting sort. The number of postings of each word is known, so each
      // posting is moved only once.
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
  /// Creates an index by merging portions, whose records must all have different keys.
  init(_ portions: [TextPortion], keys: KeyOrder = .bytes) {
    self.init(keys: keys)
    let slots = portions.flatMap(\.slots)
    let (lengths, digests) = (portions.flatMap(\.lengths), portions.flatMap(\.digests))
    // A build passes the records sorted by the bytes of their keys. If `keys` also orders keys by their bytes, the records need no second
    // sort.
    let isOrdered = zip(slots, slots.dropFirst()).allSatisfy { keys.isBefore($0.key, $1.key) }
    let order = isOrdered ? Array(slots.indices) : slots.indices.sorted { keys.isBefore(slots[$0].key, slots[$1].key) }
    let step = Self.rankStep(count: slots.count)
    var ranks = [UInt64](repeating: 0, count: slots.count)
    for (place, number) in order.enumerated() { ranks[number] = Self.firstRank + UInt64(place) * step }

    documents = PersistentTree(
      sorted: slots.indices.map {
        TextDocument(number: UInt32($0), length: lengths[$0], digest: digests[$0], rank: ranks[$0], slot: slots[$0])
      })
    numbers = PersistentTree(
      sorted: order.map { TextNumber(key: OrderedKey(key: slots[$0].key, order: keys), number: UInt32($0), rank: ranks[$0]) })
    nextNumber = UInt32(slots.count)
    wordCount = lengths.reduce(0) { $0 + Int($1) }

    // Each portion numbers its records from 0. In the merged index, the record numbers of a portion are shifted by the number of records in
    // all earlier portions.
    let starts = portions.indices.map { index in UInt32(portions[..<index].reduce(0) { $0 + $1.slots.count }) }
    terms = PersistentTree(sorted: ConcurrentMap.blockingMap(Self.merged(portions)) { $0.entry(portions, starts) })
  }

  /// Returns the different words of all portions in ascending order, each with its positions in the portions that have the word.
  private static func merged(_ portions: [TextPortion]) -> [JoinedTerm] {
    var joined: [JoinedTerm] = []
    var next = portions.map { _ in 0 }
    while true {
      var least: (head: UInt64, term: Term)?
      for (portion, place) in zip(portions, next) where place < portion.terms.count {
        let head = portion.heads[place]
        // The heads, the first eight bytes of words, decide most comparisons without a read of the words' texts.
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

/// A word of a full-text index under construction, with its positions in the portions that have the word.
private struct JoinedTerm: Sendable {
  let term: Term
  let places: [(portion: Int, place: Int)]

  /// Returns the index entry of the word, with the postings of all portions.
  ///
  /// `starts` holds the record number in the index of each portion's first record.
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
