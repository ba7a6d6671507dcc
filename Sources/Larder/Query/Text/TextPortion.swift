/// Some records with their words counted, to be joined to an index with others; portions can be made in parallel.
struct TextPortion: Sendable {
  private(set) var slots: [RecordSlot] = []
  private(set) var lengths: [UInt32] = []
  private(set) var terms: [Term: Int] = [:]
  /// By the place of the term; numbers are places in `slots`.
  private(set) var postings: [[TextPosting]] = []

  /// Counts the words of records with their texts; records without a word are left out.
  init(_ records: some Sequence<(RecordSlot, [String])>) {
    var folding = TextFolding()
    for (slot, texts) in records {
      let number = UInt32(slots.count)
      var length: UInt32 = 0
      var places: [Int] = []
      for text in texts {
        folding.words(in: text) { term, _ in
          length += 1
          let place: Int
          if let known = terms[term] {
            place = known
          } else {
            place = postings.count
            terms[term] = place
            postings.append([])
          }
          if let last = postings[place].indices.last, postings[place][last].number == number {
            postings[place][last].frequency += 1
          } else {
            postings[place].append(TextPosting(number: number, frequency: 1, length: 0))
            places.append(place)
          }
        }
      }
      guard length > 0 else { continue }
      for place in places { postings[place][postings[place].count - 1].length = length }
      slots.append(slot)
      lengths.append(length)
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

    documents = SummaryTree(
      sorted: slots.indices.map { TextDocument(number: UInt32($0), length: lengths[$0], rank: ranks[$0], slot: slots[$0]) })
    numbers = SummaryTree(
      sorted: order.map { TextNumber(key: OrderedKey(key: slots[$0].key, order: keys), number: UInt32($0), rank: ranks[$0]) })
    nextNumber = UInt32(slots.count)
    wordCount = lengths.reduce(0) { $0 + Int($1) }

    var found: [(term: Term, portion: Int, place: Int)] = []
    var starts: [UInt32] = []
    for (index, portion) in portions.enumerated() {
      starts.append(UInt32(portions[..<index].reduce(0) { $0 + $1.slots.count }))
      for (term, place) in portion.terms { found.append((term, index, place)) }
    }
    found.sort { $0.term == $1.term ? $0.portion < $1.portion : $0.term < $1.term }
    var entries: [TermEntry] = []
    var start = 0
    while start < found.count {
      var end = start
      var postings: [TextPosting] = []
      while end < found.count, found[end].term == found[start].term {
        let (_, portion, place) = found[end]
        postings += portions[portion].postings[place].map { posting in
          TextPosting(number: posting.number + starts[portion], frequency: posting.frequency, length: posting.length)
        }
        end += 1
      }
      entries.append(TermEntry(term: found[start].term, postings: SummaryTree(sorted: postings)))
      start = end
    }
    terms = SummaryTree(sorted: entries)
  }
}
