internal import Foundation

/// A JSON number as it is written, so that no digit is lost however large or precise it is.
///
/// Equal only if the text is: `1` is not `1.0`.
public struct JSONNumber: Hashable, Sendable, CustomStringConvertible {
  /// The number as JSON writes it.
  public let text: String

  /// Makes an integer, of any width.
  public init(_ value: some BinaryInteger) { text = String(value) }

  /// Makes a number with the fewest digits that read back as the same `Double`; `nil` when it is not finite.
  public init?(_ value: Double) {
    guard value.isFinite else { return nil }
    text = value.description
  }

  /// Takes a number as JSON writes it; `nil` when it is not one.
  public init?(text: String) {
    guard case .valid = JSONSyntax.verdict(on: Data(text.utf8), depthLimit: 0), let first = text.utf8.first,
      first == UInt8(ascii: "-") || (0x30...0x39).contains(first)
    else { return nil }
    self.text = String(text.prefix { !$0.isWhitespace })
  }

  init(checked text: String) { self.text = text }

  /// Returns the number as an integer; `nil` when it is not written as one, or does not fit.
  public func exactly<Integer: FixedWidthInteger>(_ type: Integer.Type) -> Integer? { Integer(text, radix: 10) }

  /// The nearest `Double`; infinite for a number that is too large for one.
  public var doubleValue: Double { Double(text) ?? .nan }

  /// The text.
  public var description: String { text }
}
