/// A result of a query: the record, with its distance, rank and text extract.
public struct Match<Item: Sendable>: Sendable {
  /// Record that the query found.
  public let item: Item
  /// Distance of the record from the place of `near`, or `nil` for a query without `near`.
  public let distance: Distance?
  /// Rank of the record's text for the query's words by the BM25 formula.
  ///
  /// A greater rank is a better match. The rank has no unit, so only compare it with the ranks of other results. The rank is `nil` for a
  /// query without words.
  public let score: Double?
  let source: ExtractSource?

  /// Part of the record's text around the words that the query searched for, or `nil` for a query without words.
  ///
  /// Each access to `extract` makes the extract anew, which takes longer than finding the record: about 20 µs for a text of 20 words.
  public var extract: TextExtract? { source.flatMap { TextExtract(of: $0.words, from: $0.texts) } }

  /// The words of the query and the texts of the record, from which an extract is made.
  struct ExtractSource: Hashable, Sendable {
    let words: TextQuery
    let texts: [String]
  }
}

extension Match: Equatable where Item: Equatable {}
extension Match: Hashable where Item: Hashable {}

/// A part of a record's text around the words that a search found.
public struct TextExtract: Hashable, Sendable, Codable {
  /// About 160 characters of the text, cut at word boundaries, with "…" at each end where the text continues.
  public let text: String
  /// Ranges of the matching words in ``text``, as offsets in `Character`s, in ascending order.
  public let highlights: [Range<Int>]
  /// Position of the text in the list of texts that the full-text index declares.
  public let field: Int

  /// Creates an extract from its parts.
  ///
  /// Use `init(text:highlights:field:)` for previews and tests.
  public init(text: String, highlights: [Range<Int>], field: Int) {
    (self.text, self.highlights, self.field) = (text, highlights, field)
  }
}

extension TextExtract {
  /// Intended length of an extract, in characters.
  static let width = 160

  /// Creates the extract of the text in which the most words of the query are close together, or returns `nil` without a match.
  init?(of query: TextQuery, from texts: [String], width: Int = Self.width) {
    if query.isImpossible { return nil }
    var best: (window: Window, field: Int)?
    for (field, text) in texts.enumerated() {
      guard let window = Window(of: query, in: text, width: width) else { continue }
      // The comparison is `<` and not `<=`, so that of two texts with equally many matching words close together, the first text is used.
      if best.map({ $0.window.value < window.value }) ?? true { best = (window, field) }
    }
    guard let best else { return nil }
    self = best.window.extract(from: texts[best.field], field: best.field)
  }
}

/// A part of a text, and the matching words in it, as ranges of UTF-8 offsets.
private struct Window {
  private struct Match {
    let range: Range<Int>
    /// Position of the matched word in the query's list of words and prefixes.
    let word: Int
  }

  private var range: Range<Int>
  private let matches: [Range<Int>]
  /// Rank of the window: the number of different query words in the window, then the number of matching words.
  let value: (Int, Int)

  init?(of query: TextQuery, in text: String, width: Int) {
    var words: [Range<Int>] = []
    var matches: [Match] = []
    var folding = TextFolding()
    folding.words(in: text) { term, range in
      words.append(range)
      if let word = query.place(of: term) { matches.append(Match(range: range, word: word)) }
    }
    guard !matches.isEmpty else { return nil }

    // A window (a range of the text) slides over the matching words. The window with the most different query words is chosen, of these the
    // window with the most matching words, and of these the first. The width of a window is a number of bytes that approximates `width`
    // characters.
    let reach = text.utf8.count * width / Swift.max(1, text.count)
    var (first, chosen, value) = (0, 0..<1, (0, 0))
    var counts = [Int](repeating: 0, count: query.words.count + query.prefixes.count)
    for (index, match) in matches.enumerated() {
      counts[match.word] += 1
      while first < index, match.range.upperBound - matches[first].range.lowerBound > reach {
        counts[matches[first].word] -= 1
        first += 1
      }
      let found = (counts.count { $0 > 0 }, index - first + 1)
      // The comparison is `>` and not `>=`, so that of two windows with equal ranks the first is kept.
      if found > value { (chosen, value) = (first..<index + 1, found) }
    }
    self.value = value
    let core = matches[chosen.lowerBound].range.lowerBound..<matches[chosen.upperBound - 1].range.upperBound
    range = Self.widened(core, words: words, length: text.utf8.count, reach: reach)
    let range = range
    self.matches = matches.map(\.range).filter { $0.lowerBound >= range.lowerBound && $0.upperBound <= range.upperBound }
  }

  /// Widens a window by whole words on both sides in turn, up to `reach` bytes, or to the whole text if the text is no longer.
  private static func widened(_ core: Range<Int>, words: [Range<Int>], length: Int, reach: Int) -> Range<Int> {
    if length <= reach { return 0..<length }
    var before = words.lastIndex { $0.upperBound <= core.lowerBound } ?? -1
    var after = words.firstIndex { $0.lowerBound >= core.upperBound } ?? words.count
    var (low, high) = (core.lowerBound, core.upperBound)
    var isGrowing = true
    while isGrowing {
      isGrowing = false
      if before >= 0, high - words[before].lowerBound <= reach {
        low = words[before].lowerBound
        before -= 1
        isGrowing = true
      }
      if after < words.count, words[after].upperBound - low <= reach {
        high = words[after].upperBound
        after += 1
        isGrowing = true
      }
    }
    // If the window reaches the first or last word, up to 8 more bytes are included, such as a quotation mark or a full stop.
    if before < 0, low <= 8 { low = 0 }
    if after == words.count, length - high <= 8 { high = length }
    return low..<high
  }

  /// Returns the extract that shows the window of the text.
  ///
  /// A character that lies only partly in the window is included as a whole.
  func extract(from text: String, field: Int) -> TextExtract {
    var cut = ""
    var places: [Int] = []  // the UTF-8 offset in the text of each character in `cut`
    var offset = 0
    var end = range.upperBound
    for character in text {
      let next = offset + character.utf8.count
      if next > range.lowerBound, offset < range.upperBound {
        cut.append(character)
        places.append(offset)
        end = next
      }
      offset = next
    }
    // If the extract began with a combining mark, an ellipsis and the mark would form one character, and all highlights would be off by
    // one. An extract that begins with a combining mark therefore gets no ellipsis in front.
    let isCutBefore = (places.first ?? 0) > 0 && ("…" + cut).count == places.count + 1
    // The ellipsis in front is one more character, so all highlights move by one.
    let shift = isCutBefore ? 1 : 0
    var highlights: [Range<Int>] = []
    for match in matches {
      // Word segmentation may divide a character between two words. The lower bound of a highlight is limited so that the highlights of two
      // words that share a character do not overlap.
      let lower = Swift.max(shift + (places.lastIndex { $0 <= match.lowerBound } ?? 0), highlights.last?.upperBound ?? 0)
      let upper = shift + (places.firstIndex { $0 >= match.upperBound } ?? places.count)
      if lower < upper { highlights.append(lower..<upper) }
    }
    return TextExtract(text: (isCutBefore ? "…" : "") + cut + (end < offset ? "…" : ""), highlights: highlights, field: field)
  }
}
