public import Foundation
internal import Synchronization

/// A value in the form that indexes and cursors compare, with one total order over all indexable types.
///
/// The order of kinds is: absent, `false`, `true`, numbers, text, identifiers. NaN comes last of all and equals itself. Text compares as
/// Swift's `String` does, by canonical equivalence. Minus zero equals zero. Among numbers, integers come before floating-point ones. A
/// property has one type, so the two do not meet in a column.
public struct IndexValue: Hashable, Sendable {
  enum Form: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    /// An unsigned integer above `Int64.max` only, so that the order of the cases is the order of the integers.
    case large(UInt64)
    case real(Double)
    case text(String)
    case identifier(UInt64, UInt64)
    case notANumber
  }

  let form: Form

  init(_ form: Form) { self.form = form }

  /// Absence of a value, as in an optional that is `nil`.
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
  /// Minus zero becomes zero, because the two are equal and must have one hash.
  public init(_ value: Double) { form = value.isNaN ? .notANumber : .real(value == 0 ? 0 : value) }
  /// Creates the index value of a text.
  public init(_ value: String) { form = .text(value) }
  /// Creates the index value of an identifier, ordered by its bytes.
  public init(_ value: UUID) {
    let (high, low) = withUnsafeBytes(of: value.uuid) { bytes in
      (bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
    // Big-endian, so that the order of the two numbers is the order of the bytes.
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
    // Pairs of one kind come first, the most frequent ones at the top: each comparison of a search passes here.
    case (.text(let left), .text(let right)): left < right
    case (.integer(let left), .integer(let right)): left < right
    case (.real(let left), .real(let right)): left < right
    case (.identifier(let high, let low), .identifier(let otherHigh, let otherLow)): (high, low) < (otherHigh, otherLow)
    case (.bool(let left), .bool(let right)): !left && right
    case (.large(let left), .large(let right)): left < right
    default: left.rank < right.rank
    }
  }

  /// Position of the kind in the order of kinds.
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
  /// Reads a value from its one-letter tag and text.
  ///
  /// - Throws: `DecodingError` for anything that ``encode(to:)`` does not write.
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
      // A smaller number would compare by its case, not by its value, with the same number as an integer.
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

  /// Writes a one-letter tag and the value as one string, in which numbers keep every bit.
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

/// Evidence, gathered while the process runs, that a raw-representable type has the index values of its raw values.
///
/// A type inherits ``IndexableValue/hasExactIndexValues`` from its raw value, but it may define an ``IndexableValue/indexValue`` of its own
/// that different values share. The type does not declare this. So each value that goes into an index, and each constant of a predicate, is
/// compared with its raw value. As long as all agree, an index value stands for one value. After the first that differs, records that an
/// index finds are tested one by one.
final class RawIndexValues: Sendable {
  // True after a value whose index value differs from its raw value's.
  private let isOwnSeen = Atomic(false)
  private static let types = Mutex<[ObjectIdentifier: RawIndexValues]>([:])

  /// Returns the evidence about a type or the type that an optional wraps.
  ///
  /// Returns `nil` for a type without a raw value, and for one that does not declare itself exact.
  static func of<Value: IndexableValue>(_ type: Value.Type) -> RawIndexValues? {
    let wrapped: Any.Type = (type as? any OptionalType.Type)?.wrapped ?? type
    guard wrapped is any RawRepresentable.Type, type.hasExactIndexValues else { return nil }
    // One object for each type in the process: indexes and predicates of any store add to the same evidence.
    return types.withLock { types in
      if let known = types[ObjectIdentifier(wrapped)] { return known }
      let new = RawIndexValues()
      types[ObjectIdentifier(wrapped)] = new
      return new
    }
  }

  /// True if every index value of the type seen so far stands for one value.
  ///
  /// Once `false`, it stays `false`. Values that entered an index before a plan is made are already part of the evidence.
  var areExact: Bool { !isOwnSeen.load(ordering: .acquiring) }

  /// Compares a value that enters an index, or a constant of a predicate, with its raw value.
  func note<Value>(_ value: Value, _ indexValue: IndexValue) {
    // Nothing can change a `false` any more, so later values skip the casts.
    guard areExact, var raw = (value as? any RawRepresentable).map({ $0.rawValue as Any }) else { return }
    // A raw value may itself be an enumeration with a raw value.
    while let next = raw as? any RawRepresentable { raw = next.rawValue }
    // A raw value that is not indexable is no evidence: then the type itself has declared that it is exact.
    guard let indexable = raw as? any IndexableValue, indexable.indexValue != indexValue else { return }
    isOwnSeen.store(true, ordering: .releasing)
  }
}

extension IndexableValue {
  /// True if an index value of the type stands for one value, by its declaration and by the values seen so far.
  static var standsForOneValue: Bool { hasExactIndexValues && RawIndexValues.of(Self.self)?.areExact ?? true }
}

/// A protocol that only `Optional` adopts, to find the wrapped type at run time.
protocol OptionalType {
  static var wrapped: Any.Type { get }
}
extension Optional: OptionalType {
  static var wrapped: Any.Type { Wrapped.self }
}
