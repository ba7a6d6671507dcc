public import Foundation

/// A type whose values can be indexed: text, numbers, Booleans, dates, identifiers, optionals of these, and your own types.
///
/// To make a type with a raw value indexable, declare the conformance. Its values are then ordered by their raw values:
///
/// ```swift
/// nonisolated enum Kind: String, Codable, IndexableValue { case pier, beach, summit }
/// ```
///
/// Two values that are equal must have equal index values, and if the type is `Comparable`, its order must be that of its index values. The
/// type declares with ``hasExactIndexValues`` whether the converse holds. Where it does, an index alone answers `==`.
public protocol IndexableValue: Sendable {
  /// Value in the form that indexes compare.
  var indexValue: IndexValue { get }

  /// Whether two values with equal index values are always equal.
  ///
  /// Return `true` only if that holds. With `false`, the default, an index finds candidates and each one is tested. A type with a raw value
  /// inherits the answer of the raw value's type, as long as its index values are those of its raw values. Once a value differs, records
  /// are tested regardless of this property.
  static var hasExactIndexValues: Bool { get }
}

extension IndexableValue {
  /// `false`: each record that an index finds is tested.
  public static var hasExactIndexValues: Bool { false }
}

// Lets an enumeration conform by a declaration alone.
extension IndexableValue where Self: RawRepresentable, RawValue: IndexableValue {
  /// Index value of the raw value.
  public var indexValue: IndexValue { rawValue.indexValue }
  /// Whether the raw values are exact, which counts only while every ``indexValue`` is that of the raw value.
  public static var hasExactIndexValues: Bool { RawValue.hasExactIndexValues }
}

// `Int` has 32 or 64 bits, so `Int64` always holds it.
extension Int: IndexableValue {
  /// Number as an index value.
  public var indexValue: IndexValue { IndexValue(Int64(self)) }
  /// `true`: values with equal index values are equal.
  public static var hasExactIndexValues: Bool { true }
}

extension Int8: IndexableValue {
  /// Number as an index value.
  public var indexValue: IndexValue { IndexValue(Int64(self)) }
  /// `true`: values with equal index values are equal.
  public static var hasExactIndexValues: Bool { true }
}

extension Int16: IndexableValue {
  /// Number as an index value.
  public var indexValue: IndexValue { IndexValue(Int64(self)) }
  /// `true`: values with equal index values are equal.
  public static var hasExactIndexValues: Bool { true }
}

extension Int32: IndexableValue {
  /// Number as an index value.
  public var indexValue: IndexValue { IndexValue(Int64(self)) }
  /// `true`: values with equal index values are equal.
  public static var hasExactIndexValues: Bool { true }
}

extension Int64: IndexableValue {
  /// Number as an index value.
  public var indexValue: IndexValue { IndexValue(self) }
  /// `true`: values with equal index values are equal.
  public static var hasExactIndexValues: Bool { true }
}

extension UInt: IndexableValue {
  /// Number as an index value.
  public var indexValue: IndexValue { IndexValue(UInt64(self)) }
  /// `true`: values with equal index values are equal.
  public static var hasExactIndexValues: Bool { true }
}

extension UInt8: IndexableValue {
  /// Number as an index value.
  public var indexValue: IndexValue { IndexValue(UInt64(self)) }
  /// `true`: values with equal index values are equal.
  public static var hasExactIndexValues: Bool { true }
}

extension UInt16: IndexableValue {
  /// Number as an index value.
  public var indexValue: IndexValue { IndexValue(UInt64(self)) }
  /// `true`: values with equal index values are equal.
  public static var hasExactIndexValues: Bool { true }
}

extension UInt32: IndexableValue {
  /// Number as an index value.
  public var indexValue: IndexValue { IndexValue(UInt64(self)) }
  /// `true`: values with equal index values are equal.
  public static var hasExactIndexValues: Bool { true }
}

extension UInt64: IndexableValue {
  /// Number as an index value.
  public var indexValue: IndexValue { IndexValue(self) }
  /// `true`: values with equal index values are equal.
  public static var hasExactIndexValues: Bool { true }
}

extension Bool: IndexableValue {
  /// The Boolean, where `false` comes first.
  public var indexValue: IndexValue { IndexValue(self) }
  /// `true`: values with equal index values are equal.
  public static var hasExactIndexValues: Bool { true }
}

extension Double: IndexableValue {
  /// Number as an index value.
  public var indexValue: IndexValue { IndexValue(self) }
  /// `true`: values with equal index values are equal.
  public static var hasExactIndexValues: Bool { true }
}

// Every `Float` is exactly a `Double`, so different floats have different index values.
extension Float: IndexableValue {
  /// Number as an index value, which is a `Double` that holds it exactly.
  public var indexValue: IndexValue { IndexValue(Double(self)) }
  /// `true`: values with equal index values are equal.
  public static var hasExactIndexValues: Bool { true }
}

extension String: IndexableValue {
  /// Text as an index value.
  public var indexValue: IndexValue { IndexValue(self) }
  /// `true`: values with equal index values are equal.
  public static var hasExactIndexValues: Bool { true }
}

// `Date` compares by this number itself, so the order is the same.
extension Date: IndexableValue {
  /// The instant, as seconds since the reference date.
  public var indexValue: IndexValue { IndexValue(timeIntervalSinceReferenceDate) }
  /// `true`: values with equal index values are equal.
  public static var hasExactIndexValues: Bool { true }
}

// `UUID` compares by its bytes itself, so the order is the same.
extension UUID: IndexableValue {
  /// Identifier as an index value, ordered by its bytes.
  public var indexValue: IndexValue { IndexValue(self) }
  /// `true`: values with equal index values are equal.
  public static var hasExactIndexValues: Bool { true }
}

// `nil` and `.some(nil)` of an optional of an optional have one index value, so such a type is not exact.
extension Optional: IndexableValue where Wrapped: IndexableValue {
  /// Index value of the wrapped value, or ``IndexValue/null``, which comes first.
  public var indexValue: IndexValue { self?.indexValue ?? .null }
  /// Whether the wrapped values are exact.
  ///
  /// `false` for an optional of an optional, whose two kinds of `nil` have one index value.
  public static var hasExactIndexValues: Bool { Wrapped.hasExactIndexValues && !(Wrapped.self is any OptionalType.Type) }
}

/// A type of property whose words a full-text index can find: `String`, an optional of it, or an array.
public protocol SearchableText: Sendable {
  /// Texts of the property, each of which is a field of its own.
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
  /// Texts of all elements, in order.
  public var searchableTexts: [String] { flatMap(\.searchableTexts) }
}
