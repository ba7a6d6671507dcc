internal import Foundation

/// A reader of JSON text that keeps numbers as they are written, which Foundation's readers do not.
///
/// ``JSONSyntax`` has accepted the text before anything is made of it, so what is read here is well formed, and nested no deeper than a
/// record may be.
struct JSONReader {
  private let bytes: [UInt8]
  private var position = 0

  private init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Returns the value of a text.
  /// - Throws: `.decodingFailed` for a text that is not one JSON value, that nests deeper than a record may, or that has an object with two
  ///   members of one name: which of them would be meant is not known.
  static func value(of json: Data) throws(RepositoryError) -> JSONValue {
    let limit = StoreOptions.Limits.maximumDepth
    switch JSONSyntax.verdict(on: json, depthLimit: limit) {
    case .valid: break
    case .malformed(let offset):
      throw RepositoryError(.decodingFailed, "expected JSON, found something else", offset: UInt64(offset))
    case .tooDeep: throw RepositoryError(.decodingFailed, "expected JSON nested at most \(limit) deep, found a deeper one")
    }
    var reader = JSONReader(Array(json))
    return try reader.value()
  }

  private mutating func value() throws(RepositoryError) -> JSONValue {
    switch next() {
    case UInt8(ascii: "\""): return .string(string())
    case UInt8(ascii: "{"): return .object(try object())
    case UInt8(ascii: "["): return .array(try array())
    case UInt8(ascii: "t"): return literal("true", .bool(true))
    case UInt8(ascii: "f"): return literal("false", .bool(false))
    case UInt8(ascii: "n"): return literal("null", .null)
    default: return .number(number())
    }
  }

  /// Skips white space, and returns the byte behind it.
  private mutating func next() -> UInt8 {
    while bytes[position] <= 0x20 { position += 1 }
    return bytes[position]
  }

  /// Steps over a byte if it is the next behind white space.
  private mutating func skip(_ byte: UInt8) -> Bool {
    guard next() == byte else { return false }
    position += 1
    return true
  }

  private mutating func literal(_ text: StaticString, _ value: JSONValue) -> JSONValue {
    position += text.utf8CodeUnitCount
    return value
  }

  private mutating func array() throws(RepositoryError) -> [JSONValue] {
    position += 1
    var elements: [JSONValue] = []
    while !skip(UInt8(ascii: "]")) {
      elements.append(try value())
      _ = skip(UInt8(ascii: ","))
    }
    return elements
  }

  private mutating func object() throws(RepositoryError) -> JSONObject {
    position += 1
    var object = JSONObject()
    while !skip(UInt8(ascii: "}")) {
      _ = next()
      let start = position
      let name = string()
      guard object[name] == nil else {
        throw RepositoryError(.decodingFailed, "expected members with different names, found two with one name", offset: UInt64(start))
      }
      _ = skip(UInt8(ascii: ":"))
      object[name] = try value()
      _ = skip(UInt8(ascii: ","))
    }
    return object
  }

  private mutating func number() -> JSONNumber {
    let text = bytes[position...].prefix { $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: "]") && $0 != UInt8(ascii: "}") && $0 > 0x20 }
    position = text.endIndex
    return JSONNumber(checked: String(decoding: text, as: UTF8.self))
  }

  /// Reads a string.
  private mutating func string() -> String {
    let start = position
    return bytes.withUnsafeBytes { bytes in
      position = JSONString.end(in: bytes, from: start)
      return JSONString.text(UnsafeRawBufferPointer(rebasing: bytes[(start + 1)..<(position - 1)]))
    }
  }
}
