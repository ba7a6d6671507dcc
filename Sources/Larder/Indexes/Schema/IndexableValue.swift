public import Foundation

/// A type whose values can be indexed: text, numbers, truth values, dates, identifiers, optionals of these, and your own.
///
/// A type with a raw value of one of these conforms by saying so, and is then ordered by its raw value:
///
/// ```swift
/// nonisolated enum Kind: String, Codable, IndexableValue { case pier, beach, summit }
/// ```
///
/// Two values that are equal must have equal index values, and if the type is `Comparable`, its order must be that of its index values.
/// Whether the converse holds, the type says with ``hasExactIndexValues``: where it does, an index alone answers `==`.
public protocol IndexableValue: Sendable {
  /// The value as an index sees it.
  var indexValue: IndexValue { get }

  /// Whether two values with equal index values are always equal.
  ///
  /// `false` unless the type says otherwise: then an index finds the records that may be meant, and each is checked. A type with a raw
  /// value is as exact as that, as long as its index values are those of its raw values: where one is not, the records are checked
  /// whatever is said here.
  static var hasExactIndexValues: Bool { get }
}

extension IndexableValue {
  /// `false`: records that an index finds are checked.
  public static var hasExactIndexValues: Bool { false }
}

extension IndexableValue where Self: RawRepresentable, RawValue: IndexableValue {
  /// The raw value's index value.
  public var indexValue: IndexValue { rawValue.indexValue }
  /// Whether the raw values are exact; it counts only while every ``indexValue`` is that of the raw value.
  public static var hasExactIndexValues: Bool { RawValue.hasExactIndexValues }
}

extension Int: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(Int64(self)) }
  /// `true`.
  public static var hasExactIndexValues: Bool { true }
}

extension Int8: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(Int64(self)) }
  /// `true`.
  public static var hasExactIndexValues: Bool { true }
}

extension Int16: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(Int64(self)) }
  /// `true`.
  public static var hasExactIndexValues: Bool { true }
}

extension Int32: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(Int64(self)) }
  /// `true`.
  public static var hasExactIndexValues: Bool { true }
}

extension Int64: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(self) }
  /// `true`.
  public static var hasExactIndexValues: Bool { true }
}

extension UInt: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(UInt64(self)) }
  /// `true`.
  public static var hasExactIndexValues: Bool { true }
}

extension UInt8: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(UInt64(self)) }
  /// `true`.
  public static var hasExactIndexValues: Bool { true }
}

extension UInt16: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(UInt64(self)) }
  /// `true`.
  public static var hasExactIndexValues: Bool { true }
}

extension UInt32: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(UInt64(self)) }
  /// `true`.
  public static var hasExactIndexValues: Bool { true }
}

extension UInt64: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(self) }
  /// `true`.
  public static var hasExactIndexValues: Bool { true }
}

extension Bool: IndexableValue {
  /// The truth value; `false` comes first.
  public var indexValue: IndexValue { IndexValue(self) }
  /// `true`.
  public static var hasExactIndexValues: Bool { true }
}

extension Double: IndexableValue {
  /// The number.
  public var indexValue: IndexValue { IndexValue(self) }
  /// `true`.
  public static var hasExactIndexValues: Bool { true }
}

extension Float: IndexableValue {
  /// The number, which a `Double` holds exactly.
  public var indexValue: IndexValue { IndexValue(Double(self)) }
  /// `true`.
  public static var hasExactIndexValues: Bool { true }
}

extension String: IndexableValue {
  /// The text.
  public var indexValue: IndexValue { IndexValue(self) }
  /// `true`.
  public static var hasExactIndexValues: Bool { true }
}

extension Date: IndexableValue {
  /// The instant, as seconds since the reference date.
  public var indexValue: IndexValue { IndexValue(timeIntervalSinceReferenceDate) }
  /// `true`.
  public static var hasExactIndexValues: Bool { true }
}

extension UUID: IndexableValue {
  /// The identifier, ordered by its bytes.
  public var indexValue: IndexValue { IndexValue(self) }
  /// `true`.
  public static var hasExactIndexValues: Bool { true }
}

extension Optional: IndexableValue where Wrapped: IndexableValue {
  /// The wrapped value, or ``IndexValue/null``, which comes first.
  public var indexValue: IndexValue { self?.indexValue ?? .null }
  /// Whether the wrapped values are exact; `false` for an optional of an optional, whose two kinds of `nil` have one index value.
  public static var hasExactIndexValues: Bool { Wrapped.hasExactIndexValues && !(Wrapped.self is any OptionalType.Type) }
}

/// A type of property whose words a full-text index can find: `String`, an optional of it, or an array.
public protocol SearchableText: Sendable {
  /// The texts, each of which is a field of its own.
  var searchableTexts: [String] { get }
}

extension String: SearchableText {
  /// The text itself.
  public var searchableTexts: [String] { [self] }
}

extension Optional: SearchableText where Wrapped: SearchableText {
  /// The wrapped texts, or none.
  public var searchableTexts: [String] { self?.searchableTexts ?? [] }
}

extension Array: SearchableText where Element: SearchableText {
  /// The texts of all elements.
  public var searchableTexts: [String] { flatMap(\.searchableTexts) }
}
