public import Foundation

/// A type whose values can be indexed: text, numbers, Booleans, dates, identifiers, optionals of these, and your own types.
///
/// To make a type with a raw value indexable, declare its conformance to `IndexableValue`. The values of the type are then ordered by their
/// raw values:
///
/// ```swift
/// nonisolated enum Kind: String, Codable, IndexableValue { case pier, beach, summit }
/// ```
///
/// Two values that are equal must have equal index values. If the type is `Comparable`, its order must be the order of its index values.
/// With ``hasExactIndexValues`` the type declares whether two values with equal index values are always equal. If equal index values imply
/// equal values, a query for `==` takes its results from the index and tests no record.
public protocol IndexableValue: Sendable {
  /// The value in the form that indexes compare.
  var indexValue: IndexValue { get }

  /// Whether two values with equal index values are always equal.
  ///
  /// Return `true` only if equal index values imply equal values. If `hasExactIndexValues` is `false`, as it is by default, a query tests
  /// each record that the index finds. A type with a raw value inherits `hasExactIndexValues` from the type of the raw value. If the index
  /// value of any value differs from the index value of its raw value, queries treat the property as `false`, even if the type declares
  /// `true`.
  static var hasExactIndexValues: Bool { get }
}

extension IndexableValue {
  /// `false`, so that a query tests each record that an index finds.
  public static var hasExactIndexValues: Bool { false }
}

// An extension implements `IndexableValue` for types with a raw value, so an enumeration only has to declare the conformance.
extension IndexableValue where Self: RawRepresentable, RawValue: IndexableValue {
  /// The index value of the raw value.
  public var indexValue: IndexValue { rawValue.indexValue }
  /// Whether two raw values with equal index values are always equal.
  ///
  /// Queries use `hasExactIndexValues` only as long as every ``indexValue`` of the type is the index value of the raw value.
  public static var hasExactIndexValues: Bool { RawValue.hasExactIndexValues }
}

// `Int` has 32 or 64 bits, so `Int64` holds every `Int`.
extension Int: IndexableValue {
  /// The number as an index value.
  public var indexValue: IndexValue { IndexValue(Int64(self)) }
  /// `true`, because two values with equal index values are always equal.
  public static var hasExactIndexValues: Bool { true }
}

extension Int8: IndexableValue {
  /// The number as an index value.
  public var indexValue: IndexValue { IndexValue(Int64(self)) }
  /// `true`, because two values with equal index values are always equal.
  public static var hasExactIndexValues: Bool { true }
}

extension Int16: IndexableValue {
  /// The number as an index value.
  public var indexValue: IndexValue { IndexValue(Int64(self)) }
  /// `true`, because two values with equal index values are always equal.
  public static var hasExactIndexValues: Bool { true }
}

extension Int32: IndexableValue {
  /// The number as an index value.
  public var indexValue: IndexValue { IndexValue(Int64(self)) }
  /// `true`, because two values with equal index values are always equal.
  public static var hasExactIndexValues: Bool { true }
}

extension Int64: IndexableValue {
  /// The number as an index value.
  public var indexValue: IndexValue { IndexValue(self) }
  /// `true`, because two values with equal index values are always equal.
  public static var hasExactIndexValues: Bool { true }
}

extension UInt: IndexableValue {
  /// The number as an index value.
  public var indexValue: IndexValue { IndexValue(UInt64(self)) }
  /// `true`, because two values with equal index values are always equal.
  public static var hasExactIndexValues: Bool { true }
}

extension UInt8: IndexableValue {
  /// The number as an index value.
  public var indexValue: IndexValue { IndexValue(UInt64(self)) }
  /// `true`, because two values with equal index values are always equal.
  public static var hasExactIndexValues: Bool { true }
}

extension UInt16: IndexableValue {
  /// The number as an index value.
  public var indexValue: IndexValue { IndexValue(UInt64(self)) }
  /// `true`, because two values with equal index values are always equal.
  public static var hasExactIndexValues: Bool { true }
}

extension UInt32: IndexableValue {
  /// The number as an index value.
  public var indexValue: IndexValue { IndexValue(UInt64(self)) }
  /// `true`, because two values with equal index values are always equal.
  public static var hasExactIndexValues: Bool { true }
}

extension UInt64: IndexableValue {
  /// The number as an index value.
  public var indexValue: IndexValue { IndexValue(self) }
  /// `true`, because two values with equal index values are always equal.
  public static var hasExactIndexValues: Bool { true }
}

extension Bool: IndexableValue {
  /// The Boolean, where `false` comes first.
  public var indexValue: IndexValue { IndexValue(self) }
  /// `true`, because two values with equal index values are always equal.
  public static var hasExactIndexValues: Bool { true }
}

extension Double: IndexableValue {
  /// The number as an index value.
  public var indexValue: IndexValue { IndexValue(self) }
  /// `true`, because two values with equal index values are always equal.
  public static var hasExactIndexValues: Bool { true }
}

// Every `Float` is exactly a `Double`, so different floats have different index values.
extension Float: IndexableValue {
  /// The number as an index value, which is a `Double` that holds the number exactly.
  public var indexValue: IndexValue { IndexValue(Double(self)) }
  /// `true`, because two values with equal index values are always equal.
  public static var hasExactIndexValues: Bool { true }
}

extension String: IndexableValue {
  /// The text as an index value.
  public var indexValue: IndexValue { IndexValue(self) }
  /// `true`, because two values with equal index values are always equal.
  public static var hasExactIndexValues: Bool { true }
}

// `Date` compares by `timeIntervalSinceReferenceDate`, so dates and their index values have the same order.
extension Date: IndexableValue {
  /// The date as an index value: its seconds since the reference date, 1 January 2001 at 00:00 UTC.
  public var indexValue: IndexValue { IndexValue(timeIntervalSinceReferenceDate) }
  /// `true`, because two values with equal index values are always equal.
  public static var hasExactIndexValues: Bool { true }
}

// `UUID` compares by its bytes, so identifiers and their index values have the same order.
extension UUID: IndexableValue {
  /// The identifier as an index value, ordered by its bytes.
  public var indexValue: IndexValue { IndexValue(self) }
  /// `true`, because two values with equal index values are always equal.
  public static var hasExactIndexValues: Bool { true }
}

// `nil` and `.some(nil)` of an optional of an optional have the same index value, so `hasExactIndexValues` is `false` for such a type.
extension Optional: IndexableValue where Wrapped: IndexableValue {
  /// Index value of the wrapped value, or ``IndexValue/null`` for `nil`, which comes before all other values.
  public var indexValue: IndexValue { self?.indexValue ?? .null }
  /// Whether two wrapped values with equal index values are always equal.
  ///
  /// `hasExactIndexValues` is `false` for an optional of an optional, whose two kinds of `nil` have the same index value.
  public static var hasExactIndexValues: Bool { Wrapped.hasExactIndexValues && !(Wrapped.self is any OptionalType.Type) }
}

/// A type of property whose words a full-text index can find: `String`, an optional or an array of it, or your own type.
public protocol SearchableText: Sendable {
  /// The texts of the property, whose words a full-text index finds.
  var searchableTexts: [String] { get }
}

extension String: SearchableText {
  /// The text itself.
  public var searchableTexts: [String] { [self] }
}

extension Optional: SearchableText where Wrapped: SearchableText {
  /// The texts of the wrapped value, or an empty array for `nil`.
  public var searchableTexts: [String] { self?.searchableTexts ?? [] }
}

extension Array: SearchableText where Element: SearchableText {
  /// Texts of all elements, in the order of the array.
  public var searchableTexts: [String] { flatMap(\.searchableTexts) }
}
