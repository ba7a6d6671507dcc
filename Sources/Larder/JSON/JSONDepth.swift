internal import Foundation

/// The nesting depth of JSON text, found without decoding it.
///
/// A type that is decoded recurses with its text, and a deeply nested value overflows a 512 KiB stack (a secondary thread on Darwin).
/// So depth is measured on the bytes when a store is opened; what is saved is measured while it is encoded.
enum JSONDepth {
  /// Whether arrays and objects nest deeper than the limit.
  ///
  /// Cost: linear; text with few brackets costs a count of them only.
  static func exceeds(_ limit: Int, in json: Data) -> Bool {
    guard json.count > 2 * limit else { return false }
    return json.withUnsafeBytes { bytes in openingBrackets(bytes) > limit && measuredDepth(bytes) > limit }
  }

  /// Returns an upper bound of the depth: '[' is 0x5B and '{' is 0x7B, and no other byte becomes 0x7B by setting bit 5.
  ///
  /// Every record is looked at when a store is opened, so this is a loop that the compiler makes vectors of.
  private static func openingBrackets(_ bytes: UnsafeRawBufferPointer) -> Int {
    var count = 0
    for byte in bytes where byte | 0x20 == 0x7B { count &+= 1 }
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
