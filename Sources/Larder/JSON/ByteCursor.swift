package import Foundation

/// A reading position in the bytes of a file whose grammar has one spelling for everything, such as the main file of a JSON store.
///
/// Each reading function moves the position behind the text that it has read. Errors name the file, the offset and the expected text.
struct ByteCursor {
  let bytes: UnsafeRawBufferPointer
  let file: String
  var offset = 0
  /// Offset of ``bytes`` in the file, which is added to the offsets in errors.
  var base = 0

  init(_ bytes: UnsafeRawBufferPointer, file: String) {
    self.bytes = bytes
    self.file = file
  }

  var isAtEnd: Bool { offset == bytes.count }
  var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }

  /// The `.corrupted` error for a text that ends in the middle.
  private var endsEarly: RepositoryError { corrupted("the file ends too early; it was cut off") }

  /// Returns a `.corrupted` error at an offset in the bytes, by default the present one.
  func corrupted(_ message: String, at position: Int? = nil) -> RepositoryError {
    RepositoryError(.corrupted, message, file: file, offset: UInt64(base + (position ?? offset)))
  }

  /// Moves behind a literal if the text goes on with it.
  /// - Returns: Whether it does.
  mutating func skip(_ literal: StaticString) -> Bool {
    let count = literal.utf8CodeUnitCount
    // `memcmp` must not read behind the end of the bytes.
    guard bytes.count - offset >= count, let base = bytes.baseAddress, memcmp(base + offset, literal.utf8Start, count) == 0 else {
      return false
    }
    offset += count
    return true
  }

  /// Moves behind a literal.
  /// - Throws: `.corrupted` if the text goes on with anything else.
  mutating func expect(_ literal: StaticString) throws(RepositoryError) {
    if !skip(literal) { throw corrupted("expected `\(literal)`") }
  }

  /// Reads a decimal number below 2^64 without leading zeros.
  mutating func number() throws(RepositoryError) -> UInt64 {
    let start = offset
    var value: UInt64 = 0
    while let byte = next, (0x30...0x39).contains(byte) {
      let (product, overflows) = value.multipliedReportingOverflow(by: 10)
      let (sum, carries) = product.addingReportingOverflow(UInt64(byte - 0x30))
      // Wrapping around would turn a damaged number into a valid one.
      if overflows || carries { throw corrupted("expected a number below 2^64", at: start) }
      value = sum
      offset += 1
    }
    // Larder writes no leading zeros, so they are damage.
    guard offset > start, offset == start + 1 || bytes[start] != 0x30 else { throw corrupted("expected a decimal number", at: start) }
    return value
  }

  /// Reads a number in lower-case hexadecimal digits, at the full width of its type.
  mutating func hexadecimal<Number: FixedWidthInteger & UnsignedInteger>(_: Number.Type) throws(RepositoryError) -> Number {
    var value: Number = 0
    for _ in 0..<(Number.bitWidth / 4) {
      guard let byte = next else { throw endsEarly }
      // Numbers are written in lower case only, so an upper-case digit is damage.
      guard let digit = Hexadecimal.value(of: byte), !(0x41...0x46).contains(byte) else {
        throw corrupted("expected a lower-case hexadecimal digit")
      }
      value = value << 4 | Number(digit)
      offset += 1
    }
    return value
  }

  /// Reads the contents of a string and its closing quotation mark, and accepts no escape that a character does not need.
  mutating func string() throws(RepositoryError) -> String {
    let start = offset
    while let byte = next {
      if byte == UInt8(ascii: "\"") {
        defer { offset += 1 }
        return String(decoding: bytes[start..<offset], as: UTF8.self)
      }
      // Most strings have no escape and are made of the bytes in one step.
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
          // An escape of a printable character would be a second spelling of the same string.
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
  /// Calls a closure with the bytes and rethrows its typed error, which `withUnsafeBytes` cannot do.
  package func lending<R>(_ body: (UnsafeRawBufferPointer) throws(RepositoryError) -> R) throws(RepositoryError) -> R {
    let result: Result<R, RepositoryError> = withUnsafeBytes { bytes in
      do throws(RepositoryError) { return .success(try body(bytes)) } catch { return .failure(error) }
    }
    return try result.get()
  }
}
