/// The scores that records begin with, one after the other by ascending number: a bonus where a prefix is a word of its own.
///
/// A value that is handed on and no closure: what closures capture is guarded at every access, which would cost more than the scores.
struct WholeWords {
  private var words: [Word] = []
  private let bonus: Double

  /// Takes the records that hold each prefix as a word; `numbers` is greater than any number in them.
  init(_ words: [PersistentTree<TextPosting>], bonus: Double, numbers: Int) {
    self.bonus = bonus
    self.words = words.map { Word($0, numbers: numbers) }
  }

  /// Returns the score that a record begins with.
  mutating func start(_ number: UInt32) -> Double {
    var sum = 0.0
    for index in words.indices where words[index].isIn(number) { sum += bonus }
    return sum
  }

  private struct Word {
    /// By number, for a common word: quicker than to look for each; empty for others.
    private var isHolder: [Bool] = []
    private var cursor: PersistentTreeCursor<TextPosting>

    init(_ postings: PersistentTree<TextPosting>, numbers: Int) {
      cursor = PersistentTreeCursor(postings)
      guard postings.count > numbers / 32 else { return }
      isHolder = [Bool](repeating: false, count: numbers)
      postings.forEachLeaf { leaf in for posting in leaf { isHolder[Int(posting.number)] = true } }
    }

    mutating func isIn(_ number: UInt32) -> Bool { isHolder.isEmpty ? cursor.move(to: number) : isHolder[Int(number)] }
  }
}
