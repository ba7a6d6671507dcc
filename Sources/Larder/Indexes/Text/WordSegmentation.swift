// Text/ holds full-text search: where words begin and end, what counts as the same word, the index with its ranking, and extracts.
// Invariant: texts and queries go through the same segmentation and folding, and nothing else decides what matches. Called by the planner.

/// The words of a text, by the word boundary rules of Unicode (UAX #29, "Unicode Text Segmentation", section 4).
///
/// Its boundaries delimit the words; what holds no letter, digit or emoji is no word. "can't", "3.14", "1,000" and "snake_case" are one
/// word each, "well-known" is two. It differs from the standard's default rules where search is better served:
/// - Each Han ideograph, hiragana and katakana is a word by itself (the standard keeps a run of katakana together), with the marks and the
///   prolonged sound mark that follow it. So a query finds compounds that are written without spaces.
/// - A run of Thai, Lao, Khmer or Burmese is one word: to divide it takes a dictionary.
/// - A number sign that is not a digit (½, ²) is a word. A narrow no-break space ends a word.
enum WordSegmentation {
  /// Visits the words as ranges of UTF-8 offsets, with their bytes.
  static func words(in text: some Collection<UInt8>, _ visit: (Range<Int>, Slice<UnsafeBufferPointer<UInt8>>) -> Void) {
    if let done: Void = text.withContiguousStorageIfAvailable({ words(inBytes: $0, visit) }) { return done }
    Array(text).withUnsafeBufferPointer { words(inBytes: $0, visit) }
  }

  private static func words(inBytes bytes: UnsafeBufferPointer<UInt8>, _ visit: (Range<Int>, Slice<UnsafeBufferPointer<UInt8>>) -> Void) {
    let scanner = WordScanner(bytes: bytes, ascii: WordClass.ascii)
    var index = 0
    while index < bytes.count {
      let start = index
      if scanner.segment(&index) { visit(start..<index, bytes[start..<index]) }
    }
  }
}

/// A scanner that applies the rules to bytes, each of which has a class, so that places are offsets in the text.
private struct WordScanner {
  let bytes: UnsafeBufferPointer<UInt8>
  let ascii: [WordClass]

  private func wordClass(_ index: Int) -> WordClass {
    let byte = bytes[index]
    return byte < 0x80 ? ascii[Int(byte)] : byte < 0xC0 ? .continuation : WordClass(scalar(at: index))
  }

  /// Returns the scalar whose bytes begin at an offset; a string's bytes are always valid.
  private func scalar(at index: Int) -> Unicode.Scalar {
    let lead = bytes[index]
    let length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4
    var value = UInt32(lead) & (length == 2 ? 0x1F : length == 3 ? 0x0F : 0x07)
    for offset in index + 1..<min(index + length, bytes.count) { value = value << 6 | UInt32(bytes[offset] & 0x3F) }
    return Unicode.Scalar(value) ?? "\u{FFFD}"
  }

  /// Moves from the start of a segment to its end, and says whether it is a word.
  func segment(_ index: inout Int) -> Bool {
    var base = wordClass(index)
    var isWord = base.isWord
    index += 1
    if base == .newline {
      // The line ends of Unicode have two or three bytes: the next segment begins behind all of them.
      while index < bytes.count, wordClass(index) == .continuation { index += 1 }
      return false
    }
    while true {
      var isJoined = base == .joiner
      while index < bytes.count, case let next = wordClass(index), next.isExtending {  // WB4
        if next != .continuation { isJoined = next == .joiner }
        index += 1
      }
      guard index < bytes.count else { return isWord }
      let next = wordClass(index)
      var end = index + 1
      switch (base, next) {
      case (_, .emoji) where isJoined: base = .emoji  // WB3c
      case (.letter, .letter), (.letter, .hebrewLetter), (.hebrewLetter, .letter), (.hebrewLetter, .hebrewLetter),  // WB5
        (.letter, .numeric), (.hebrewLetter, .numeric), (.numeric, .letter), (.numeric, .hebrewLetter), (.numeric, .numeric),  // WB8-10
        (.letter, .connector), (.hebrewLetter, .connector), (.numeric, .connector), (.connector, .connector),  // WB13a
        (.connector, .letter), (.connector, .hebrewLetter), (.connector, .numeric):  // WB13b
        base = next
      case (.letter, .midLetter), (.letter, .midNumberLetter), (.letter, .singleQuote),
        (.hebrewLetter, .midLetter), (.hebrewLetter, .midNumberLetter), (.hebrewLetter, .singleQuote):  // WB6, WB7
        if let after = nextBase(&end), after.isLetter {
          base = after
        } else if base == .hebrewLetter, next == .singleQuote {  // WB7a
          end = index + 1
          base = .other
        } else {
          return isWord
        }
      case (.hebrewLetter, .doubleQuote):  // WB7b, WB7c
        guard let after = nextBase(&end), after == .hebrewLetter else { return isWord }
        base = after
      case (.numeric, .midNumber), (.numeric, .midNumberLetter), (.numeric, .singleQuote):  // WB11, WB12
        guard let after = nextBase(&end), after == .numeric else { return isWord }
      case (.regionalIndicator, .regionalIndicator): base = .other  // WB15, WB16: pairs
      default: return isWord  // WB999
      }
      isWord = isWord || base.isWord
      index = end
    }
  }

  /// Returns the next class that does not extend the one before, and the offset after it.
  private func nextBase(_ index: inout Int) -> WordClass? {
    while index < bytes.count {
      let found = wordClass(index)
      index += 1
      if !found.isExtending { return found }
    }
    return nil
  }
}
