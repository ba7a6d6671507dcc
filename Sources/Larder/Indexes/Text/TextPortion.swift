/// Some records with their words counted, to be joined to an index with others; portions can be made in parallel.
struct TextPortion: Sendable {
  private(set) var slots: [RecordSlot] = []
  private(set) var lengths: [UInt32] = []
  /// The words, in order.
  private(set) var terms: [Term] = []
  /// The records of all words, those of one behind those of the other; numbers are places in ``slots``.
  private var allPostings: [TextPosting] = []
  /// The part of ``allPostings`` that each of ``terms`` has.
  private var parts: [Range<Int>] = []

  /// The records of a word, by its place in ``terms``.
  func postings(_ place: Int) -> ArraySlice<TextPosting> { allPostings[parts[place]] }

  /// Counts the words of records with their texts; records without a word are left out.
  init(_ records: some Sequence<(RecordSlot, [String])>) {
    var folding = TextFolding()
    var known: [Term: Int] = [:]
    // One list of all occurrences in the order in which they come: a list for each word would be looked up and grown at every word.
    var occurrences: [(word: Int, posting: TextPosting)] = []
    /// The last occurrence of each word, and how many it has.
    var last: [Int] = []
    var counts: [Int] = []
    for (slot, texts) in records {
      let number = UInt32(slots.count)
      let start = occurrences.count
      var length: UInt32 = 0
      for text in texts {
        folding.words(in: text) { term, _ in
          length += 1
          let word: Int
          if let found = known[term] {
            word = found
          } else {
            word = last.count
            known[term] = word
            last.append(-1)
            counts.append(0)
          }
          if last[word] >= start {
            occurrences[last[word]].posting.frequency += 1
          } else {
            last[word] = occurrences.count
            counts[word] += 1
            occurrences.append((word, TextPosting(number: number, frequency: 1, length: 0)))
          }
        }
      }
      guard length > 0 else { continue }
      for position in start..<occurrences.count { occurrences[position].posting.length = length }
      slots.append(slot)
      lengths.append(length)
    }
    // Here and not where portions are joined: here all cores sort.
    let order = known.sorted { $0.key < $1.key }
    terms = order.map(\.key)
    var next = counts
    var end = 0
    for (_, word) in order {
      parts.append(end..<end + counts[word])
      next[word] = end
      end += counts[word]
    }
    allPostings = [TextPosting](repeating: TextPosting(number: 0, frequency: 0, length: 0), count: end)
    for (word, posting) in occurrences {
      allPostings[next[word]] = posting
      next[word] += 1
    }
  }
}

extension TextIndex {
  /// Joins portions, whose records all have different keys.
  init(_ portions: [TextPortion], keys: KeyOrder = .bytes) {
    self.init(keys: keys)
    let slots = portions.flatMap(\.slots)
    let lengths = portions.flatMap(\.lengths)
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

    let starts = portions.indices.map { index in UInt32(portions[..<index].reduce(0) { $0 + $1.slots.count }) }
    terms = PersistentTree(sorted: ConcurrentMap.blockingMap(Self.merged(portions)) { $0.entry(portions, starts) })
  }

  /// Returns the words of all portions in order, each with the positions where it is.
  private static func merged(_ portions: [TextPortion]) -> [JoinedTerm] {
    var joined: [JoinedTerm] = []
    var next = portions.map { _ in 0 }
    while true {
      var least: Term?
      for (index, portion) in portions.enumerated() where next[index] < portion.terms.count {
        let term = portion.terms[next[index]]
        if least.map({ term < $0 }) ?? true { least = term }
      }
      guard let least else { return joined }
      var places: [(portion: Int, place: Int)] = []
      for (index, portion) in portions.enumerated() where next[index] < portion.terms.count && portion.terms[next[index]] == least {
        places.append((index, next[index]))
        next[index] += 1
      }
      joined.append(JoinedTerm(term: least, places: places))
    }
  }
}

/// A word with the places in some portions where its records are.
private struct JoinedTerm: Sendable {
  let term: Term
  let places: [(portion: Int, place: Int)]

  /// Returns the word with its records; each portion's numbers begin at its start.
  func entry(_ portions: [TextPortion], _ starts: [UInt32]) -> TermEntry {
    var postings: [TextPosting] = []
    postings.reserveCapacity(places.reduce(0) { $0 + portions[$1.portion].postings($1.place).count })
    for (portion, place) in places {
      for posting in portions[portion].postings(place) {
        postings.append(
          TextPosting(number: posting.number + starts[portion], frequency: posting.frequency, length: posting.length))
      }
    }
    return TermEntry(term: term, postings: PersistentTree(sorted: postings))
  }
}
