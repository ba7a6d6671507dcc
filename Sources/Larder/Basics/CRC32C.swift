// Basics/ holds the types that every folder uses: errors, options, reports, keys and revisions, and functions on bytes and time.
// Invariant: two record keys are equal only if their bytes are equal.
// Called by the code of every folder of the package.

internal import CLarderChecksum

/// The CRC32C checksum (Castagnoli, polynomial 0x1EDC6F41 reflected), as RFC 3720 appendix B.4 defines it.
///
/// CRC32C detects every error burst of up to 32 bits, hence every damaged single byte. CRC32C does not resist an attacker, who can change
/// bytes without changing their checksum.
///
/// Cost: in release builds a CRC32C takes about a tenth of a nanosecond per byte on a processor with a CRC32C instruction, as nearly all
/// have. On a processor without a CRC32C instruction, the checksum takes about one nanosecond per byte (slicing by eight).
public struct CRC32C: Sendable {
  private var state: UInt32

  /// Starts a checksum, optionally from a seed, so that equal bytes in two files with different seeds have different checksums.
  public init(seed: UInt32 = 0) { state = ~seed }

  /// The checksum of all bytes that ``update(_:)`` has added so far.
  public var value: UInt32 { ~state }

  /// Adds bytes to the end of the data that the checksum covers.
  public mutating func update(_ bytes: UnsafeRawBufferPointer) {
    guard Self.hasInstruction else { return updateByTable(bytes) }
    state = larder_crc32c_update(state, bytes.baseAddress, bytes.count)
  }

  // `hasInstruction` is computed once, because a processor's instructions do not change while the process runs.
  private static let hasInstruction = larder_crc32c_is_available()

  /// Adds bytes to the checksum as ``update(_:)`` does, with a table and without the processor's CRC32C instruction.
  mutating func updateByTable(_ bytes: UnsafeRawBufferPointer) {
    state = Self.tables.withUnsafeBufferPointer { tables in
      var crc = state
      var index = 0
      // One pass of the first loop of `updateByTable` processes eight bytes with eight table look-ups. No look-up needs the result of
      // another, so the processor can run them in parallel. With one byte per pass, each table look-up would need the result of the
      // previous look-up.
      while bytes.count - index >= 8 {
        // CRC32C in its reflected form processes the byte at the lowest address first, so the bytes are read as a little-endian number on
        // every processor.
        let low = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt32.self)) ^ crc
        let high = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: index + 4, as: UInt32.self))
        crc =
          tables[0x700 + Int(low & 0xFF)] ^ tables[0x600 + Int(low >> 8 & 0xFF)]
          ^ tables[0x500 + Int(low >> 16 & 0xFF)] ^ tables[0x400 + Int(low >> 24)]
          ^ tables[0x300 + Int(high & 0xFF)] ^ tables[0x200 + Int(high >> 8 & 0xFF)]
          ^ tables[0x100 + Int(high >> 16 & 0xFF)] ^ tables[Int(high >> 24)]
        index += 8
      }
      while index < bytes.count {
        crc = tables[Int((crc ^ UInt32(bytes[index])) & 0xFF)] ^ (crc >> 8)
        index += 1
      }
      return crc
    }
  }

  /// Returns the CRC32C checksum of the given bytes.
  public static func checksum(_ bytes: UnsafeRawBufferPointer, seed: UInt32 = 0) -> UInt32 {
    var crc = CRC32C(seed: seed)
    crc.update(bytes)
    return crc.value
  }

  /// Eight tables of 256 entries: table k holds the remainder of a byte that k zero bytes follow.
  private static let tables: [UInt32] = {
    var tables = [UInt32](repeating: 0, count: 8 * 256)
    for byte in 0..<256 {
      var crc = UInt32(byte)
      // 0x82F6_3B78 is the polynomial with its bits in reverse order.
      for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0x82F6_3B78 : crc >> 1 }
      tables[byte] = crc
    }
    for index in 256..<(8 * 256) {
      let previous = tables[index - 256]
      tables[index] = tables[Int(previous & 0xFF)] ^ previous >> 8
    }
    return tables
  }()
}

/// Functions on hexadecimal text of fixed width.
enum Hexadecimal {
  /// Returns the value of a hexadecimal digit in upper or lower case, or `nil` for any other byte.
  static func value(of byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    // Bit 5 differs between the lower-case and the upper-case form of an ASCII letter.
    case 0x41...0x46, 0x61...0x66: (byte | 0x20) - 0x61 + 10
    default: nil
    }
  }

  /// Returns a number as lower-case hexadecimal digits, with leading zeros up to the width of its type.
  static func string<Number: FixedWidthInteger & UnsignedInteger>(_ number: Number) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: Number.bitWidth / 4 - digits.count) + digits
  }
}
