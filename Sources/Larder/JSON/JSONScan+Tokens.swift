// `JSONScan+Tokens.swift` reads the single tokens of a JSON text: names, strings, numbers and literals.
extension JSONScan {
  var current: UInt8? { index < bytes.count ? bytes[index] : nil }

  mutating func take(_ byte: UInt8) -> Bool {
    guard current == byte else { return false }
    index += 1
    return true
  }

  mutating func skipSpace() {
    // Larder stores records without white space between tokens, so the loop mostly ends at its first comparison.
    while index < bytes.count, bytes[index] <= 0x20 {
      guard [0x20, 0x0A, 0x0D, 0x09].contains(bytes[index]) else { return }
      index += 1
    }
  }

  mutating func literal(_ word: StaticString, _ kind: JSONEntry.Kind) -> Step {
    let end = index + word.utf8CodeUnitCount
    guard end <= bytes.count else { return .failed }
    for offset in 0..<word.utf8CodeUnitCount where bytes[index + offset] != word.utf8Start[offset] { return .failed }
    note(kind, from: index, to: end)
    index = end
    return .end
  }

  /// Reads the name of an object's member and the colon behind the name.
  mutating func name() -> Bool {
    guard current == UInt8(ascii: "\""), string() else { return false }
    noteOrder()
    skipSpace()
    return take(UInt8(ascii: ":"))
  }

  mutating func number() -> Bool {
    let start = index
    var isInteger = true
    _ = take(UInt8(ascii: "-"))
    // RFC 8259, section 6 allows no leading zeros, so a number that begins with 0 has no second integer digit.
    if !take(UInt8(ascii: "0")) {
      guard digits() > 0 else { return false }
    }
    if take(UInt8(ascii: ".")) {
      isInteger = false
      guard digits() > 0 else { return false }
    }
    if let byte = current, byte | 0x20 == UInt8(ascii: "e") {
      index += 1
      isInteger = false
      if !take(UInt8(ascii: "-")) { _ = take(UInt8(ascii: "+")) }
      let count = digits()
      guard count > 0 else { return false }
      // An exponent of three or more digits is valid JSON, but may be beyond the range of the type that decodes the number.
      if count > 2 { hasUnusualNumber = true }
    }
    // A number of many digits is valid JSON, but the type that decodes the number may be unable to hold all digits.
    if index - start > JSONSyntax.usualNumberLength { hasUnusualNumber = true }
    note(.number, isPlain: isInteger, from: start, to: index)
    return true
  }

  mutating func digits() -> Int {
    let start = index
    while index < bytes.count, bytes[index] &- 0x30 < 10 { index += 1 }
    return index - start
  }

  /// Reads a string, and moves behind its closing quotation mark.
  mutating func string() -> Bool {
    index += 1
    let start = index
    var isPlain = true
    while true {
      skipPlainText()
      guard let byte = current else { return false }
      switch byte {
      case UInt8(ascii: "\""):
        note(.string, isPlain: isPlain, from: start, to: index)
        index += 1
        return true
      case UInt8(ascii: "\\"):
        isPlain = false
        guard escape() else { return false }
      case 0x80...:
        isPlain = false
        // The UTF-8 of a string is checked, because `String(decoding:as:)` would silently replace invalid bytes when the record is decoded.
        guard multibyteCharacter() else { return false }
      case 0x20...:
        index += 1
      default:
        return false
      }
    }
  }

  /// Skips ASCII characters that have no special meaning inside a JSON string, eight at a time.
  ///
  /// Each byte of `marks` has its high bit set if the text's byte is a quotation mark, a reverse solidus, a control character or not ASCII.
  /// The marks are computed with the zero-byte test of Warren, Hacker's Delight, section 6-1. The lowest mark is always right, while the
  /// marks of bytes above it may be wrong.
  mutating func skipPlainText() {
    let ones: UInt64 = 0x0101_0101_0101_0101
    while bytes.count - index >= 8 {
      // The eight bytes are loaded as a little-endian number, so that the lowest marked byte is the first marked byte in the text.
      let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
      let quotes = word ^ (ones &* 0x22)
      let solidi = word ^ (ones &* 0x5C)
      let marks = ((quotes &- ones) & ~quotes) | ((solidi &- ones) & ~solidi) | ((word &- ones &* 0x20) & ~word) | word
      let found = marks & (ones &* 0x80)
      guard found == 0 else {
        index += found.trailingZeroBitCount >> 3
        return
      }
      index += 8
    }
  }

  mutating func escape() -> Bool {
    // A text that ends directly behind a reverse solidus is malformed, and reading the escaped character would be outside the buffer.
    guard index + 1 < bytes.count else { return false }
    switch bytes[index + 1] {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"), UInt8(ascii: "n"),
      UInt8(ascii: "r"), UInt8(ascii: "t"):
      index += 2
      return true
    case UInt8(ascii: "u"):
      // RFC 8259 allows unpaired surrogates, but no decoder accepts them, so the scan refuses them.
      guard let unit = codeUnit(), unit & 0xFC00 != 0xDC00 else { return false }
      guard unit & 0xFC00 == 0xD800 else { return true }
      guard let second = codeUnit() else { return false }
      return second & 0xFC00 == 0xDC00
    default:
      return false
    }
  }

  /// Returns the UTF-16 code unit of an escape `\uXXXX`, or `nil` if the escape is malformed.
  mutating func codeUnit() -> UInt16? {
    guard index + 6 <= bytes.count, bytes[index] == UInt8(ascii: "\\"), bytes[index + 1] == UInt8(ascii: "u") else { return nil }
    var unit: UInt16 = 0
    for byte in bytes[(index + 2)..<(index + 6)] {
      guard let digit = Hexadecimal.value(of: byte) else { return nil }
      unit = unit << 4 | UInt16(digit)
    }
    index += 6
    return unit
  }

  /// Reads one UTF-8 character of two to four bytes, and refuses overlong forms and surrogates (Unicode, table 3-7).
  mutating func multibyteCharacter() -> Bool {
    let first = bytes[index]
    let (count, second): (Int, ClosedRange<UInt8>)
    switch first {
    case 0xC2...0xDF: (count, second) = (2, 0x80...0xBF)
    case 0xE0: (count, second) = (3, 0xA0...0xBF)
    case 0xED: (count, second) = (3, 0x80...0x9F)
    case 0xE1...0xEF: (count, second) = (3, 0x80...0xBF)
    case 0xF0: (count, second) = (4, 0x90...0xBF)
    case 0xF1...0xF3: (count, second) = (4, 0x80...0xBF)
    case 0xF4: (count, second) = (4, 0x80...0x8F)
    default: return false
    }
    // A text that ends within a UTF-8 character is malformed, and reading the rest of the character would be outside the buffer.
    guard index + count <= bytes.count, second.contains(bytes[index + 1]) else { return false }
    for offset in 2..<max(count, 2) where bytes[index + offset] & 0xC0 != 0x80 { return false }
    index += count
    return true
  }
}
