internal import Foundation

/// Reads a text of fixed grammar, byte by byte, and says where it is not what it must be.
struct ByteCursor {
  let bytes: UnsafeRawBufferPointer
  let file: String
  var offset = 0
  /// Where the bytes begin in the file, for errors.
  var base = 0

  init(_ bytes: UnsafeRawBufferPointer, file: String) {
    self.bytes = bytes
    self.file = file
  }

  var isAtEnd: Bool { offset == bytes.count }
  var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }

  func corrupted(_ message: String, at position: Int? = nil) -> RepositoryError {
    RepositoryError(.corrupted, message, file: file, offset: UInt64(base + (position ?? offset)))
  }

  /// Whether the literal stands here; steps over it if so.
  mutating func skip(_ literal: StaticString) -> Bool {
    let count = literal.utf8CodeUnitCount
    guard bytes.count - offset >= count, let base = bytes.baseAddress, memcmp(base + offset, literal.utf8Start, count) == 0 else {
      return false
    }
    offset += count
    return true
  }

  mutating func expect(_ literal: StaticString) throws(RepositoryError) {
    if !skip(literal) { throw corrupted("damaged: not the text that must stand here") }
  }

  /// A decimal number without leading zeros.
  mutating func number() throws(RepositoryError) -> UInt64 {
    let start = offset
    var value: UInt64 = 0
    while let byte = next, (0x30...0x39).contains(byte) {
      let (product, overflows) = value.multipliedReportingOverflow(by: 10)
      let (sum, carries) = product.addingReportingOverflow(UInt64(byte - 0x30))
      if overflows || carries { throw corrupted("damaged: a number is too large", at: start) }
      value = sum
      offset += 1
    }
    guard offset > start, offset == start + 1 || bytes[start] != 0x30 else { throw corrupted("damaged: not a number", at: start) }
    return value
  }

  /// Lower-case hexadecimal digits, as many as the number has.
  mutating func hexadecimal<Number: FixedWidthInteger & UnsignedInteger>(_: Number.Type) throws(RepositoryError) -> Number {
    var value: Number = 0
    for _ in 0..<(Number.bitWidth / 4) {
      guard let byte = next else { throw corrupted("the file ends too early") }
      switch byte {
      case 0x30...0x39: value = value << 4 | Number(byte - 0x30)
      case 0x61...0x66: value = value << 4 | Number(byte - 0x61 + 10)
      default: throw corrupted("damaged: not a hexadecimal digit")
      }
      offset += 1
    }
    return value
  }

  /// The contents of a string in its one spelling, with the closing quote.
  mutating func string() throws(RepositoryError) -> String {
    let start = offset
    while let byte = next {
      if byte == UInt8(ascii: "\"") {
        defer { offset += 1 }
        return String(decoding: bytes[start..<offset], as: UTF8.self)
      }
      if byte == UInt8(ascii: "\\") { return try escapedString(from: start) }
      if byte < 0x20 { throw corrupted("damaged: a control character in a string") }
      offset += 1
    }
    throw corrupted("the file ends too early")
  }

  /// The rest of a string from its first escape on.
  private mutating func escapedString(from start: Int) throws(RepositoryError) -> String {
    var text = Array(bytes[start..<offset])
    while let byte = next {
      offset += 1
      switch byte {
      case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\"):
        if skip("\"") {
          text.append(UInt8(ascii: "\""))
        } else if skip("\\") {
          text.append(UInt8(ascii: "\\"))
        } else {
          try expect("u00")
          let control = try hexadecimal(UInt8.self)
          guard control < 0x20 else { throw corrupted("damaged: an escape that is never written") }
          text.append(control)
        }
      case 0..<0x20: throw corrupted("damaged: a control character in a string", at: offset - 1)
      default: text.append(byte)
      }
    }
    throw corrupted("the file ends too early")
  }
}
