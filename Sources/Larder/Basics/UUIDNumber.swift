internal import Foundation

/// A UUID as two 64-bit numbers, most significant first, with conversions to and from its upper-case text.
///
/// The numbers of UUIDs have the same order as their texts. The conversions between a UUID and its text process eight digits at a time, as
/// the eight bytes of one 64-bit number.
struct UUIDNumber: Hashable, Comparable, Sendable {
  let high: UInt64
  let low: UInt64

  /// The length of a UUID's text in bytes.
  static let textCount = 36

  init(_ id: UUID) {
    // The bytes of the UUID are read as big-endian numbers, so that the numbers have the same order as the bytes and the texts of UUIDs.
    (high, low) = withUnsafeBytes(of: id.uuid) { bytes in
      (
        UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)), UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      )
    }
  }

  /// Parses the upper-case text of a UUID, or returns `nil` for any other bytes.
  init?(text bytes: UnsafeRawBufferPointer) {
    // `digits` also refuses lower-case letters, because a key must keep the spelling of its id and `text` makes upper case only.
    guard bytes.count == Self.textCount, bytes[8] == Self.hyphen, bytes[13] == Self.hyphen, bytes[18] == Self.hyphen,
      bytes[23] == Self.hyphen,
      let first = Self.digits(bytes.bigEndian(at: 0, UInt64.self)),
      let second = Self.digits(UInt64(bytes.bigEndian(at: 9, UInt32.self)) << 32 | UInt64(bytes.bigEndian(at: 14, UInt32.self))),
      let third = Self.digits(UInt64(bytes.bigEndian(at: 19, UInt32.self)) << 32 | UInt64(bytes.bigEndian(at: 24, UInt32.self))),
      let fourth = Self.digits(bytes.bigEndian(at: 28, UInt64.self))
    else { return nil }
    (high, low) = (first << 32 | second, third << 32 | fourth)
  }

  /// Makes a UUID's number from its high and its low 64 bits.
  init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

  static let zero = UUIDNumber(high: 0, low: 0)

  /// Hash of a record key that is this UUID, for hash tables in memory.
  var tableHash: UInt64 { KeyHash.of(high, low, count: Self.textCount) }

  /// The `UUID` value for the two 64-bit numbers.
  var id: UUID {
    var id: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    withUnsafeMutableBytes(of: &id) { bytes in
      bytes.storeBytes(of: high.bigEndian, as: UInt64.self)
      bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
    }
    return UUID(uuid: id)
  }

  static func < (left: UUIDNumber, right: UUIDNumber) -> Bool {
    left.high == right.high ? left.low < right.low : left.high < right.high
  }

  /// The upper-case text of the UUID, the same as its `uuidString`.
  var text: String {
    String(unsafeUninitializedCapacity: Self.textCount) { buffer in
      withText { UnsafeMutableRawBufferPointer(buffer).copyMemory(from: $0) }
      return Self.textCount
    }
  }

  /// Calls a closure with the 36 bytes of the UUID's text.
  ///
  /// The 36 bytes are in a local variable and not in memory of `withUnsafeTemporaryAllocation`. In optimised builds of Swift 6.3.1, an
  /// inlined `withUnsafeTemporaryAllocation` overwrote the context of the closure around it.
  func withText<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
    // Five 64-bit numbers have room for the 36 bytes of the text.
    var text: (UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0)
    return withUnsafeMutableBytes(of: &text) { bytes in
      let (second, third) = (Self.text(of: high), Self.text(of: low >> 32))
      bytes.storeBytes(of: Self.text(of: high >> 32).bigEndian, as: UInt64.self)
      bytes.storeBytes(of: UInt32(truncatingIfNeeded: second >> 32).bigEndian, toByteOffset: 9, as: UInt32.self)
      bytes.storeBytes(of: UInt32(truncatingIfNeeded: second).bigEndian, toByteOffset: 14, as: UInt32.self)
      bytes.storeBytes(of: UInt32(truncatingIfNeeded: third >> 32).bigEndian, toByteOffset: 19, as: UInt32.self)
      bytes.storeBytes(of: UInt32(truncatingIfNeeded: third).bigEndian, toByteOffset: 24, as: UInt32.self)
      bytes.storeBytes(of: Self.text(of: low).bigEndian, toByteOffset: 28, as: UInt64.self)
      (bytes[8], bytes[13], bytes[18], bytes[23]) = (Self.hyphen, Self.hyphen, Self.hyphen, Self.hyphen)
      return body(UnsafeRawBufferPointer(rebasing: bytes[..<Self.textCount]))
    }
  }

  private static var hyphen: UInt8 { UInt8(ascii: "-") }

  /// Returns the low 32 bits of a number as eight upper-case hexadecimal digits, with the first digit in the highest byte.
  private static func text(of number: UInt64) -> UInt64 {
    // The next lines spread eight hexadecimal digits of four bits each, so that every digit has a byte of its own.
    var digits = number & 0xFFFF_FFFF
    digits = (digits << 16 | digits) & 0x0000_FFFF_0000_FFFF
    digits = (digits << 8 | digits) & 0x00FF_00FF_00FF_00FF
    digits = (digits << 4 | digits) & 0x0F0F_0F0F_0F0F_0F0F
    // Adding six to a digit of ten or more sets bit 4 of its byte. For a digit of ten or more, seven is added to the digit's character,
    // because "A" is 0x41 and not 0x3A, the byte after "9".
    let letters = (digits &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
    return digits &+ 0x3030_3030_3030_3030 &+ letters &* 7
  }

  /// Returns the number that eight upper-case hexadecimal digits spell, or `nil` if a byte is not an upper-case hexadecimal digit.
  private static func digits(_ text: UInt64) -> UInt64? {
    // In ASCII, letters have bit 6 set and digits do not, so the formula converts "0" to "9" and "A" to "F" correctly. The comparison with
    // `text` in the last line of the function refuses all other bytes.
    let letters = text >> 6 & 0x0101_0101_0101_0101
    let digits = (text & 0x0F0F_0F0F_0F0F_0F0F) &+ letters &* 9
    var number = digits & 0x0F0F_0F0F_0F0F_0F0F
    number = (number >> 4 | number) & 0x00FF_00FF_00FF_00FF
    number = (number >> 8 | number) & 0x0000_FFFF_0000_FFFF
    number = (number >> 16 | number) & 0xFFFF_FFFF
    // If the text of the number differs from `text`, then `text` has a lower-case letter or a byte that is not a hexadecimal digit.
    return Self.text(of: number) == text ? number : nil
  }
}

extension UnsafeRawBufferPointer {
  fileprivate func bigEndian<Number: FixedWidthInteger & BitwiseCopyable>(at offset: Int, _: Number.Type) -> Number {
    Number(bigEndian: loadUnaligned(fromByteOffset: offset, as: Number.self))
  }
}
