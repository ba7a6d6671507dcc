internal import Foundation

/// The grammar of RFC 8259, checked on bytes in one pass, without decoding them.
///
/// What an encoder gives is looked at before it is stored: `JSONEncoder` writes `NaN` for `Decimal.nan`, which nothing can read back and
/// which would make the whole file invalid. Unpaired surrogates are refused too, though the grammar lets them pass: no decoder takes them.
enum JSONSyntax {
  /// The result of checking a text.
  enum Verdict: Equatable {
    /// JSON, nested no deeper than the limit.
    ///
    /// `hasUnusualNumber` says that a number has more digits, or a larger exponent, than any `Double` is written with: whether a decoder
    /// takes it depends on the type.
    case valid(hasUnusualNumber: Bool)
    /// Not JSON, from this byte on.
    case malformed(offset: Int)
    /// Arrays and objects nest deeper than the limit.
    case tooDeep
  }

  /// Judges a text: one value, with white space around it, and nothing after it.
  ///
  /// Cost: linear, about a nanosecond a byte. Never recurses.
  /// - Parameter limit: The deepest nesting that is accepted, at most 128.
  static func verdict(on json: Data, depthLimit limit: Int) -> Verdict {
    json.withUnsafeBytes { bytes in
      var scan = JSONScan(bytes, depthLimit: min(limit, JSONScan.maximumDepth))
      return scan.run()
    }
  }
}

/// One pass over a text.
struct JSONScan {
  /// As many as there are bits in ``inner`` and ``outer``.
  static let maximumDepth = 128

  private let bytes: UnsafeRawBufferPointer
  private let depthLimit: Int
  private var index = 0
  private var depth = 0
  /// The kinds of the containers around: a set bit for an object, the innermost in the lowest bit.
  private var inner: UInt64 = 0
  private var outer: UInt64 = 0
  private var hasUnusualNumber = false

  init(_ bytes: UnsafeRawBufferPointer, depthLimit: Int) {
    self.bytes = bytes
    self.depthLimit = depthLimit
  }

  private enum Step { case value, end, failed, tooDeep }

  mutating func run() -> JSONSyntax.Verdict {
    while true {
      switch value() {
      case .value: continue
      case .tooDeep: return .tooDeep
      case .failed: return .malformed(offset: index)
      case .end: break
      }
      switch follow() {
      case .value: continue
      case .end: return .valid(hasUnusualNumber: hasUnusualNumber)
      case .failed, .tooDeep: return .malformed(offset: index)
      }
    }
  }

  /// Reads a value, or the beginning of a container whose first value comes next.
  private mutating func value() -> Step {
    skipSpace()
    guard let byte = current else { return .failed }
    switch byte {
    case UInt8(ascii: "\""):
      return string() ? .end : .failed
    case UInt8(ascii: "{"):
      guard push(isObject: true) else { return .tooDeep }
      skipSpace()
      if take(UInt8(ascii: "}")) { return pop() }
      return name() ? .value : .failed
    case UInt8(ascii: "["):
      guard push(isObject: false) else { return .tooDeep }
      skipSpace()
      return take(UInt8(ascii: "]")) ? pop() : .value
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      return number() ? .end : .failed
    case UInt8(ascii: "t"): return literal("true")
    case UInt8(ascii: "f"): return literal("false")
    case UInt8(ascii: "n"): return literal("null")
    default: return .failed
    }
  }

  /// Reads what comes behind a value, up to the next value or the end of the text.
  private mutating func follow() -> Step {
    while true {
      skipSpace()
      guard depth > 0 else { return index == bytes.count ? .end : .failed }
      guard let byte = current else { return .failed }
      let isObject = inner & 1 == 1
      switch byte {
      case UInt8(ascii: ","):
        index += 1
        guard isObject else { return .value }
        skipSpace()
        return name() ? .value : .failed
      case UInt8(ascii: "}") where isObject, UInt8(ascii: "]") where !isObject:
        index += 1
        _ = pop()
      default:
        return .failed
      }
    }
  }

  private mutating func push(isObject: Bool) -> Bool {
    guard depth < depthLimit else { return false }
    index += 1
    depth += 1
    outer = outer << 1 | inner >> 63
    inner = inner << 1 | (isObject ? 1 : 0)
    return true
  }

  private mutating func pop() -> Step {
    depth -= 1
    inner = inner >> 1 | outer << 63
    outer >>= 1
    return .end
  }

  // MARK: Tokens

  private var current: UInt8? { index < bytes.count ? bytes[index] : nil }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard current == byte else { return false }
    index += 1
    return true
  }

  private mutating func skipSpace() {
    while index < bytes.count, bytes[index] <= 0x20 {
      guard [0x20, 0x0A, 0x0D, 0x09].contains(bytes[index]) else { return }
      index += 1
    }
  }

  private mutating func literal(_ word: StaticString) -> Step {
    let end = index + word.utf8CodeUnitCount
    guard end <= bytes.count else { return .failed }
    for offset in 0..<word.utf8CodeUnitCount where bytes[index + offset] != word.utf8Start[offset] { return .failed }
    index = end
    return .end
  }

  /// Reads the name of a member and the colon.
  private mutating func name() -> Bool {
    guard current == UInt8(ascii: "\""), string() else { return false }
    skipSpace()
    return take(UInt8(ascii: ":"))
  }

  private mutating func number() -> Bool {
    let start = index
    _ = take(UInt8(ascii: "-"))
    if !take(UInt8(ascii: "0")) {
      guard digits() > 0 else { return false }
    }
    if take(UInt8(ascii: ".")) {
      guard digits() > 0 else { return false }
    }
    if let byte = current, byte | 0x20 == UInt8(ascii: "e") {
      index += 1
      if !take(UInt8(ascii: "-")) { _ = take(UInt8(ascii: "+")) }
      let count = digits()
      guard count > 0 else { return false }
      if count > 2 { hasUnusualNumber = true }
    }
    if index - start > 25 { hasUnusualNumber = true }
    return true
  }

  private mutating func digits() -> Int {
    let start = index
    while index < bytes.count, bytes[index] &- 0x30 < 10 { index += 1 }
    return index - start
  }

  /// Reads a string from its opening quotation mark to behind the closing one.
  private mutating func string() -> Bool {
    index += 1
    while true {
      skipPlainText()
      guard let byte = current else { return false }
      switch byte {
      case UInt8(ascii: "\""):
        index += 1
        return true
      case UInt8(ascii: "\\"):
        guard escape() else { return false }
      case 0x80...:
        guard multibyteCharacter() else { return false }
      case 0x20...:
        index += 1
      default:
        return false
      }
    }
  }

  /// Skips ASCII without meaning, eight bytes at a time: the high bit of each byte of `marks` is set that is a quotation mark, a reverse
  /// solidus, a control character or no ASCII (the zero-byte test of Warren, Hacker's Delight, section 6-1; exact for the lowest one).
  private mutating func skipPlainText() {
    let ones: UInt64 = 0x0101_0101_0101_0101
    while bytes.count - index >= 8 {
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

  private mutating func escape() -> Bool {
    guard index + 1 < bytes.count else { return false }
    switch bytes[index + 1] {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"), UInt8(ascii: "n"),
      UInt8(ascii: "r"), UInt8(ascii: "t"):
      index += 2
      return true
    case UInt8(ascii: "u"):
      guard let unit = codeUnit(), unit & 0xFC00 != 0xDC00 else { return false }
      guard unit & 0xFC00 == 0xD800 else { return true }
      guard let second = codeUnit() else { return false }
      return second & 0xFC00 == 0xDC00
    default:
      return false
    }
  }

  /// Reads `\uXXXX`.
  private mutating func codeUnit() -> UInt16? {
    guard index + 6 <= bytes.count, bytes[index] == UInt8(ascii: "\\"), bytes[index + 1] == UInt8(ascii: "u") else { return nil }
    var unit: UInt16 = 0
    for byte in bytes[(index + 2)..<(index + 6)] {
      guard let digit = Hexadecimal.value(of: byte) else { return nil }
      unit = unit << 4 | UInt16(digit)
    }
    index += 6
    return unit
  }

  /// Reads one character of two to four bytes, in the shortest form and no surrogate (Unicode, table 3-7).
  private mutating func multibyteCharacter() -> Bool {
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
    guard index + count <= bytes.count, second.contains(bytes[index + 1]) else { return false }
    for offset in 2..<max(count, 2) where bytes[index + offset] & 0xC0 != 0x80 { return false }
    index += count
    return true
  }
}
