/// Some records of the list that leads, with their scores so far; filled again for the next block, so that it stays in the cache.
///
/// Records that cannot reach the score to beat, whatever the other words add, are left out early.
struct PostingBlock {
  private(set) var postings: [TextPosting] = []
  private(set) var scores: [Double] = []

  /// Takes the records of a block that have at least the score `least` by what they start at and their first word.
  mutating func load(
    _ block: [TextPosting], weight: Double, _ ranking: BM25, startingAt whole: inout WholeWords, atLeast least: Double
  ) {
    postings.removeAll(keepingCapacity: true)
    scores.removeAll(keepingCapacity: true)
    for posting in block {
      let score = whole.start(posting.number) + ranking.score(weight: weight, frequency: posting.frequency, length: posting.length)
      guard score >= least else { continue }
      postings.append(posting)
      scores.append(score)
    }
  }

  /// Keeps the records that another word is in, too, if they then have at least the score `least`.
  mutating func keep(_ cursor: inout PostingCursor, weight: Double, _ ranking: BM25, atLeast least: Double) {
    var kept = 0
    for (index, posting) in postings.enumerated() {
      let frequency = cursor.frequency(posting.number)
      guard frequency > 0 else { continue }
      let score = scores[index] + ranking.score(weight: weight, frequency: frequency, length: posting.length)
      guard score >= least else { continue }
      (postings[kept], scores[kept]) = (posting, score)
      kept += 1
    }
    postings.removeSubrange(kept...)
    scores.removeSubrange(kept...)
  }
}
