internal import HeapModule

/// A record that a search found.
struct TextMatch: Sendable {
  let slot: RecordSlot
  let score: Double
}

extension TextIndex {
  /// Returns the records that hold all words, best first, those with equal scores by key.
  ///
  /// A word matches if it is equal when folded; a prefix also matches any word that begins with it, and counts like one word in all these
  /// spellings. Records that hold a prefix as a word of its own come before those that do not. No words match nothing.
  /// - Parameter limit: The greatest number to return; with few, the search costs little more than reading the words' lists.
  func search(_ text: String, limit: Int = .max) -> [TextMatch] {
    search(TextQuery(text), limit: limit)
  }

  func search(_ query: TextQuery, limit: Int = .max) -> [TextMatch] {
    guard limit > 0, let lists = lists(for: query), !lists.contains(where: \.isEmpty) else { return [] }
    let ranking = BM25(records: documents.count, words: wordCount)
    let weights = lists.map { ranking.weight(matches: $0.count) }
    var best = BestMatches(documents: PersistentTreeCursor(documents), keys: keys, limit: limit)
    // The shortest list leads, the next longer ones are asked first; their scores are added in this order.
    let order = lists.indices.sorted { lists[$0].count < lists[$1].count }
    let leadWeight = weights[order[0]]
    // More than all words together can add, so that no sum of them outweighs a prefix that is a word of its own.
    let bonus = order.reduce(1) { $0 + BM25.limit(weight: weights[$1]) }
    var whole = WholeWords(query.prefixes.compactMap { terms.find($0)?.postings.tree }, bonus: bonus, numbers: Int(nextNumber))
    if lists.count == 1 {
      lists[0].forEachBlock { postings in
        for posting in postings {
          let score =
            whole.start(posting.number) + ranking.score(weight: leadWeight, frequency: posting.frequency, length: posting.length)
          if score >= best.worst { best.offer(posting.number, score: score) }
        }
      }
      return best.sorted()
    }
    var others = order.dropFirst().map { (cursor: PostingCursor(lists[$0]), weight: weights[$0], rest: 0.0) }
    var rest = 0.0  // what the words after one can add at most
    for index in others.indices.reversed() {
      others[index].rest = rest
      rest += BM25.limit(weight: others[index].weight)
    }
    var block = PostingBlock()
    lists[order[0]].forEachBlock { postings in
      block.load(postings, weight: leadWeight, ranking, startingAt: &whole, atLeast: best.least - rest)
      for index in others.indices {
        block.keep(&others[index].cursor, weight: others[index].weight, ranking, atLeast: best.least - others[index].rest)
      }
      for (posting, score) in zip(block.postings, block.scores) { best.offer(posting.number, score: score) }
    }
    return best.sorted()
  }

  /// Returns about how many records a search finds: never fewer than it does, unless very many words begin with a prefix.
  func estimate(_ query: TextQuery) -> Int {
    if query.isImpossible { return 0 }
    var least = documents.count
    for word in query.words { least = min(least, terms.find(word)?.postings.count ?? 0) }
    for prefix in query.prefixes {
      var sum = 0
      var budget = 1_000
      terms.forEach(from: prefix) { entry in
        guard entry.term.hasPrefix(prefix) else { return false }
        sum += entry.postings.count
        budget -= 1
        return sum < least && budget > 0
      }
      least = min(least, sum)
    }
    return least
  }

  /// Returns the lists of the words in the order of the query, the prefixes' at the end; `nil` for no words.
  private func lists(for query: TextQuery) -> [PostingList]? {
    if query.isImpossible { return nil }
    var lists = query.words.map { PostingList.tree(terms.find($0)?.postings.tree ?? PersistentTree()) }
    if lists.contains(where: \.isEmpty) { return lists }
    for prefix in query.prefixes {
      var spellings: [Postings] = []
      terms.forEach(from: prefix) { entry in
        guard entry.term.hasPrefix(prefix) else { return false }
        spellings.append(entry.postings)
        return true
      }
      lists.append(PostingList(union: spellings, numbers: Int(nextNumber)))
    }
    return lists
  }
}

/// The best records so far.
private struct BestMatches {
  private struct Candidate: Comparable {
    let score: Double
    let document: TextDocument
    let keys: KeyOrder

    /// Whether it is the worse one.
    static func < (left: Candidate, right: Candidate) -> Bool {
      left.score == right.score ? right.document.precedes(left.document, left.keys) : left.score < right.score
    }
    static func == (left: Candidate, right: Candidate) -> Bool { left.document.number == right.document.number }
  }

  private var documents: PersistentTreeCursor<TextDocument>
  private let keys: KeyOrder
  private let limit: Int
  /// A heap only if there is a limit, else all.
  private var heap = Heap<Candidate>()
  private var all: [Candidate] = []
  private(set) var worst = -Double.infinity
  private var worstRank = UInt64.max

  /// A score below which no record is taken, with room for the rounding of sums.
  var least: Double { worst * (1 - 1e-9) }

  init(documents: PersistentTreeCursor<TextDocument>, keys: KeyOrder, limit: Int) {
    (self.documents, self.keys, self.limit) = (documents, keys, limit)
  }

  /// Takes the next record; numbers ascend.
  mutating func offer(_ number: UInt32, score: Double) {
    guard score >= worst, documents.move(to: number) else { return }
    // Of many records with one score most end here.
    if score == worst, documents.current.rank > worstRank { return }
    let candidate = Candidate(score: score, document: documents.current, keys: keys)
    if limit == .max {
      all.append(candidate)
      return
    }
    if heap.count == limit, let least = heap.min, candidate < least { return }
    if heap.count < limit { heap.insert(candidate) } else { heap.replaceMin(with: candidate) }
    if heap.count == limit, let least = heap.min { (worst, worstRank) = (least.score, least.document.rank) }
  }

  func sorted() -> [TextMatch] {
    (limit == .max ? all : Array(heap.unordered)).sorted(by: >).map { TextMatch(slot: $0.document.slot, score: $0.score) }
  }
}
