// Text/ holds full-text search: segmentation into words, folding of spellings, the index with its ranking, and queries.
// Invariant: records' texts and queries go through the same segmentation and folding, which alone decide which records match.
// Called by IndexSet, the query planner, RecordMatcher and Match.

/// The segmentation of a text into words, by Unicode's word boundary rules (UAX #29, "Unicode Text Segmentation", section 4).
///
/// A segment between two boundaries is a word if it holds a letter, a digit or an emoji. "can't", "3.14", "1,000" and "snake_case" are one
/// word each, and "well-known" is two words. For better search results, the rules differ from the standard's defaults:
/// - Each Han ideograph, hiragana and katakana is a word by itself, with the marks and the prolonged sound mark that follow it. (The
///   standard makes one word of consecutive katakana.) With one word for each character, a query finds the parts of compounds that are
///   written without spaces.
/// - Consecutive Thai, Lao, Khmer or Burmese letters are one word, because dividing them into words takes a dictionary.
/// - A number sign that is not a digit (½, ²) is a word. A narrow no-break space ends a word.
enum WordSegmentation {
  /// Visits the words of a text as ranges of UTF-8 offsets, with their bytes.
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

/// A scanner that applies the word boundary rules to UTF-8 bytes.
///
/// Every byte has a ``WordClass``, even the bytes of a scalar after its first byte. The scanner therefore moves byte by byte, and its
/// positions are UTF-8 offsets in the text.
private struct WordScanner {
  let bytes: UnsafeBufferPointer<UInt8>
  // The scanner has its own reference to the static table, because each access to a static property checks whether it is initialized.
  let ascii: [WordClass]

  private func wordClass(_ index: Int) -> WordClass {
    let byte = bytes[index]
    return byte < 0x80 ? ascii[Int(byte)] : byte < 0xC0 ? .continuation : WordClass(scalar(at: index))
  }

  /// Returns the scalar whose bytes begin at an offset, without a check, because a Swift string is always valid UTF-8.
  private func scalar(at index: Int) -> Unicode.Scalar {
    let lead = bytes[index]
    let length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4
    var value = UInt32(lead) & (length == 2 ? 0x1F : length == 3 ? 0x0F : 0x07)
    for offset in index + 1..<min(index + length, bytes.count) { value = value << 6 | UInt32(bytes[offset] & 0x3F) }
    return Unicode.Scalar(value) ?? "\u{FFFD}"
  }

  /// Moves from the start of a segment to its end, and returns true if the segment is a word.
  func segment(_ index: inout Int) -> Bool {
    var base = wordClass(index)
    var isWord = base.isWord
    index += 1
    if base == .newline {
      // NEL, LINE SEPARATOR and PARAGRAPH SEPARATOR have two or three bytes. The next segment begins after all bytes of the newline.
      while index < bytes.count, wordClass(index) == .continuation { index += 1 }
      return false
    }
    while true {
      var isJoined = base == .joiner
      while index < bytes.count, case let next = wordClass(index), next.isExtending {  // rule WB4 of UAX #29
        if next != .continuation { isJoined = next == .joiner }
        index += 1
      }
      guard index < bytes.count else { return isWord }
      let next = wordClass(index)
      var end = index + 1
      switch (base, next) {
      case (_, .emoji) where isJoined: base = .emoji  // rule WB3c: a zero-width joiner connects emoji
      case (.letter, .letter), (.letter, .hebrewLetter), (.hebrewLetter, .letter), (.hebrewLetter, .hebrewLetter),  // rule WB5
        (.letter, .numeric), (.hebrewLetter, .numeric), (.numeric, .letter), (.numeric, .hebrewLetter), (.numeric, .numeric),  // WB8-10
        (.letter, .connector), (.hebrewLetter, .connector), (.numeric, .connector), (.connector, .connector),  // rule WB13a
        (.connector, .letter), (.connector, .hebrewLetter), (.connector, .numeric):  // rule WB13b
        base = next
      case (.letter, .midLetter), (.letter, .midNumberLetter), (.letter, .singleQuote),
        (.hebrewLetter, .midLetter), (.hebrewLetter, .midNumberLetter), (.hebrewLetter, .singleQuote):  // rules WB6 and WB7
        if let after = nextBase(&end), after.isLetter {
          base = after
        } else if base == .hebrewLetter, next == .singleQuote {  // rule WB7a: a Hebrew letter keeps a final apostrophe
          end = index + 1
          base = .other
        } else {
          return isWord
        }
      case (.hebrewLetter, .doubleQuote):  // rules WB7b and WB7c: a double quote between Hebrew letters
        guard let after = nextBase(&end), after == .hebrewLetter else { return isWord }
        base = after
      case (.numeric, .midNumber), (.numeric, .midNumberLetter), (.numeric, .singleQuote):  // rules WB11 and WB12
        guard let after = nextBase(&end), after == .numeric else { return isWord }
      case (.regionalIndicator, .regionalIndicator): base = .other  // rules WB15 and WB16: two regional indicators form a flag
      default: return isWord  // rule WB999: a boundary between all other scalars
      }
      isWord = isWord || base.isWord
      index = end
    }
  }

  /// Returns the class of the next scalar that does not extend the scalar before it, and moves `index` past its first byte.
  private func nextBase(_ index: inout Int) -> WordClass? {
    while index < bytes.count {
      let found = wordClass(index)
      index += 1
      if !found.isExtending { return found }
    }
    return nil
  }
}

/// The class of a scalar in the word boundary rules, similar to Unicode's property Word_Break (UAX #29).
///
/// Swift has no public access to the property Word_Break, so the classes are derived from the general category and other properties.
/// ``WordSegmentation`` lists the differences to the standard.
enum WordClass: UInt8 {
  /// White space, or any other scalar that no boundary rule joins with its neighbours.
  case other
  case letter
  case hebrewLetter
  case numeric
  /// A scalar that is a word by itself: an ideograph, a kana, or a number sign such as ½.
  case single
  /// A pictograph, which a zero-width joiner may connect with the next pictograph to one word.
  case emoji
  case regionalIndicator
  /// A scalar that belongs to the scalar before it: a combining mark or a format character.
  case extend
  /// A byte of a multi-byte scalar after its first byte.
  case continuation
  case joiner
  case midLetter
  case midNumber
  case midNumberLetter
  case singleQuote
  case doubleQuote
  /// A scalar that joins letters and digits to one word, such as the low line.
  case connector
  case newline

  var isWord: Bool { rawValue >= Self.letter.rawValue && rawValue <= Self.regionalIndicator.rawValue }
  var isLetter: Bool { self == .letter || self == .hebrewLetter }
  var isExtending: Bool { self == .extend || self == .continuation || self == .joiner }

  /// Classes of the ASCII scalars, where the position is the scalar's code.
  static let ascii: [WordClass] = (0..<128).map { (code: UInt8) -> WordClass in
    switch code {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"): .letter
    case UInt8(ascii: "0")...UInt8(ascii: "9"): .numeric
    case 0x0A...0x0D: .newline
    case UInt8(ascii: "\""): .doubleQuote
    case UInt8(ascii: "'"): .singleQuote
    case UInt8(ascii: ","), UInt8(ascii: ";"): .midNumber
    case UInt8(ascii: "."): .midNumberLetter
    case UInt8(ascii: ":"): .midLetter
    case UInt8(ascii: "_"): .connector
    default: .other
    }
  }

  /// Creates the class of a scalar beyond ASCII.
  init(_ scalar: Unicode.Scalar) {
    let code = scalar.value
    if let known = Self.listed(code) {
      self = known
      return
    }
    let properties = scalar.properties
    switch properties.generalCategory {
    case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter, .letterNumber:
      self = properties.isIdeographic ? .single : .letter
    case .nonspacingMark, .spacingMark, .enclosingMark, .format: self = .extend
    case .decimalNumber: self = .numeric
    case .otherNumber: self = .single
    case .connectorPunctuation: self = .connector
    case .lineSeparator, .paragraphSeparator: self = .newline
    default:
      // The signs © and ®, the only emoji from U+0080 to U+00FF, do not count as words.
      self = properties.isEmojiModifier ? .extend : properties.isEmoji && code > 0xFF ? .emoji : properties.isAlphabetic ? .letter : .other
    }
  }

  /// Returns the class of a scalar whose general category does not determine its class, or `nil` for all other scalars.
  private static func listed(_ code: UInt32) -> WordClass? {
    switch code {
    case 0x85: .newline
    // The prolonged sound mark and the halfwidth voicing marks belong to the kana before them, so they do not begin a word.
    case 0x30FC, 0xFF70, 0xFF9E, 0xFF9F: .extend
    case 0x3041...0x3096, 0x309D...0x309F, 0x30A1...0x30FA, 0x30FD...0x30FF, 0x31F0...0x31FF, 0xFF66...0xFF9D, 0x1B000...0x1B16F:
      .single
    case 0x05D0...0x05EA, 0x05EF...0x05F2, 0xFB1D...0xFB4F: code == 0xFB1E ? .extend : code == 0xFB29 ? .other : .hebrewLetter
    case 0x05F3: .letter
    case 0x200B: .other
    case 0x200D: .joiner
    case 0x1F1E6...0x1F1FF: .regionalIndicator
    case 0x00B7, 0x0387, 0x055F, 0x05F4, 0x2027, 0xFE13, 0xFE55, 0xFF1A: .midLetter
    case 0x2018, 0x2019, 0x2024, 0xFE52, 0xFF07, 0xFF0E: .midNumberLetter
    case 0x037E, 0x0589, 0x060C, 0x060D, 0x066C, 0x07F8, 0x2044, 0xFE10, 0xFE14, 0xFE50, 0xFE54, 0xFF0C, 0xFF1B: .midNumber
    case 0x066B: .numeric
    default: nil
    }
  }
}
