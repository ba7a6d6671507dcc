internal import Foundation

/// The grammar of RFC 8259, checked on bytes in one pass, without decoding them.
///
/// What an encoder gives is looked at before it is stored: `JSONEncoder` writes `NaN` for `Decimal.nan`, which nothing can read back and
/// which would make the whole file invalid. Unpaired surrogates are refused too, though the grammar lets them pass: no decoder takes them.
enum JSONSyntax {
  /// The result of checking a text.
  enum Verdict: Equatable {
    /// JSON, nested no deeper than the limit.
    ///
    /// `hasUnusualNumber` says that a number has more digits, or a larger exponent, than any `Double` is written with: whether a decoder
    /// takes it depends on the type.
    case valid(hasUnusualNumber: Bool)
    /// Not JSON, from this byte on.
    case malformed(offset: Int)
    /// Arrays and objects nest deeper than the limit.
    case tooDeep
  }

  /// Judges a text: one value, with white space around it, and nothing after it.
  ///
  /// Cost: linear, about a nanosecond a byte. Never recurses.
  /// - Parameter limit: The deepest nesting that is accepted.
  static func verdict(on json: Data, depthLimit limit: Int) -> Verdict {
    json.withUnsafeBytes { bytes in
      var scan = JSONScan(bytes, depthLimit: limit)
      return scan.run()
    }
  }

  /// The length up to which a number is one that any decoder takes.
  static let usualNumberLength = 25
}

/// The nesting depth of JSON text, found without decoding it.
///
/// A type that is decoded recurses with its text, and a deeply nested value overflows a 512 KiB stack (a secondary thread on Darwin).
/// So depth is measured on the bytes when a store is opened; what is saved is measured while it is encoded.
enum JSONDepth {
  /// Whether arrays and objects nest deeper than the limit.
  ///
  /// Cost: linear; text with few brackets costs a count of them only.
  static func exceeds(_ limit: Int, in json: UnsafeRawBufferPointer) -> Bool {
    guard json.count > 2 * limit else { return false }
    return openingBrackets(json) > limit && measuredDepth(json) > limit
  }

  /// Returns an upper bound of the depth: '[' is 0x5B and '{' is 0x7B, and no other byte becomes 0x7B by setting bit 5.
  ///
  /// Every record is looked at when a store is opened, so eight bytes are compared and counted at a time.
  static func openingBrackets(_ bytes: UnsafeRawBufferPointer) -> Int {
    var count = 0
    var index = 0
    while index + 8 <= bytes.count {
      // One sum for each of eight bytes, which 255 steps cannot overflow.
      let end = min(bytes.count - 7, index + 255 * 8)
      var sums: UInt64 = 0
      while index < end {
        let others = (bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self) | (each * 0x20)) ^ (each * 0x7B)
        // The highest bit of a byte is set unless it is zero: by a carry out of its other bits, or by itself.
        let differing = ((others & (each * 0x7F)) &+ (each * 0x7F)) | others
        sums &+= (~differing >> 7) & each
        index += 8
      }
      let pairs = (sums & 0x00FF_00FF_00FF_00FF) &+ (sums >> 8 & 0x00FF_00FF_00FF_00FF)  // UInt64
      count += Int((pairs &* 0x0001_0001_0001_0001) >> 48)  // UInt64
    }
    while index < bytes.count {
      if bytes[index] | 0x20 == 0x7B { count += 1 }
      index += 1
    }
    return count
  }

  /// A one in each of eight bytes.
  private static var each: UInt64 { 0x0101_0101_0101_0101 }

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
