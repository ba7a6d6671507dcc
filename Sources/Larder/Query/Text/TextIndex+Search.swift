internal import HeapModule

/// A record that a search found.
struct TextMatch: Sendable {
  let slot: RecordSlot
  let score: Double
}

extension TextIndex {
  /// The records that hold all words, best first, those with equal scores by key.
  ///
  /// A word matches if it is equal when folded; the last word of the query also matches any word that begins with it, and counts like
  /// one word in all these spellings. No words match nothing.
  /// - Parameters:
  ///   - limit: how many to return at most; with few, the search costs little more than reading the words' lists.
  ///   - isIncluded: asked only about records that would be among the best.
  func search(_ text: String, limit: Int = .max, where isIncluded: ((RecordSlot) -> Bool)? = nil) -> [TextMatch] {
    search(TextQuery(text), limit: limit, where: isIncluded)
  }

  func search(_ query: TextQuery, limit: Int = .max, where isIncluded: ((RecordSlot) -> Bool)? = nil) -> [TextMatch] {
    guard limit > 0, let lists = lists(for: query), !lists.contains(where: \.isEmpty) else { return [] }
    let ranking = BM25(records: documents.count, words: wordCount)
    let weights = lists.map { ranking.weight(matches: $0.count) }
    var best = BestMatches(documents: SummaryTreeCursor(documents), limit: limit, isIncluded: isIncluded)
    if lists.count == 1 {
      lists[0].forEach { posting in
        let norm = ranking.norm(length: posting.length)
        best.offer(posting.number, score: BM25.score(weight: weights[0], frequency: posting.frequency, norm: norm))
      }
      return best.sorted()
    }
    // The shortest list leads, the others are asked; scores are added in the order of the words.
    let lead = lists.indices.min { lists[$0].count < lists[$1].count } ?? 0
    var cursors = lists.map { PostingCursor($0) }
    var frequencies = [UInt32](repeating: 0, count: lists.count)
    lists[lead].forEach { posting in
      for index in cursors.indices {
        frequencies[index] = index == lead ? posting.frequency : cursors[index].frequency(posting.number)
        if frequencies[index] == 0 { return }
      }
      let norm = ranking.norm(length: posting.length)
      var score = 0.0
      for index in weights.indices { score += BM25.score(weight: weights[index], frequency: frequencies[index], norm: norm) }
      best.offer(posting.number, score: score)
    }
    return best.sorted()
  }

  /// About how many records a search finds: never fewer than it does, unless very many words begin with the last.
  func estimate(_ text: String) -> Int {
    let query = TextQuery(text)
    guard let prefix = query.prefix else { return 0 }
    var least = documents.count
    for word in query.words { least = min(least, terms.find(word)?.postings.count ?? 0) }
    var sum = 0
    var budget = 1_000
    terms.forEach(from: prefix) { entry in
      guard entry.term.hasPrefix(prefix) else { return false }
      sum += entry.postings.count
      budget -= 1
      return sum < least && budget > 0
    }
    return min(least, sum)
  }

  /// The lists of the words in the order of the query, the last word's at the end; `nil` for no words.
  private func lists(for query: TextQuery) -> [PostingList]? {
    guard let prefix = query.prefix else { return nil }
    var lists = query.words.map { PostingList.tree(terms.find($0)?.postings ?? SummaryTree()) }
    if lists.contains(where: \.isEmpty) { return lists }
    var spellings: [SummaryTree<TextPosting>] = []
    terms.forEach(from: prefix) { entry in
      guard entry.term.hasPrefix(prefix) else { return false }
      spellings.append(entry.postings)
      return true
    }
    lists.append(PostingList(union: spellings, numbers: Int(nextNumber)))
    return lists
  }
}

/// The best records so far.
private struct BestMatches {
  private struct Candidate: Comparable {
    let score: Double
    let document: TextDocument

    /// Whether it is the worse one.
    static func < (left: Candidate, right: Candidate) -> Bool {
      left.score == right.score ? right.document.precedes(left.document) : left.score < right.score
    }
    static func == (left: Candidate, right: Candidate) -> Bool { left.document.number == right.document.number }
  }

  private var documents: SummaryTreeCursor<TextDocument>
  private let limit: Int
  private let isIncluded: ((RecordSlot) -> Bool)?
  /// The best ones; a heap only if there is a limit.
  private var heap = Heap<Candidate>()
  private var all: [Candidate] = []
  private var worst = -Double.infinity

  init(documents: SummaryTreeCursor<TextDocument>, limit: Int, isIncluded: ((RecordSlot) -> Bool)?) {
    (self.documents, self.limit, self.isIncluded) = (documents, limit, isIncluded)
  }

  /// Takes the next record; numbers ascend.
  mutating func offer(_ number: UInt32, score: Double) {
    guard score >= worst, let document = documents.seek(number), document.number == number else { return }
    let candidate = Candidate(score: score, document: document)
    if limit == .max {
      if isIncluded?(document.slot) ?? true { all.append(candidate) }
      return
    }
    if heap.count == limit, let least = heap.min, candidate < least { return }
    guard isIncluded?(document.slot) ?? true else { return }
    if heap.count < limit { heap.insert(candidate) } else { heap.replaceMin(with: candidate) }
    if heap.count == limit, let least = heap.min { worst = least.score }
  }

  func sorted() -> [TextMatch] {
    (limit == .max ? all : Array(heap.unordered)).sorted(by: >).map { TextMatch(slot: $0.document.slot, score: $0.score) }
  }
}
