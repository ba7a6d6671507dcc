package import Foundation

/// A position in a text of fixed grammar.
///
/// Reading moves it; an error names the offset and what was expected there.
struct ByteCursor {
  let bytes: UnsafeRawBufferPointer
  let file: String
  var offset = 0
  /// The offset of the bytes in the file, for errors.
  var base = 0

  init(_ bytes: UnsafeRawBufferPointer, file: String) {
    self.bytes = bytes
    self.file = file
  }

  var isAtEnd: Bool { offset == bytes.count }
  var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }

  /// The error for a text that ends in the middle.
  private var endsEarly: RepositoryError { corrupted("the file ends too early; it was cut off") }

  func corrupted(_ message: String, at position: Int? = nil) -> RepositoryError {
    RepositoryError(.corrupted, message, file: file, offset: UInt64(base + (position ?? offset)))
  }

  /// Steps over a literal if it is next.
  /// - Returns: Whether it was.
  mutating func skip(_ literal: StaticString) -> Bool {
    let count = literal.utf8CodeUnitCount
    guard bytes.count - offset >= count, let base = bytes.baseAddress, memcmp(base + offset, literal.utf8Start, count) == 0 else {
      return false
    }
    offset += count
    return true
  }

  mutating func expect(_ literal: StaticString) throws(RepositoryError) {
    if !skip(literal) { throw corrupted("expected `\(literal)`") }
  }

  /// Reads a decimal number without leading zeros.
  mutating func number() throws(RepositoryError) -> UInt64 {
    let start = offset
    var value: UInt64 = 0
    while let byte = next, (0x30...0x39).contains(byte) {
      let (product, overflows) = value.multipliedReportingOverflow(by: 10)
      let (sum, carries) = product.addingReportingOverflow(UInt64(byte - 0x30))
      if overflows || carries { throw corrupted("expected a number below 2^64", at: start) }
      value = sum
      offset += 1
    }
    guard offset > start, offset == start + 1 || bytes[start] != 0x30 else { throw corrupted("expected a decimal number", at: start) }
    return value
  }

  /// Reads lower-case hexadecimal digits, as many as the number has.
  mutating func hexadecimal<Number: FixedWidthInteger & UnsignedInteger>(_: Number.Type) throws(RepositoryError) -> Number {
    var value: Number = 0
    for _ in 0..<(Number.bitWidth / 4) {
      guard let byte = next else { throw endsEarly }
      guard let digit = Hexadecimal.value(of: byte), !(0x41...0x46).contains(byte) else {
        throw corrupted("expected a lower-case hexadecimal digit")
      }
      value = value << 4 | Number(digit)
      offset += 1
    }
    return value
  }

  /// Reads the contents of a string in its one spelling, and the closing quotation mark.
  mutating func string() throws(RepositoryError) -> String {
    let start = offset
    while let byte = next {
      if byte == UInt8(ascii: "\"") {
        defer { offset += 1 }
        return String(decoding: bytes[start..<offset], as: UTF8.self)
      }
      if byte == UInt8(ascii: "\\") { return try escapedString(from: start) }
      if byte < 0x20 { throw corrupted("expected an escape for a control character") }
      offset += 1
    }
    throw endsEarly
  }

  /// Reads the rest of a string from its first escape on.
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
          guard control < 0x20 else { throw corrupted("expected an escape of a control character") }
          text.append(control)
        }
      case 0..<0x20: throw corrupted("expected an escape for a control character", at: offset - 1)
      default: text.append(byte)
      }
    }
    throw endsEarly
  }
}

extension ContiguousBytes {
  /// Lends the bytes to a closure with a typed error, which `withUnsafeBytes` cannot pass on.
  package func lending<R>(_ body: (UnsafeRawBufferPointer) throws(RepositoryError) -> R) throws(RepositoryError) -> R {
    let result: Result<R, RepositoryError> = withUnsafeBytes { bytes in
      do throws(RepositoryError) { return .success(try body(bytes)) } catch { return .failure(error) }
    }
    return try result.get()
  }
}
