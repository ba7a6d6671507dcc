/// A reader of JSON text that keeps numbers as they are written, which Foundation's readers do not.
///
/// Every function gives `nil` for text that is not JSON (RFC 8259), and leaves ``position`` about where it goes wrong.
struct JSONReader {
  private let bytes: [UInt8]
  private(set) var position = 0

  /// The deepest nesting that is read, so that no record can overflow a stack; saving allows at most 128.
  private static let depthLimit = 160

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Whether only white space is left.
  var isAtEnd: Bool { bytes[position...].allSatisfy(Self.isSpace) }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }

  private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func skipSpace() {
    while let byte = next, Self.isSpace(byte) { position += 1 }
  }

  private mutating func skip(_ text: StaticString) -> Bool {
    text.withUTF8Buffer { text in
      guard bytes[position...].starts(with: text) else { return false }
      position += text.count
      return true
    }
  }

  mutating func value(depth: Int) -> JSONValue? {
    skipSpace()
    switch next {
    case UInt8(ascii: "\""): return string().map(JSONValue.string)
    case UInt8(ascii: "{"): return depth < Self.depthLimit ? object(depth: depth + 1).map(JSONValue.object) : nil
    case UInt8(ascii: "["): return depth < Self.depthLimit ? array(depth: depth + 1).map(JSONValue.array) : nil
    case UInt8(ascii: "t"): return skip("true") ? .bool(true) : nil
    case UInt8(ascii: "f"): return skip("false") ? .bool(false) : nil
    case UInt8(ascii: "n"): return skip("null") ? .null : nil
    default: return number().map { .number(JSONNumber(checked: $0)) }
    }
  }

  private mutating func array(depth: Int) -> [JSONValue]? {
    position += 1
    var elements: [JSONValue] = []
    skipSpace()
    if skip("]") { return elements }
    while let element = value(depth: depth) {
      elements.append(element)
      skipSpace()
      if skip("]") { return elements }
      guard skip(",") else { return nil }
    }
    return nil
  }

  /// Two members with one name are refused: which of them would be meant is not known.
  private mutating func object(depth: Int) -> JSONObject? {
    position += 1
    var object = JSONObject()
    skipSpace()
    if skip("}") { return object }
    while true {
      skipSpace()
      guard let name = string(), object[name] == nil else { return nil }
      skipSpace()
      guard skip(":"), let value = value(depth: depth) else { return nil }
      object[name] = value
      skipSpace()
      if skip("}") { return object }
      guard skip(",") else { return nil }
    }
  }

  /// The text of a number.
  mutating func number() -> String? {
    let start = position
    _ = skip("-")
    if !skip("0") {
      guard skipDigits() else { return nil }
    }
    if skip(".") {
      guard skipDigits() else { return nil }
    }
    if skip("e") || skip("E") {
      if !skip("+") { _ = skip("-") }
      guard skipDigits() else { return nil }
    }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  private mutating func skipDigits() -> Bool {
    let start = position
    while let byte = next, (0x30...0x39).contains(byte) { position += 1 }
    return position > start
  }

  private mutating func string() -> String? {
    guard skip("\"") else { return nil }
    var text: [UInt8] = []
    while let byte = next {
      position += 1
      switch byte {
      case UInt8(ascii: "\""): return String(validating: text, as: UTF8.self)
      case UInt8(ascii: "\\"):
        guard appendEscaped(to: &text) else { return nil }
      case 0..<0x20: return nil
      default: text.append(byte)
      }
    }
    return nil
  }

  private mutating func appendEscaped(to text: inout [UInt8]) -> Bool {
    guard let byte = next else { return false }
    position += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0C)
    case UInt8(ascii: "n"): text.append(0x0A)
    case UInt8(ascii: "r"): text.append(0x0D)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "u"):
      guard let scalar = escapedScalar() else { return false }
      text.append(contentsOf: Array(String(Character(scalar)).utf8))
    default: return false
    }
    return true
  }

  /// The scalar of `\uXXXX`, or of a pair of them.
  private mutating func escapedScalar() -> Unicode.Scalar? {
    guard let first = fourDigits() else { return nil }
    guard (0xD800..<0xDC00).contains(first) else { return Unicode.Scalar(first) }
    guard skip("\\u"), let second = fourDigits(), (0xDC00..<0xE000).contains(second) else { return nil }
    return Unicode.Scalar(0x1_0000 + (first - 0xD800) << 10 + (second - 0xDC00))
  }

  private mutating func fourDigits() -> UInt32? {
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard let byte = next, let digit = Hexadecimal.value(of: byte) else { return nil }
      value = value << 4 | UInt32(digit)
      position += 1
    }
    return value
  }
}
