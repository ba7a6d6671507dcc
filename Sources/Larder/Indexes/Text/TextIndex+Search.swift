internal import HeapModule

/// A record that a word search found, with its score.
struct TextMatch: Sendable {
  let slot: RecordSlot
  let score: Double
}

extension TextIndex {
  /// Returns the records that hold all words of a text, best first.
  ///
  /// Equal scores are ordered by key.
  ///
  /// A word matches if it is equal when folded. A prefix also matches any word that begins with it, and counts as one word with all these
  /// spellings. Records that hold a prefix as a word of its own come before the others. A text without words matches nothing.
  ///
  /// - Parameter limit: Greatest number of records to return. With a small limit, the search costs little more than reading the words'
  ///   posting lists.
  func search(_ text: String, limit: Int = .max) -> [TextMatch] {
    search(TextQuery(text), limit: limit)
  }

  /// Returns the records that hold all words of a query, as ``search(_:limit:)`` does for a text.
  func search(_ query: TextQuery, limit: Int = .max) -> [TextMatch] {
    // With a limit of 0, `BestMatches` would replace the least of an empty heap, which traps.
    guard limit > 0, let lists = lists(for: query), !lists.contains(where: \.isEmpty) else { return [] }
    let ranking = BM25(records: documents.count, words: wordCount)
    let weights = lists.map { ranking.weight(matches: $0.count) }
    var best = BestMatches(documents: PersistentTreeCursor(documents), keys: keys, limit: limit)
    // The shortest list leads, because only its records can match. Scores are added in this order.
    let order = lists.indices.sorted { lists[$0].count < lists[$1].count }
    let leadWeight = weights[order[0]]
    // More than all words together can add, so that a prefix that is a word of its own outweighs any sum of them.
    let bonus = order.reduce(1) { $0 + BM25.limit(weight: weights[$1]) }
    var whole = WholeWords(query.prefixes.compactMap { terms.find($0)?.postings.tree }, bonus: bonus, numbers: Int(nextNumber))
    // One word needs no block: its scores are final as they are computed.
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
    var rest = 0.0  // the most that the words after one can add
    for index in others.indices.reversed() {
      others[index].rest = rest
      rest += BM25.limit(weight: others[index].weight)
    }
    var block = PostingBlock()
    lists[order[0]].forEachBlock { postings in
      // `rest` is the most that the other words can still add, so a record below this bound can never enter the results.
      block.load(postings, weight: leadWeight, ranking, startingAt: &whole, atLeast: best.least - rest)
      for index in others.indices {
        block.keep(&others[index].cursor, weight: others[index].weight, ranking, atLeast: best.least - others[index].rest)
      }
      for (posting, score) in zip(block.postings, block.scores) { best.offer(posting.number, score: score) }
    }
    return best.sorted()
  }

  /// Estimates the number of records that a search finds.
  ///
  /// The estimate is never too low, unless very many words begin with a prefix.
  func estimate(_ query: TextQuery) -> Int {
    if query.isImpossible { return 0 }
    var least = documents.count
    for word in query.words { least = min(least, terms.find(word)?.postings.count ?? 0) }
    for prefix in query.prefixes {
      var sum = 0
      // The first letter of a text may begin most words of the index, and planning must stay cheap.
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

  /// Returns the posting lists of a query's words in order, then those of its prefixes, or `nil` for a query without words.
  private func lists(for query: TextQuery) -> [PostingList]? {
    if query.isImpossible { return nil }
    var lists = query.words.map { PostingList.tree(terms.find($0)?.postings.tree ?? PersistentTree()) }
    // One word without records ends the search, before prefixes are expanded.
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

/// The best records found so far, at most as many as the limit.
private struct BestMatches {
  private struct Candidate: Comparable {
    let score: Double
    let document: TextDocument
    let keys: KeyOrder

    /// Returns true if the left candidate is the worse one: a lower score, or an equal score and a later key.
    static func < (left: Candidate, right: Candidate) -> Bool {
      left.score == right.score ? right.document.precedes(left.document, left.keys) : left.score < right.score
    }
    static func == (left: Candidate, right: Candidate) -> Bool { left.document.number == right.document.number }
  }

  private var documents: PersistentTreeCursor<TextDocument>
  private let keys: KeyOrder
  private let limit: Int
  /// Heap of the best candidates of a search with a limit.
  ///
  /// Without a limit, `all` holds every candidate instead.
  private var heap = Heap<Candidate>()
  private var all: [Candidate] = []
  private(set) var worst = -Double.infinity
  private var worstRank = UInt64.max

  /// Score below which no record can enter, with a margin for the rounding of sums.
  var least: Double { worst * (1 - 1e-9) }

  init(documents: PersistentTreeCursor<TextDocument>, keys: KeyOrder, limit: Int) {
    (self.documents, self.keys, self.limit) = (documents, keys, limit)
  }

  /// Adds the next record if it is among the best so far.
  ///
  /// Numbers must ascend from call to call.
  mutating func offer(_ number: UInt32, score: Double) {
    guard score >= worst, documents.move(to: number) else { return }
    // Ranks compare faster than keys, and most of many records with one score are rejected here.
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
