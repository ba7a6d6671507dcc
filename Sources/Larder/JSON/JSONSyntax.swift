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
