package import Foundation

/// A growing buffer of bytes for text that is written from its beginning to its end.
package struct ByteBuffer: ~Copyable {
  private var base: UnsafeMutableRawPointer
  private var capacity: Int
  private(set) var count = 0

  package init(capacity: Int) {
    self.capacity = capacity
    base = .allocate(byteCount: capacity + Self.slack, alignment: 8)
  }

  /// Bytes allocated beyond the capacity, so that a load of eight bytes from any offset of the text stays in the allocation.
  private static let slack = 8

  deinit { base.deallocate() }

  /// The bytes written so far, which stay valid until the next write.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }

  /// Returns a copy of the bytes written so far.
  package func data() -> Data { Data(bytes: base, count: count) }

  /// Grows the buffer if its free capacity is less than `more` bytes.
  @inline(__always) private mutating func reserve(_ more: Int) {
    if capacity - count < more { grow(by: more) }
  }

  @inline(never) private mutating func grow(by more: Int) {
    // Doubling keeps the average cost of an appended byte constant, because each byte is copied a bounded number of times on average.
    capacity = max(2 * capacity, count + more)
    let grown = UnsafeMutableRawPointer.allocate(byteCount: capacity + Self.slack, alignment: 8)
    grown.copyMemory(from: base, byteCount: count)
    base.deallocate()
    base = grown
  }

  @inline(__always) package mutating func append(_ byte: UInt8) {
    reserve(1)
    base.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
    count += 1
  }

  @inline(__always) package mutating func append(_ bytes: UnsafeRawBufferPointer) {
    // An empty buffer may have no address, and has no bytes to copy.
    guard let start = bytes.baseAddress else { return }
    reserve(bytes.count)
    (base + count).copyMemory(from: start, byteCount: bytes.count)
    count += bytes.count
  }

  package mutating func append(_ text: StaticString) {
    append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// Appends text in which no character needs a JSON escape.
  package mutating func append(plain text: String) {
    var text = text
    text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
  }

  /// Returns the first eight bytes of a range as a big-endian number, with zeros in the place of missing bytes.
  @inline(__always) func prefix(at offset: Int, length: Int) -> UInt64 {
    // Big-endian numbers have the same order as their bytes, so that one comparison of two numbers mostly decides the order of two member
    // names.
    let word = UInt64(bigEndian: base.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    return length >= 8 ? word : word & ~(.max >> UInt64(8 * length))
  }

  /// Shortens the text in the buffer to a length in bytes.
  mutating func truncate(to length: Int) { count = length }

  /// Reserves `limit` bytes at the end of the buffer and appends the bytes that a closure writes there.
  ///
  /// - Parameter write: Closure that returns the number of bytes that it has written.
  @inline(__always) mutating func append(atMost limit: Int, _ write: (UnsafeMutableRawPointer) -> Int) {
    reserve(limit)
    count += write(base + count)
  }
}

// MARK: - Numbers and strings as JSON has them

extension ByteBuffer {
  /// Appends an integer in decimal digits.
  package mutating func append(_ magnitude: UInt64, isNegative: Bool) {
    // The longest text has 20 bytes: 2^64 - 1 has 20 digits, and the smallest 64-bit integer has 19 digits and a sign.
    append(atMost: 20) { place in
      // The digits are counted first, because the second loop computes them from the last to the first and writes each digit at its final
      // position.
      var rest = magnitude
      var length = isNegative ? 1 : 0
      repeat {
        length += 1
        rest /= 10
      } while rest > 0
      rest = magnitude
      var position = length
      repeat {
        position -= 1
        let quotient = rest / 10
        place.storeBytes(of: UInt8(truncatingIfNeeded: 0x30 &+ rest &- quotient &* 10), toByteOffset: position, as: UInt8.self)
        rest = quotient
      } while rest > 0
      if isNegative { place.storeBytes(of: UInt8(ascii: "-"), as: UInt8.self) }
      return length
    }
  }

  /// Appends a string with quotation marks, and with the escapes that JSON requires.
  ///
  /// - Returns: True if the string is ASCII and nothing in it was escaped.
  @discardableResult mutating func append(quoting text: String) -> Bool {
    var text = text
    return text.withUTF8 { text in append(quoting: UnsafeRawBufferPointer(text)) }
  }

  @inline(__always) private mutating func append(quoting text: UnsafeRawBufferPointer) -> Bool {
    let (end, isASCII) = Self.plainEnd(of: text, from: 0)
    // Most strings have nothing to escape and are copied in one step, without a test of each byte.
    guard end == text.count, let start = text.baseAddress else { return append(escaping: text, from: end) }
    reserve(end + 2)
    base.storeBytes(of: UInt8(ascii: "\""), toByteOffset: count, as: UInt8.self)
    (base + count + 1).copyMemory(from: start, byteCount: end)
    base.storeBytes(of: UInt8(ascii: "\""), toByteOffset: count + end + 1, as: UInt8.self)
    count += end + 2
    return isASCII
  }

  /// Appends a string with bytes that must be escaped, where `offset` is the offset of the first such byte.
  ///
  /// - Returns: Always `false`, the result of ``append(quoting:)`` for a string with escapes.
  @inline(never) private mutating func append(escaping text: UnsafeRawBufferPointer, from offset: Int) -> Bool {
    append(UInt8(ascii: "\""))
    var (start, end) = (0, offset)
    while true {
      append(UnsafeRawBufferPointer(rebasing: text[start..<end]))
      guard end < text.count else { break }
      append(escaping: text[end])
      start = end + 1
      end = Self.plainEnd(of: text, from: start).end
    }
    append(UInt8(ascii: "\""))
    return false
  }

  /// Returns the offset of the first byte that must be escaped, or the end of the text, and true if all earlier bytes are ASCII.
  ///
  /// `plainEnd` tests eight bytes at a time, as ``JSONScan/skipPlainText()`` does.
  private static func plainEnd(of text: UnsafeRawBufferPointer, from start: Int) -> (end: Int, isASCII: Bool) {
    let ones: UInt64 = 0x0101_0101_0101_0101
    var index = start
    var seen: UInt64 = 0
    while text.count - index >= 8 {
      let word = text.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      let quotes = word ^ (ones &* 0x22)
      let solidi = word ^ (ones &* 0x5C)
      let marks = ((quotes &- ones) & ~quotes) | ((solidi &- ones) & ~solidi) | ((word &- ones &* 0x20) & ~word)
      // The test of eight bytes only finds that one of the bytes must be escaped. The loop over single bytes finds the offset of the first
      // such byte.
      guard marks & (ones &* 0x80) == 0 else { break }
      seen |= word
      index += 8
    }
    while index < text.count {
      let byte = text[index]
      if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte < 0x20 { break }
      seen |= UInt64(byte)
      index += 1
    }
    return (index, seen & (ones &* 0x80) == 0)
  }

  private mutating func append(escaping byte: UInt8) {
    append(UInt8(ascii: "\\"))
    switch byte {
    case 0x08: append(UInt8(ascii: "b"))
    case 0x0C: append(UInt8(ascii: "f"))
    case 0x0A: append(UInt8(ascii: "n"))
    case 0x0D: append(UInt8(ascii: "r"))
    case 0x09: append(UInt8(ascii: "t"))
    // JSON has two-character escapes for only five control characters (RFC 8259, section 7), so all other control characters are written as
    // `\u00XX`.
    case 0..<0x20:
      append("u00")
      append(plain: Hexadecimal.string(byte))
    default: append(byte)
    }
  }
}
