extension Character {
  /// How many columns of a terminal the character takes: none, one, or two for East Asian wide characters and emoji.
  var columns: Int {
    guard let first = unicodeScalars.first else { return 0 }
    if unicodeScalars.contains("\u{FE0F}") { return 2 }
    if first.properties.isEmojiPresentation || first.isEastAsianWide { return 2 }
    switch first.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format, .control: return 0
    default: return 1
    }
  }
}

extension Unicode.Scalar {
  /// Whether UAX 11 calls the character wide or fullwidth; emoji are not in these blocks.
  fileprivate var isEastAsianWide: Bool { Self.wide.contains { $0.contains(value) } }

  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3,
    0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x18DFF, 0x1AFF0...0x1B2FF,
    0x20000...0x3FFFD,
  ]
}

extension StringProtocol {
  /// How many columns of a terminal the text takes.
  var columns: Int { reduce(0) { $0 + $1.columns } }

  /// The text without what could move a terminal's cursor or turn the direction of what follows.
  var printable: String {
    let scalars = unicodeScalars.filter { scalar in
      scalar.properties.generalCategory != .control && !(0x202A...0x202E).contains(scalar.value)
        && !(0x2066...0x2069).contains(scalar.value)
    }
    return String(String.UnicodeScalarView(scalars))
  }

  /// The text, with spaces after it up to some columns.
  func padded(toColumns width: Int) -> String { self + String(repeating: " ", count: Swift.max(0, width - columns)) }

  /// The text, cut so that it and a mark for what is missing take at most some columns.
  func truncated(toColumns width: Int, mark: String = "…") -> String {
    guard columns > width else { return String(self) }
    var (text, used) = ("", mark.columns)
    for character in self {
      guard used + character.columns <= width else { break }
      text.append(character)
      used += character.columns
    }
    return text + mark
  }

  /// The text on lines of at most some columns, broken at spaces; a word that is longer stands alone and whole.
  func wrapped(toColumns width: Int) -> [String] {
    var lines: [String] = []
    for word in split(separator: " ") {
      if let last = lines.last, last.columns + 1 + word.columns <= width {
        lines[lines.count - 1] = "\(last) \(word)"
      } else {
        lines.append(String(word))
      }
    }
    return lines
  }
}
