internal import HeapModule

/// A record that a full-text search found, with its score.
struct TextMatch: Sendable {
  let slot: RecordSlot
  let score: Double
}

extension TextIndex {
  /// Returns the records that hold all words of a text, in the order of descending score.
  ///
  /// Records with equal scores are ordered by record key.
  ///
  /// A word of the query matches a word of a record if their folded forms are equal. A prefix matches every word that begins with the
  /// prefix, and counts as one word with several spellings. Records that hold a prefix of the query as a whole word come before all other
  /// results. A text without words matches no record.
  ///
  /// - Parameter limit: Greatest number of records to return. With a small limit, the search costs little more than reading the posting
  ///   lists of the words.
  func search(_ text: String, limit: Int = .max) -> [TextMatch] {
    search(TextQuery(text), limit: limit)
  }

  /// Returns the records that hold all words of a query, as ``search(_:limit:)`` does for a text.
  func search(_ query: TextQuery, limit: Int = .max) -> [TextMatch] {
    // For a limit of 0 the search ends at once, because `BestMatches` would replace the least element of its empty heap, which traps.
    guard limit > 0, let lists = lists(for: query), !lists.contains(where: \.isEmpty) else { return [] }
    let ranking = BM25(records: documents.count, words: wordCount)
    let weights = lists.map { ranking.weight(matches: $0.count) }
    var best = BestMatches(documents: PersistentTreeCursor(documents), keys: keys, limit: limit)
    // A result must be in every posting list, so the search visits the records of the shortest list. The scores of the words are added in
    // the order of the lengths of their posting lists.
    let order = lists.indices.sorted { lists[$0].count < lists[$1].count }
    let leadWeight = weights[order[0]]
    // The bonus is more than the scores of all words together, so that a record that holds a prefix as a whole word comes before all other
    // records.
    let bonus = order.reduce(1) { $0 + BM25.limit(weight: weights[$1]) }
    var whole = WholeWords(query.prefixes.compactMap { terms.find($0)?.postings.tree }, bonus: bonus, numbers: Int(nextNumber))
    // A query of one word needs no `PostingBlock`, which sums the scores of several words, because each record's score is complete after
    // one posting.
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
    var rest = 0.0  // the most that the words after the current word can add to a score
    for index in others.indices.reversed() {
      others[index].rest = rest
      rest += BM25.limit(weight: others[index].weight)
    }
    var block = PostingBlock()
    lists[order[0]].forEachBlock { postings in
      // The words after the first one in `order` add at most `rest` to a score, so a record with a score below `best.least - rest` cannot
      // enter the results.
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
  /// The estimate is never less than the number of results, unless more than 1,000 words of the index begin with a prefix of the query.
  func estimate(_ query: TextQuery) -> Int {
    if query.isImpossible { return 0 }
    var least = documents.count
    for word in query.words { least = min(least, terms.find(word)?.postings.count ?? 0) }
    for prefix in query.prefixes {
      var sum = 0
      // A prefix of one letter may begin most words of the index. The budget bounds the number of words that are read, so that planning a
      // query stays cheap.
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

  /// Returns the posting lists of a query's words and then of its prefixes, or `nil` for a query that no record can match.
  private func lists(for query: TextQuery) -> [PostingList]? {
    if query.isImpossible { return nil }
    var lists = query.words.map { PostingList.tree(terms.find($0)?.postings.tree ?? PersistentTree()) }
    // If a word of the query occurs in no record, there are no results, and the lists of the prefixes need not be made.
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

/// The records with the highest scores that a search has found so far, at most as many as its limit.
private struct BestMatches {
  private struct Candidate: Comparable {
    let score: Double
    let document: TextDocument
    let keys: KeyOrder

    /// Returns true if the left candidate is worse: the left score is lower, or the scores are equal and the left key is later.
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
  /// In a search without a limit, `all` holds every candidate instead.
  private var heap = Heap<Candidate>()
  private var all: [Candidate] = []
  /// Lowest score in the full heap, or minus infinity while the heap is not full.
  ///
  /// A record with a score below ``worst`` is not among the best records of the search.
  private(set) var worst = -Double.infinity
  private var worstRank = UInt64.max

  /// Bound for partial scores: ``worst``, less a margin for the rounding of sums of scores.
  var least: Double { worst * (1 - 1e-9) }

  init(documents: PersistentTreeCursor<TextDocument>, keys: KeyOrder, limit: Int) {
    (self.documents, self.keys, self.limit) = (documents, keys, limit)
  }

  /// Adds a record if it is among the best records that the search has found so far.
  ///
  /// The record numbers must ascend from call to call.
  mutating func offer(_ number: UInt32, score: Double) {
    guard score >= worst, documents.move(to: number) else { return }
    // If many records have the same score, most of the records are rejected by their rank, which compares faster than a record key.
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
