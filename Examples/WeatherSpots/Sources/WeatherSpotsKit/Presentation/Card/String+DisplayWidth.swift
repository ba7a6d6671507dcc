import Foundation

extension Character {
  /// Number of terminal columns of the character: none, one, or two for East Asian wide characters and emoji.
  var columns: Int {
    guard let first = unicodeScalars.first else { return 0 }
    // Variation selector 16 asks for the emoji form, also of characters that are one column wide without it.
    if unicodeScalars.contains("\u{FE0F}") { return 2 }
    if first.properties.isEmojiPresentation || first.isEastAsianWide { return 2 }
    switch first.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format, .control: return 0
    default: return 1
    }
  }
}

extension Unicode.Scalar {
  /// Whether UAX 11 (East Asian Width) classes the character as wide or fullwidth.
  ///
  /// Emoji are not in these blocks.
  fileprivate var isEastAsianWide: Bool { Self.wide.contains { $0.contains(value) } }

  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3,
    0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x18DFF, 0x1AFF0...0x1B2FF,
    0x20000...0x3FFFD,
  ]
}

extension Unicode.Scalar {
  /// Whether the character moves a terminal's cursor, begins a line, or changes the direction of the following text.
  fileprivate var isHarmful: Bool {
    if value < 0x7F { return value < 0x20 }
    switch value {
    // DEL, the C1 controls (0x9B begins a sequence like ESC [), line separators, and the marks, embeddings and isolates
    // of bidirectional text.
    case 0x7F...0x9F, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: return true
    default: return false
    }
  }
}

extension String {
  /// The text without control characters, except for line ends and the color sequences of ``CardStyle``.
  package var withoutControls: String {
    // Nearly all texts are clean and are returned without a copy.
    guard unicodeScalars.contains(where: { $0.isHarmful && $0 != "\n" }) else { return self }
    var (kept, rest) = (String.UnicodeScalarView(), unicodeScalars[...])
    while let scalar = rest.first {
      // Only sequences that this program writes are let through: others can move the cursor or set the window's title.
      if let color = Self.color(rest) {
        kept.append(contentsOf: color)
        rest = rest.dropFirst(color.count)
        continue
      }
      if scalar == "\n" || !scalar.isHarmful { kept.append(scalar) } else if scalar == "\t" { kept.append(" ") }
      rest.removeFirst()
    }
    return String(kept)
  }

  /// Returns the color sequence of ``CardStyle`` at the start of the text, or `nil` if there is none.
  private static func color(_ text: Substring.UnicodeScalarView) -> Substring.UnicodeScalarView? {
    guard text.first == "\u{1B}" else { return nil }
    for code in ["0", "1", "2", "1;33", "36"] {
      let sequence = "\u{1B}[\(code)m".unicodeScalars
      if text.starts(with: sequence) { return text.prefix(sequence.count) }
    }
    return nil
  }

  /// Returns the line, cut and ended with a mark if it is wider than `width` columns.
  ///
  /// The mark counts toward the width. Color sequences take no columns.
  package func fitted(toColumns width: Int, mark: String = "…") -> String {
    var (text, used, isCut, isColored) = ("", 0, false, false)
    var rest = self[...]
    let plain = replacing(/\u{1B}\[[0-9;]*m/, with: "")
    guard plain.columns > width else { return self }
    while let character = rest.first {
      if let color = Self.color(rest.unicodeScalars) {
        text += String(color)
        // `ESC[0m` ends a color. After any other sequence the cut line must reset the color itself.
        isColored = color.count != 4 || !color.contains("0")
        rest = rest[color.endIndex...]
        continue
      }
      // Room for the mark is kept at each step. A mark of three columns would otherwise pass the width.
      guard used + character.columns + mark.columns <= width else {
        isCut = true
        break
      }
      text.append(character)
      used += character.columns
      rest.removeFirst()
    }
    return text + (isColored ? "\u{1B}[0m" : "") + (isCut ? mark : "")
  }

  /// The text in ASCII: letters without their accents, and a question mark for each character without an ASCII substitute.
  package var ascii: String {
    guard unicodeScalars.contains(where: { !$0.isASCII }) else { return self }
    var text = ""
    // Splits é into e and a combining accent, so that dropping the accent leaves the letter.
    for scalar in decomposedStringWithCompatibilityMapping.unicodeScalars {
      if scalar.isASCII {
        text.unicodeScalars.append(scalar)
      } else if let likeness = Self.likenesses[scalar] {
        text += likeness
      } else if ![.nonspacingMark, .enclosingMark, .spacingMark, .format].contains(scalar.properties.generalCategory) {
        text += "?"
      }
    }
    return text
  }

  private static let likenesses: [Unicode.Scalar: String] = [
    "ß": "ss", "æ": "ae", "Æ": "AE", "ø": "o", "Ø": "O", "œ": "oe", "Œ": "OE", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "d", "Ð": "D",
    "þ": "th", "Þ": "Th", "ı": "i", "ħ": "h", "Ħ": "H", "‘": "'", "’": "'", "ʻ": "'", "ʼ": "'", "“": "\"", "”": "\"", "–": "-", "—": "-",
    "‐": "-", "…": "...", "×": "x", "·": ".", "°": " deg", "⁄": "/",
  ]

  /// JSON text with control characters escaped as `\u` and four digits.
  ///
  /// Compact JSON has such characters only inside strings, where an escape is valid.
  package var escapedForJSON: String {
    guard unicodeScalars.contains(where: \.isHarmful) else { return self }
    var text = String.UnicodeScalarView()
    for scalar in unicodeScalars {
      guard scalar.isHarmful else {
        text.append(scalar)
        continue
      }
      // Every harmful character is below U+10000, so one escape of four digits is enough.
      let digits = String(scalar.value, radix: 16)
      text.append(contentsOf: "\\u\(String(repeating: "0", count: max(0, 4 - digits.count)))\(digits)".unicodeScalars)
    }
    return String(text)
  }
}

extension StringProtocol {
  /// Number of terminal columns of the text.
  package var columns: Int {
    // Most text is printable ASCII, where bytes are columns. The fast path saves the look-ups of Unicode properties.
    utf8.allSatisfy { (0x20..<0x7F).contains($0) } ? utf8.count : reduce(0) { $0 + $1.columns }
  }

  /// The text without characters that move a terminal's cursor or change the direction of the following text.
  var printable: String {
    let scalars = unicodeScalars.filter { !$0.isHarmful }
    return String(String.UnicodeScalarView(scalars))
  }

  /// Returns the text padded with spaces to at least `width` columns.
  package func padded(toColumns width: Int) -> String { self + String(repeating: " ", count: Swift.max(0, width - columns)) }

  /// Returns the text broken at spaces into lines of at most `width` columns.
  ///
  /// A longer word is not broken and has a line of its own.
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
