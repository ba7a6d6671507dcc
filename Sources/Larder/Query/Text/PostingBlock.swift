/// Some records of the list that leads, with their scores so far; filled again for the next block, so that it stays in the cache.
struct PostingBlock {
  private(set) var count = 0
  private(set) var postings: [TextPosting] = []
  private(set) var scores: [Double] = []

  mutating func load(_ leaf: [TextPosting], weight: Double, _ ranking: BM25) {
    postings = leaf
    count = leaf.count
    scores.removeAll(keepingCapacity: true)
    for posting in leaf { scores.append(ranking.score(weight: weight, frequency: posting.frequency, length: posting.length)) }
  }

  /// Keeps the records that another word is in, too.
  mutating func keep(_ cursor: inout PostingCursor, weight: Double, _ ranking: BM25) {
    var kept = 0
    for index in 0..<count {
      let frequency = cursor.frequency(postings[index].number)
      guard frequency > 0 else { continue }
      scores[kept] = scores[index] + ranking.score(weight: weight, frequency: frequency, length: postings[index].length)
      if kept < index { postings[kept] = postings[index] }
      kept += 1
    }
    count = kept
  }
}
