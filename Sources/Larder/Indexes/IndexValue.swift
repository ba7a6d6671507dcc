public import Foundation
internal import Synchronization

/// A value in the form that indexes and cursors compare, with one total order over all indexable types.
///
/// The order of kinds is: absent, `false`, `true`, numbers, text, identifiers. NaN comes last of all and equals itself. Minus zero equals
/// zero. Two texts are equal if Swift's `String` finds them equal. Texts are ordered by the bytes of their composed forms, in indexes and
/// in conditions such as `where(\.name, .less, "n")`. Among numbers, integers come before floating-point numbers. A property has one type,
/// so integers and floating-point numbers do not meet in one column.
public struct IndexValue: Hashable, Sendable {
  enum Form: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    /// An unsigned integer above `Int64.max`. Smaller unsigned integers have the form ``integer(_:)``, so that each integer has one form.
    case large(UInt64)
    case real(Double)
    case text(String)
    case identifier(UInt64, UInt64)
    case notANumber
  }

  let form: Form

  init(_ form: Form) { self.form = form }

  /// The index value of an absent value, such as an optional that is `nil`.
  public static let null = IndexValue(.null)
  static let notANumber = IndexValue(.notANumber)

  /// Creates the index value of a Boolean.
  public init(_ value: Bool) { form = .bool(value) }
  /// Creates the index value of a signed integer.
  public init(_ value: Int64) { form = .integer(value) }
  /// Creates the index value of an unsigned integer.
  public init(_ value: UInt64) { form = Int64(exactly: value).map { .integer($0) } ?? .large(value) }
  /// Creates the index value of a floating-point number.
  ///
  /// Minus zero becomes zero, because minus zero and zero are equal and must have the same hash.
  public init(_ value: Double) { form = value.isNaN ? .notANumber : .real(value == 0 ? 0 : value) }
  /// Creates the index value of a text.
  public init(_ value: String) { form = .text(value) }
  /// Creates the index value of an identifier, ordered by its bytes.
  public init(_ value: UUID) {
    let (high, low) = withUnsafeBytes(of: value.uuid) { bytes in
      (bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
    // The bytes are read as big-endian, so that the two numbers sort in the order of the identifier's bytes.
    form = .identifier(UInt64(bigEndian: high), UInt64(bigEndian: low))
  }
}

extension IndexValue {
  /// Creates the index value of a value whose type is known only at run time, or ``null`` if that type is not indexable.
  init(of value: Any) { self = (value as? any IndexableValue)?.indexValue ?? .null }
}

extension IndexValue: Comparable {
  /// Returns true if the left value comes first in the order of all index values.
  public static func < (left: IndexValue, right: IndexValue) -> Bool {
    switch (left.form, right.form) {
    // Pairs of values of one kind come first, and the most frequent pairs at the top, because each comparison in an index search runs this
    // `switch`.
    case (.text(let left), .text(let right)): IndexHead.precedes(left, right)
    case (.integer(let left), .integer(let right)): left < right
    case (.real(let left), .real(let right)): left < right
    case (.identifier(let high, let low), .identifier(let otherHigh, let otherLow)): (high, low) < (otherHigh, otherLow)
    case (.bool(let left), .bool(let right)): !left && right
    case (.large(let left), .large(let right)): left < right
    default: left.rank < right.rank
    }
  }

  /// Position of the value's kind in the order of all kinds, which decides between values of different kinds.
  private var rank: Int {
    switch form {
    case .null: 0
    case .bool: 1
    case .integer: 2
    case .large: 3
    case .real: 4
    case .text: 5
    case .identifier: 6
    case .notANumber: 7
    }
  }
}

extension IndexValue: Codable {
  /// Reads a value from a string of a one-letter tag and the value's text.
  ///
  /// - Throws: `DecodingError` for a string that ``encode(to:)`` does not write.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let written = try container.decode(String.self)
    let text = String(written.dropFirst())
    let form: Form? =
      switch written.first {
      case "n": text.isEmpty ? .null : nil
      case "x": text.isEmpty ? .notANumber : nil
      case "b": text == "1" ? .bool(true) : text == "0" ? .bool(false) : nil
      case "i": Int64(text).map { .integer($0) }
      // A number up to `Int64.max` is always written with the tag "i". The form `.large` of a number up to `Int64.max` would not equal the
      // form `.integer` of the same number.
      case "u": UInt64(text).flatMap { $0 > UInt64(Int64.max) ? .large($0) : nil }
      case "r": UInt64(text, radix: 16).flatMap { IndexValue(Double(bitPattern: $0)).form }
      case "t": .text(text)
      case "d": UUID(uuidString: text).map { IndexValue($0).form }
      default: nil
      }
    guard let form else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not an index value")
    }
    self.form = form
  }

  /// Writes a one-letter tag and the value as one string, without rounding floating-point numbers.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch form {
    case .null: try container.encode("n")
    case .notANumber: try container.encode("x")
    case .bool(let value): try container.encode(value ? "b1" : "b0")
    case .integer(let value): try container.encode("i\(value)")
    case .large(let value): try container.encode("u\(value)")
    case .real(let value): try container.encode("r" + String(value.bitPattern, radix: 16))
    case .text(let value): try container.encode("t" + value)
    case .identifier(let high, let low): try container.encode("d" + Self.text(high, low))
    }
  }

  private static func text(_ high: UInt64, _ low: UInt64) -> String {
    let (high, low) = (high.bigEndian, low.bigEndian)
    return withUnsafeBytes(of: (high, low)) { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)).uuidString }
  }
}

/// A run-time check whether each value of a raw-representable type has the same index value as its raw value.
///
/// A type inherits ``IndexableValue/hasExactIndexValues`` from its raw value, but it may define an ``IndexableValue/indexValue`` of its own
/// that different values share. An inherited ``IndexableValue/hasExactIndexValues`` does not show whether different values share an index
/// value. Until the first unequal pair, the index value of each raw-representable value that goes into an index is compared with the index
/// value of the raw value. The constants in the predicates of queries are compared in the same way. As long as all pairs are equal, queries
/// assume that each index value belongs to only one value of the type. After the first unequal pair, queries test each record that an index
/// finds.
final class RawIndexValues: Sendable {
  // True once a value of the type had another index value than its raw value has.
  private let isOwnSeen = Atomic(false)
  private static let types = Mutex<[ObjectIdentifier: RawIndexValues]>([:])

  /// Returns the check of index values for a type, or for the wrapped type of an optional.
  ///
  /// The result is `nil` for a type without a raw value, and for a type whose ``IndexableValue/hasExactIndexValues`` is `false`.
  static func of<Value: IndexableValue>(_ type: Value.Type) -> RawIndexValues? {
    let wrapped: Any.Type = (type as? any OptionalType.Type)?.wrapped ?? type
    guard wrapped is any RawRepresentable.Type, type.hasExactIndexValues else { return nil }
    // The process has one `RawIndexValues` for each type, so an unequal pair that one store meets counts for the indexes of all stores.
    return types.withLock { types in
      if let known = types[ObjectIdentifier(wrapped)] { return known }
      let new = RawIndexValues()
      types[ObjectIdentifier(wrapped)] = new
      return new
    }
  }

  /// True if every checked value of the type had the index value of its raw value.
  ///
  /// `areExact` never returns from `false` to `true`. A value is checked before it enters an index. The planner reads `areExact` for an
  /// index only after every value in that index was passed to ``note(_:_:)``.
  var areExact: Bool { !isOwnSeen.load(ordering: .acquiring) }

  /// Compares the index value of a value with the index value of its raw value, and records a difference.
  func note<Value>(_ value: Value, _ indexValue: IndexValue) {
    // If `areExact` is `false`, the slow casts are skipped, because `areExact` never becomes `true` again.
    guard areExact, var raw = (value as? any RawRepresentable).map({ $0.rawValue as Any }) else { return }
    // A raw value may itself be of a type with a raw value, so the innermost raw value is compared.
    while let next = raw as? any RawRepresentable { raw = next.rawValue }
    // A raw value that is not indexable has no index value to compare. For a type whose raw value is not indexable, only the type's own
    // declaration of `hasExactIndexValues` counts.
    guard let indexable = raw as? any IndexableValue, indexable.indexValue != indexValue else { return }
    isOwnSeen.store(true, ordering: .releasing)
  }
}

extension IndexableValue {
  /// True if each index value belongs to only one value of the type, by the type's declaration and by the values checked so far.
  static var standsForOneValue: Bool { hasExactIndexValues && RawIndexValues.of(Self.self)?.areExact ?? true }
}

/// A protocol that only `Optional` adopts, so that generic code can find the wrapped type of an optional at run time.
protocol OptionalType {
  static var wrapped: Any.Type { get }
}
extension Optional: OptionalType {
  static var wrapped: Any.Type { Wrapped.self }
}
