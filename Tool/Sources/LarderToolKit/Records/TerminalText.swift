/// Escaping, width and truncation of text for a terminal.
package enum TerminalText {
  /// Returns the text with each control character as `\u{…}`, so that text in a record cannot control the user's terminal.
  package static func escaped(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: isControl) else { return text }
    var result = ""
    for scalar in text.unicodeScalars {
      if isControl(scalar) { result += scalar.escaped(asASCII: true) } else { result.unicodeScalars.append(scalar) }
    }
    return result
  }

  /// Returns one line of JSON with each control character as an escape of four hexadecimal digits.
  ///
  /// The JSON keeps its meaning, because JSON on one line has control characters only within texts.
  package static func escapedJSON(_ json: String) -> String {
    guard json.unicodeScalars.contains(where: isControl) else { return json }
    var result = ""
    for scalar in json.unicodeScalars {
      guard isControl(scalar) else {
        result.unicodeScalars.append(scalar)
        continue
      }
      // All these characters are below U+10000, so one escape of four digits is enough.
      let digits = String(scalar.value, radix: 16)
      result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }
    return result
  }

  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    // A fast path for ASCII: looking up the properties of a character takes long, and most text has none else.
    if 0x20..<0x7F ~= scalar.value { return false }
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: return true
    // Marks that change the direction of the following text can make it look like other text.
    case .format: return (0x202A...0x202E).contains(scalar.value) || (0x2066...0x2069).contains(scalar.value)
    default: return false
    }
  }

  /// Returns the number of terminal columns that a text takes.
  package static func width(of text: String) -> Int { text.reduce(0) { $0 + width(of: $1) } }

  private static func width(of character: Character) -> Int {
    guard let scalar = character.unicodeScalars.first else { return 0 }
    // Emoji and the wide characters of East Asia (Unicode's annex 11) take two columns.
    if scalar.properties.isEmojiPresentation { return 2 }
    switch scalar.value {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF, 0xA000...0xA4CF, 0xAC00...0xD7A3,
      0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x20000...0x3FFFD:
      return 2
    default: return 1
    }
  }

  /// Returns a text cut to a number of columns, with an ellipsis if something was cut off.
  package static func cut(_ text: String, to columns: Int) -> String {
    guard width(of: text) > columns else { return text }
    var (result, used) = ("", 0)
    for character in text {
      let next = width(of: character)
      // One column is left for the ellipsis.
      if used + next > columns - 1 { break }
      result.append(character)
      used += next
    }
    return result + "…"
  }
}
