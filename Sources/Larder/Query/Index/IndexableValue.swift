public import Foundation

/// A type whose values can be indexed: text, numbers, truth values, dates, identifiers, optionals of these, and your own.
///
/// A type with a raw value of one of these conforms by saying so, and is then ordered by its raw value:
///
/// ```swift
/// enum Kind: String, Codable, IndexableValue { case pier, beach, summit }
/// ```
///
/// Two values that are equal must have equal index values, and if the type is `Comparable`, its order must be that of its index values.
public protocol IndexableValue: Sendable {
  /// The value as an index sees it.
  var indexValue: IndexValue { get }
}

extension IndexableValue where Self: RawRepresentable, RawValue: IndexableValue {
  /// The raw value's index value.
  public var indexValue: IndexValue { rawValue.indexValue }
}

extension Int: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(Int64(self)) }
}

extension Int8: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(Int64(self)) }
}

extension Int16: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(Int64(self)) }
}

extension Int32: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(Int64(self)) }
}

extension Int64: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(self) }
}

extension UInt: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(UInt64(self)) }
}

extension UInt8: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(UInt64(self)) }
}

extension UInt16: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(UInt64(self)) }
}

extension UInt32: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(UInt64(self)) }
}

extension UInt64: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(self) }
}

extension Bool: IndexableValue {
  /// The truth value; `false` comes first.
  public var indexValue: IndexValue { IndexValue(self) }
}

extension Double: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(self) }
}

extension Float: IndexableValue {
  /// The number, which a `Double` holds exactly.
  public var indexValue: IndexValue { IndexValue(Double(self)) }
}

extension String: IndexableValue {
  /// The text.
  public var indexValue: IndexValue { IndexValue(self) }
}

extension Date: IndexableValue {
  /// The instant, as seconds since the reference date.
  public var indexValue: IndexValue { IndexValue(timeIntervalSinceReferenceDate) }
}

extension UUID: IndexableValue {
  /// The identifier, ordered by its bytes.
  public var indexValue: IndexValue { IndexValue(self) }
}

extension Optional: IndexableValue where Wrapped: IndexableValue {
  /// The wrapped value, or ``IndexValue/null``, which comes first.
  public var indexValue: IndexValue { self?.indexValue ?? .null }
}
