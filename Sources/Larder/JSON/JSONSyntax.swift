internal import Foundation

/// A check of JSON text against the grammar of RFC 8259, in one pass over the bytes and without decoding them.
///
/// Encoded values are checked before they are stored: `JSONEncoder` writes `NaN` for `Decimal.nan`, which no decoder reads and which would
/// make the whole file invalid. Unpaired surrogates are refused too. The grammar allows them, but no decoder takes them.
enum JSONSyntax {
  /// Result of checking a text.
  enum Verdict: Equatable {
    /// Valid JSON within the depth limit.
    ///
    /// `hasUnusualNumber` is true if a number has more than 25 characters or an exponent of three digits or more. Whether it can be decoded
    /// depends on the type.
    case valid(hasUnusualNumber: Bool)
    /// Not JSON from this byte on.
    case malformed(offset: Int)
    /// Arrays and objects nest deeper than the limit.
    case tooDeep
  }

  /// Checks that a text is one JSON value, with nothing around it but white space.
  ///
  /// Cost: linear, about a nanosecond a byte. Never recurses.
  /// - Parameter limit: The deepest nesting that is accepted.
  static func verdict(on json: Data, depthLimit limit: Int) -> Verdict {
    json.withUnsafeBytes { bytes in
      var scan = JSONScan(bytes, depthLimit: limit)
      return scan.run()
    }
  }

  /// Number of characters up to which a number counts as usual: a `Double` is written with at most 24.
  static let usualNumberLength = 25
}

/// A measure of the nesting depth of JSON text that does not decode it.
///
/// Decoding recurses with the text, and deeply nested values overflow a stack of 512 KiB (a secondary thread on Darwin). So depth is
/// measured on the bytes when a store is opened. Saved values are measured while they are encoded.
enum JSONDepth {
  /// Whether arrays and objects nest deeper than a limit.
  ///
  /// Cost: linear. Text with few brackets costs only a count of them.
  static func exceeds(_ limit: Int, in json: UnsafeRawBufferPointer) -> Bool {
    // Each level takes two brackets, so a shorter text cannot nest so deep.
    guard json.count > 2 * limit else { return false }
    // The exact measure goes byte by byte, so it runs only where the fast count exceeds the limit.
    return openingBrackets(json) > limit && measuredDepth(json) > limit
  }

  /// Returns the number of opening brackets, strings included, as an upper bound of the depth.
  ///
  /// '[' is 0x5B and '{' is 0x7B, and no other byte becomes 0x7B by setting bit 5. Every record is counted when a store is opened, so eight
  /// bytes are compared at a time.
  static func openingBrackets(_ bytes: UnsafeRawBufferPointer) -> Int {
    var count = 0
    var index = 0
    while index + 8 <= bytes.count {
      // Each byte of `sums` counts one of eight columns, and 255 steps cannot overflow it.
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
      // Brackets in strings do not nest.
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
