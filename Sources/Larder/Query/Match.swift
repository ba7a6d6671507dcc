/// A result of a query, with its distance, rank and text extract.
public struct Match<Item: Sendable>: Sendable {
  /// Record that the query found.
  public let item: Item
  /// Distance from the place of `near`, or `nil` for a query without one.
  public let distance: Distance?
  /// Rank of the record's words by BM25, where a greater number is a better match.
  ///
  /// Only the order of ranks has a meaning. `nil` for a query without words.
  public let score: Double?
  let source: ExtractSource?

  /// Part of the record's text around the words, or `nil` for a query without words.
  ///
  /// It is made at each access, which takes longer than finding the record: about 20 µs for a text of 20 words.
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
  /// About 160 characters of the text, in whole words, with "…" at each end where the text continues.
  public let text: String
  /// Matching words as ranges of `Character` offsets in ``text``, in order.
  public let highlights: [Range<Int>]
  /// Position of the source text in the declaration of the index.
  public let field: Int

  /// Creates an extract from its parts.
  ///
  /// Use it for previews and tests.
  public init(text: String, highlights: [Range<Int>], field: Int) {
    (self.text, self.highlights, self.field) = (text, highlights, field)
  }
}

extension TextExtract {
  /// Target length of extracts, in characters.
  static let width = 160

  /// Creates the extract from the text in which most of the query's words are close together, or returns `nil` if no text has one.
  init?(of query: TextQuery, from texts: [String], width: Int = Self.width) {
    if query.isImpossible { return nil }
    var best: (window: Window, field: Int)?
    for (field, text) in texts.enumerated() {
      guard let window = Window(of: query, in: text, width: width) else { continue }
      // `<`, so that the first of equal texts wins.
      if best.map({ $0.window.value < window.value }) ?? true { best = (window, field) }
    }
    guard let best else { return nil }
    self = best.window.extract(from: texts[best.field], field: best.field)
  }
}

/// A part of a text with the matches in it, all as UTF-8 offsets.
private struct Window {
  private struct Match {
    let range: Range<Int>
    /// Position of the query's word or prefix that it matches.
    let word: Int
  }

  private var range: Range<Int>
  private let matches: [Range<Int>]
  /// Rank of the window: the number of different words of the query in it, then the number of matches.
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

    // A sliding window over the matches: the most different words win, then the most matches, then the first. Bytes approximate characters.
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
      // `>` and not `>=`, so that the first of equal windows wins.
      if found > value { (chosen, value) = (first..<index + 1, found) }
    }
    self.value = value
    let core = matches[chosen.lowerBound].range.lowerBound..<matches[chosen.upperBound - 1].range.upperBound
    range = Self.widened(core, words: words, length: text.utf8.count, reach: reach)
    let range = range
    self.matches = matches.map(\.range).filter { $0.lowerBound >= range.lowerBound && $0.upperBound <= range.upperBound }
  }

  /// Widens a window by whole words, before and after by turns, while there is room, or to the whole text if it fits.
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
    // Up to 8 bytes outside the first and last word are included, such as a quotation mark or a full stop.
    if before < 0, low <= 8 { low = 0 }
    if after == words.count, length - high <= 8 { high = length }
    return low..<high
  }

  /// Returns the extract of the text, with the whole of a character in which a bound falls.
  func extract(from text: String, field: Int) -> TextExtract {
    var cut = ""
    var places: [Int] = []  // the offset in the text of each character of the cut
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
    // A combining mark at the start would merge with the ellipsis into one character and shift every highlight.
    let isCutBefore = (places.first ?? 0) > 0 && ("…" + cut).count == places.count + 1
    // The ellipsis is one character before all others.
    let shift = isCutBefore ? 1 : 0
    var highlights: [Range<Int>] = []
    for match in matches {
      // The segmentation can divide a character between two words, and highlights must not overlap.
      let lower = Swift.max(shift + (places.lastIndex { $0 <= match.lowerBound } ?? 0), highlights.last?.upperBound ?? 0)
      let upper = shift + (places.firstIndex { $0 >= match.upperBound } ?? places.count)
      if lower < upper { highlights.append(lower..<upper) }
    }
    return TextExtract(text: (isCutBefore ? "…" : "") + cut + (end < offset ? "…" : ""), highlights: highlights, field: field)
  }
}
