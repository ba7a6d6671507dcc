/// The class of a scalar in the rules of word boundaries, after the property Word_Break of Unicode (UAX #29).
///
/// Swift has no public access to that property, so the classes follow from the general category and others; ``WordSegmentation`` lists
/// what differs.
enum WordClass: UInt8 {
  /// White space and whatever else no rule joins.
  case other
  case letter
  case hebrewLetter
  case numeric
  /// A word by itself: an ideograph, a kana, a number sign such as ½.
  case single
  /// A picture that a joiner may connect with the next.
  case emoji
  case regionalIndicator
  /// Belongs to what stands before it: combining marks, format characters.
  case extend
  /// A later byte of a scalar.
  case continuation
  case joiner
  case midLetter
  case midNumber
  case midNumberLetter
  case singleQuote
  case doubleQuote
  /// Joins letters and digits: the low line.
  case connector
  case newline

  var isWord: Bool { rawValue >= Self.letter.rawValue && rawValue <= Self.regionalIndicator.rawValue }
  var isLetter: Bool { self == .letter || self == .hebrewLetter }
  var isExtending: Bool { self == .extend || self == .continuation || self == .joiner }

  /// The classes of ASCII, by code.
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

  /// Finds the class of a scalar beyond ASCII.
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
      // Below U+0100 emoji are © and ®.
      self = properties.isEmojiModifier ? .extend : properties.isEmoji && code > 0xFF ? .emoji : properties.isAlphabetic ? .letter : .other
    }
  }

  /// Returns the class of scalars that their category does not tell.
  private static func listed(_ code: UInt32) -> WordClass? {
    switch code {
    case 0x85: .newline
    // The prolonged sound mark and the halfwidth voicing marks belong to the kana before them.
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
