/// A result of a query, with what the query has found out about it.
public struct Match<Item: Sendable>: Sendable {
  /// The record.
  public let item: Item
  /// The distance from the place of `near`; `nil` for a query without one.
  public let distance: Distance?
  /// The rank of its words, by BM25: more is better.
  ///
  /// Only the order means something. `nil` for a query without words.
  public let score: Double?
  let source: ExtractSource?

  /// The part of its text where the words are; `nil` for a query without words.
  ///
  /// Made each time it is asked for, which takes longer than to find the record: some 20 µs for a text of 20 words.
  public var extract: TextExtract? { source.flatMap { TextExtract(of: $0.words, from: $0.texts) } }

  /// The words and texts that an extract is made from.
  struct ExtractSource: Hashable, Sendable {
    let words: TextQuery
    let texts: [String]
  }
}

extension Match: Equatable where Item: Equatable {}
extension Match: Hashable where Item: Hashable {}

/// A piece of a record's text around the words that a search found.
public struct TextExtract: Hashable, Sendable, Codable {
  /// About 160 characters of the text, whole words, with "…" at an end where the text goes on.
  public let text: String
  /// The words that matched, as offsets of characters (`Character`) in ``text``, in order.
  public let highlights: [Range<Int>]
  /// The text of the record that it is from, by its position in the declaration of the index.
  public let field: Int

  /// Makes an extract by hand, as for a preview.
  public init(text: String, highlights: [Range<Int>], field: Int) {
    (self.text, self.highlights, self.field) = (text, highlights, field)
  }
}

extension TextExtract {
  /// The length that extracts aim at, in characters.
  static let width = 160

  /// Makes the extract of the text where most of the query's words are close together; `nil` if none is there.
  init?(of query: TextQuery, from texts: [String], width: Int = Self.width) {
    if query.isImpossible { return nil }
    var best: (window: Window, field: Int)?
    for (field, text) in texts.enumerated() {
      guard let window = Window(of: query, in: text, width: width) else { continue }
      if best.map({ $0.window.value < window.value }) ?? true { best = (window, field) }
    }
    guard let best else { return nil }
    self = best.window.extract(from: texts[best.field], field: best.field)
  }
}

/// A stretch of a text with the matches in it; all offsets are of UTF-8.
private struct Window {
  private struct Match {
    let range: Range<Int>
    /// The place of the query's word that it matches.
    let word: Int
  }

  private var range: Range<Int>
  private let matches: [Range<Int>]
  /// The number of different words of the query here, then of all matches.
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

    // The stretch of matches that has most different words, then most, then is first; bytes stand in for characters.
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
      if found > value { (chosen, value) = (first..<index + 1, found) }
    }
    self.value = value
    let core = matches[chosen.lowerBound].range.lowerBound..<matches[chosen.upperBound - 1].range.upperBound
    range = Self.widened(core, words: words, length: text.utf8.count, reach: reach)
    let range = range
    self.matches = matches.map(\.range).filter { $0.lowerBound >= range.lowerBound && $0.upperBound <= range.upperBound }
  }

  /// Adds words before and after by turns while there is room; the whole text if it fits.
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
    // What stands outside the first and last word goes with them if it is short, such as a quotation mark or a full stop.
    if before < 0, low <= 8 { low = 0 }
    if after == words.count, length - high <= 8 { high = length }
    return low..<high
  }

  /// Returns the piece of the text; bounds that fall inside a character take the whole of it.
  func extract(from text: String, field: Int) -> TextExtract {
    var cut = ""
    var places: [Int] = []  // where the characters of the cut begin in the text
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
    // A mark or a joiner at the start would unite with the sign before it.
    let isCutBefore = (places.first ?? 0) > 0 && ("…" + cut).count == places.count + 1
    let shift = isCutBefore ? 1 : 0
    var highlights: [Range<Int>] = []
    for match in matches {
      // Two words may share a character that the segmentation divides.
      let lower = Swift.max(shift + (places.lastIndex { $0 <= match.lowerBound } ?? 0), highlights.last?.upperBound ?? 0)
      let upper = shift + (places.firstIndex { $0 >= match.upperBound } ?? places.count)
      if lower < upper { highlights.append(lower..<upper) }
    }
    return TextExtract(text: (isCutBefore ? "…" : "") + cut + (end < offset ? "…" : ""), highlights: highlights, field: field)
  }
}
