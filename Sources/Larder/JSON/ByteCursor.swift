package import Foundation

/// A reading position in the bytes of a file that has exactly one valid spelling, such as the main file of a JSON store.
///
/// Each reading function moves the position to the first byte after the text that it has read. The errors of a cursor name the file, the
/// offset and the expected text.
struct ByteCursor {
  let bytes: UnsafeRawBufferPointer
  let file: String
  var offset = 0
  /// Offset of ``bytes`` in the file, which is added to the offsets in errors so that they count from the beginning of the file.
  var base = 0

  init(_ bytes: UnsafeRawBufferPointer, file: String) {
    self.bytes = bytes
    self.file = file
  }

  var isAtEnd: Bool { offset == bytes.count }
  var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }

  /// The `.corrupted` error for a file that ends within the text that is being read.
  private var endsEarly: RepositoryError { corrupted("the file ends too early; it was cut off") }

  /// Returns a `.corrupted` error for an offset in ``bytes``, by default the current offset.
  func corrupted(_ message: String, at position: Int? = nil) -> RepositoryError {
    RepositoryError(.corrupted, message, file: file, offset: UInt64(base + (position ?? offset)))
  }

  /// Moves the cursor past a literal if the literal comes next in the bytes.
  ///
  /// - Returns: True if the literal came next.
  mutating func skip(_ literal: StaticString) -> Bool {
    let count = literal.utf8CodeUnitCount
    // The length is checked first, because `memcmp` could read past the end of the bytes.
    guard bytes.count - offset >= count, let base = bytes.baseAddress, memcmp(base + offset, literal.utf8Start, count) == 0 else {
      return false
    }
    offset += count
    return true
  }

  /// Moves the cursor past a literal that must come next in the bytes.
  ///
  /// - Throws: `.corrupted` if anything else comes next.
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
      // Wrapping around at 2^64 would turn a damaged number into a valid number.
      if overflows || carries { throw corrupted("expected a number below 2^64", at: start) }
      value = sum
      offset += 1
    }
    // Larder writes numbers without leading zeros, so a leading zero is damage.
    guard offset > start, offset == start + 1 || bytes[start] != 0x30 else { throw corrupted("expected a decimal number", at: start) }
    return value
  }

  /// Reads a number in lower-case hexadecimal digits, with as many digits as the full width of its type has.
  mutating func hexadecimal<Number: FixedWidthInteger & UnsignedInteger>(_: Number.Type) throws(RepositoryError) -> Number {
    var value: Number = 0
    for _ in 0..<(Number.bitWidth / 4) {
      guard let byte = next else { throw endsEarly }
      // Larder writes hexadecimal numbers in lower case only, so an upper-case digit is damage.
      guard let digit = Hexadecimal.value(of: byte), !(0x41...0x46).contains(byte) else {
        throw corrupted("expected a lower-case hexadecimal digit")
      }
      value = value << 4 | Number(digit)
      offset += 1
    }
    return value
  }

  /// Reads a string after its opening quotation mark, and throws for an escape of a character that needs no escape.
  mutating func string() throws(RepositoryError) -> String {
    let start = offset
    while let byte = next {
      if byte == UInt8(ascii: "\"") {
        defer { offset += 1 }
        return String(decoding: bytes[start..<offset], as: UTF8.self)
      }
      // Most strings have no escape and are created from the bytes in one step.
      if byte == UInt8(ascii: "\\") { return try escapedString(from: start) }
      if byte < 0x20 { throw corrupted("expected an escape for a control character") }
      offset += 1
    }
    throw endsEarly
  }

  /// Reads the rest of a string from its first escape on, and returns the whole string with its escapes resolved.
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
          // An escape of a printable character would be a second spelling of the same string, which Larder never writes.
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
  /// Calls a closure with the bytes and rethrows the closure's typed error, because `withUnsafeBytes` does not rethrow typed errors.
  package func lending<R>(_ body: (UnsafeRawBufferPointer) throws(RepositoryError) -> R) throws(RepositoryError) -> R {
    let result: Result<R, RepositoryError> = withUnsafeBytes { bytes in
      do throws(RepositoryError) { return .success(try body(bytes)) } catch { return .failure(error) }
    }
    return try result.get()
  }
}
