internal import Foundation

/// The nesting depth of JSON text, found without decoding it.
///
/// Foundation's decoder recurses, and a deeply nested value overflows a 512 KiB stack (a secondary thread on Darwin) before the decoder's
/// own limit of 512 throws. So depth is measured on the bytes, before saving and before decoding.
enum JSONDepth {
  /// Whether arrays and objects nest deeper than the limit.
  ///
  /// Cost: linear; text with few brackets costs a count of them only.
  static func exceeds(_ limit: Int, in json: Data) -> Bool {
    guard json.count > 2 * limit else { return false }
    return json.withUnsafeBytes { bytes in openingBrackets(bytes) > limit && measuredDepth(bytes) > limit }
  }

  /// An upper bound of the depth: '[' is 0x5B and '{' is 0x7B, and no other byte becomes 0x7B by setting bit 5.
  ///
  /// Eight bytes at a time, because every record is looked at when a store is opened: in `zeros`, the high bit of each byte that was an
  /// opening bracket is set (the exact zero-byte test of Warren, Hacker's Delight, section 6-1). Each lane of `lanes` counts one byte in
  /// eight, and is summed before it can overflow.
  private static func openingBrackets(_ bytes: UnsafeRawBufferPointer) -> Int {
    let low: UInt64 = 0x7F7F_7F7F_7F7F_7F7F
    let ones: UInt64 = 0x0101_0101_0101_0101
    var count = 0
    var index = 0
    while bytes.count - index >= 8 {
      var lanes: UInt64 = 0
      let end = min(bytes.count - 7, index + 31 * 8)
      while index < end {
        let word = (bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self) | 0x2020_2020_2020_2020) ^ 0x7B7B_7B7B_7B7B_7B7B
        let zeros = ~(((word & low) &+ low) | word | low)
        lanes &+= (zeros >> 7) & ones
        index += 8
      }
      count &+= Int((lanes &* ones) >> 56)
    }
    while index < bytes.count {
      count &+= (bytes[index] | 0x20) == 0x7B ? 1 : 0
      index += 1
    }
    return count
  }

  private static func measuredDepth(_ bytes: UnsafeRawBufferPointer) -> Int {
    var depth = 0
    var deepest = 0
    var isInString = false
    var isEscaped = false
    for byte in bytes {
      if isInString {
        if isEscaped {
          isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
          isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
          isInString = false
        }
        continue
      }
      switch byte {
      case UInt8(ascii: "\""): isInString = true
      case UInt8(ascii: "["), UInt8(ascii: "{"):
        depth += 1
        deepest = max(deepest, depth)
      case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
      default: break
      }
    }
    return deepest
  }
}
