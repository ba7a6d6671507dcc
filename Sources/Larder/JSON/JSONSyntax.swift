internal import Foundation

/// A check of a JSON text against the grammar of RFC 8259, in one pass over the bytes and without decoding the text.
///
/// The JSON that Foundation's encoder or a migration has written is checked before it is stored. `JSONEncoder` writes `NaN` for
/// `Decimal.nan`, which no decoder reads and which would make the whole file invalid. The check also refuses unpaired surrogates, which the
/// grammar allows but no decoder accepts.
enum JSONSyntax {
  /// Result of checking a JSON text.
  enum Verdict: Equatable {
    /// The text is valid JSON within the depth limit.
    ///
    /// `hasUnusualNumber` is true if a number has more than 25 characters or an exponent of three digits or more. Some number types cannot
    /// decode a number of that length or with that exponent.
    case valid(hasUnusualNumber: Bool)
    /// The text is not valid JSON, and the error is at the byte offset `offset`.
    case malformed(offset: Int)
    /// The arrays and objects of the text nest deeper than the limit.
    case tooDeep
  }

  /// Checks that a text is one JSON value, with nothing but white space before and behind the value.
  ///
  /// Cost: linear, about a nanosecond for each byte. The check does not recurse, so no text can overflow the stack.
  ///
  /// - Parameter limit: The deepest nesting of arrays and objects that is accepted.
  static func verdict(on json: Data, depthLimit limit: Int) -> Verdict {
    json.withUnsafeBytes { bytes in
      var scan = JSONScan(bytes, depthLimit: limit)
      return scan.run()
    }
  }

  /// Largest number of characters in a number that counts as usual.
  ///
  /// A `Double` is written with at most 24 characters.
  static let usualNumberLength = 25
}

/// Functions that measure the nesting depth of a JSON text without decoding the text.
///
/// Decoding recurses once for each level, and decoding a deeply nested value overflows a stack of 512 KiB (the stack of a secondary thread
/// on Darwin). The depth of each record is therefore measured from its bytes when a store is opened. The encoder measures the depth of a
/// saved value while it writes the value.
enum JSONDepth {
  /// Returns true if the arrays and objects of a text nest deeper than a limit.
  ///
  /// Cost: linear. For a text with few brackets, the cost is only that of counting the brackets.
  static func exceeds(_ limit: Int, in json: UnsafeRawBufferPointer) -> Bool {
    // Each level of nesting takes an opening and a closing bracket, so a text of at most `2 * limit` bytes cannot exceed the limit.
    guard json.count > 2 * limit else { return false }
    // Measuring the exact depth reads byte by byte, so the exact depth is measured only if the fast count of brackets exceeds the limit.
    return openingBrackets(json) > limit && measuredDepth(json) > limit
  }

  /// Returns the number of opening brackets, including brackets in strings, as an upper bound of the nesting depth.
  ///
  /// The opening bracket is the byte 0x5B and the opening brace is 0x7B, and no other byte becomes 0x7B when bit 5 is set. Opening a store
  /// counts the brackets of every record, so eight bytes are compared at a time.
  static func openingBrackets(_ bytes: UnsafeRawBufferPointer) -> Int {
    var count = 0
    var index = 0
    while index + 8 <= bytes.count {
      // Each of the eight bytes of `sums` counts the brackets at every eighth byte of the text. At most 255 words are added up, so no byte
      // overflows.
      let end = min(bytes.count - 7, index + 255 * 8)
      var sums: UInt64 = 0
      while index < end {
        let others = (bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self) | (each * 0x20)) ^ (each * 0x7B)
        // The high bit of a byte in `differing` is set unless the same byte of `others` is zero. The high bit comes from a carry out of the
        // lower seven bits, or from the high bit of `others`.
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

  /// A 64-bit number whose eight bytes all have the value one.
  private static var each: UInt64 { 0x0101_0101_0101_0101 }

  private static func measuredDepth(_ bytes: UnsafeRawBufferPointer) -> Int {
    var depth = 0
    var deepest = 0
    var isInString = false
    var isEscaped = false
    for byte in bytes {
      // A bracket inside a string opens no array or object, so the bracket must not be counted.
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
