/// An input that is read from its beginning, as choices; what is asked for behind its end is zero.
///
/// Small changes of the input make small changes of what is built from it, which a mutating fuzzer needs.
struct FuzzInput {
  private let bytes: UnsafeRawBufferPointer
  private var offset = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  /// Whether all of it was read.
  var isAtEnd: Bool { offset >= bytes.count }

  /// The bytes that were not read.
  var rest: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[min(offset, bytes.count)...]) }

  mutating func byte() -> UInt8 {
    guard offset < bytes.count else { return 0 }
    offset += 1
    return bytes[offset - 1]
  }

  mutating func bool() -> Bool { byte() & 1 == 1 }

  /// Reads a number below a bound of at most 65,536.
  mutating func int(below bound: Int) -> Int {
    let number = bound > 256 ? Int(byte()) << 8 | Int(byte()) : Int(byte())
    return number % max(bound, 1)
  }

  /// Reads a number, its least significant byte first.
  mutating func number<Number: FixedWidthInteger>(_ type: Number.Type) -> Number {
    var number: Number = 0
    for shift in stride(from: 0, to: Number.bitWidth, by: 8) { number |= Number(truncatingIfNeeded: byte()) << Number(shift) }
    return number
  }

  /// Reads up to so many bytes, whose count comes first.
  mutating func slice(upTo most: Int) -> UnsafeRawBufferPointer {
    let count = min(int(below: most + 1), max(bytes.count - offset, 0))
    let start = min(offset, bytes.count)
    offset = start + count
    return UnsafeRawBufferPointer(rebasing: bytes[start..<offset])
  }

  /// Reads a text; bytes that are not UTF-8 are repaired.
  mutating func text(upTo most: Int) -> String { String(decoding: slice(upTo: most), as: UTF8.self) }
}
