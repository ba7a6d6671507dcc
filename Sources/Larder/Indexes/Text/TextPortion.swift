/// Some records with their words counted, to be joined to an index with others; portions can be made in parallel.
struct TextPortion: Sendable {
  private(set) var slots: [RecordSlot] = []
  private(set) var lengths: [UInt32] = []
  /// The words, in order.
  private(set) var terms: [Term] = []
  /// The records of each of ``terms``; numbers are places in ``slots``.
  private(set) var postings: [[TextPosting]] = []

  /// Counts the words of records with their texts; records without a word are left out.
  init(_ records: some Sequence<(RecordSlot, [String])>) {
    var folding = TextFolding()
    var known: [Term: Int] = [:]
    var lists: [[TextPosting]] = []
    for (slot, texts) in records {
      let number = UInt32(slots.count)
      var length: UInt32 = 0
      var places: [Int] = []
      for text in texts {
        folding.words(in: text) { term, _ in
          length += 1
          let place: Int
          if let found = known[term] {
            place = found
          } else {
            place = lists.count
            known[term] = place
            lists.append([])
          }
          if let last = lists[place].indices.last, lists[place][last].number == number {
            lists[place][last].frequency += 1
          } else {
            lists[place].append(TextPosting(number: number, frequency: 1, length: 0))
            places.append(place)
          }
        }
      }
      guard length > 0 else { continue }
      for place in places { lists[place][lists[place].count - 1].length = length }
      slots.append(slot)
      lengths.append(length)
    }
    // Here and not where portions are joined: here all cores sort.
    let order = known.sorted { $0.key < $1.key }
    terms = order.map(\.key)
    postings = order.map { lists[$0.value] }
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
    postings.reserveCapacity(places.reduce(0) { $0 + portions[$1.portion].postings[$1.place].count })
    for (portion, place) in places {
      for posting in portions[portion].postings[place] {
        postings.append(
          TextPosting(number: posting.number + starts[portion], frequency: posting.frequency, length: posting.length))
      }
    }
    return TermEntry(term: term, postings: PersistentTree(sorted: postings))
  }
}
