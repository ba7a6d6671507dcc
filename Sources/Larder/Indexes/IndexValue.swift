public import Foundation
internal import Synchronization

/// A value as indexes and cursors see it: one total order over everything that can be indexed.
///
/// Nothing comes first, then `false`, `true`, numbers, text, identifiers; a number that is not a number (NaN) comes last of all, equal to
/// itself. Text compares as Swift's `String` does, by canonical equivalence; minus zero equals zero.
public struct IndexValue: Hashable, Sendable {
  enum Form: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    /// Only above `Int64.max`, so that the order of the cases is the order of the numbers.
    case large(UInt64)
    case real(Double)
    case text(String)
    case identifier(UInt64, UInt64)
    case notANumber
  }

  let form: Form

  init(_ form: Form) { self.form = form }

  /// The absence of a value, as in an optional that is `nil`.
  public static let null = IndexValue(.null)
  static let notANumber = IndexValue(.notANumber)

  /// Makes the value of a truth value.
  public init(_ value: Bool) { form = .bool(value) }
  /// Makes the value of an integer.
  public init(_ value: Int64) { form = .integer(value) }
  /// Makes the value of an integer without a sign.
  public init(_ value: UInt64) { form = Int64(exactly: value).map { .integer($0) } ?? .large(value) }
  /// Makes the value of a floating-point number.
  public init(_ value: Double) { form = value.isNaN ? .notANumber : .real(value == 0 ? 0 : value) }
  /// Makes the value of a text.
  public init(_ value: String) { form = .text(value) }
  /// Makes the value of an identifier, ordered by its bytes.
  public init(_ value: UUID) {
    let (high, low) = withUnsafeBytes(of: value.uuid) { bytes in
      (bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
    form = .identifier(UInt64(bigEndian: high), UInt64(bigEndian: low))
  }
}

extension IndexValue {
  /// Makes the value of something whose type is known to be indexable only while running; ``null`` for anything else.
  init(of value: Any) { self = (value as? any IndexableValue)?.indexValue ?? .null }
}

extension IndexValue: Comparable {
  /// Whether the left value comes first in the one order of all values.
  public static func < (left: IndexValue, right: IndexValue) -> Bool {
    switch (left.form, right.form) {
    case (.text(let left), .text(let right)): left < right
    case (.integer(let left), .integer(let right)): left < right
    case (.real(let left), .real(let right)): left < right
    case (.identifier(let high, let low), .identifier(let otherHigh, let otherLow)): (high, low) < (otherHigh, otherLow)
    case (.bool(let left), .bool(let right)): !left && right
    case (.large(let left), .large(let right)): left < right
    default: left.rank < right.rank
    }
  }

  /// The place of the kind in the order of kinds.
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
  /// Reads a value from its tag and text.
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

  /// Writes a tag and the value as one text; numbers keep every bit.
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

/// Whether the values of a type with a raw value have the index values of their raw values, as far as this process has seen.
///
/// A type takes ``IndexableValue/hasExactIndexValues`` over from its raw value, but may make an ``IndexableValue/indexValue`` of its own
/// that different values share. The type does not tell, so each value that goes into an index, and each constant of a predicate, is
/// looked at. Where an index value is that of the raw value, it stands for no other value; where one is not, records that an index finds
/// are checked.
final class RawIndexValues: Sendable {
  private let isOwnSeen = Atomic(false)
  private static let types = Mutex<[ObjectIdentifier: RawIndexValues]>([:])

  /// Returns what is known of a type, or of the one that an optional wraps; `nil` when it has no raw value, or does not say that it is
  /// exact.
  static func of<Value: IndexableValue>(_ type: Value.Type) -> RawIndexValues? {
    let wrapped: Any.Type = (type as? any OptionalType.Type)?.wrapped ?? type
    guard wrapped is any RawRepresentable.Type, type.hasExactIndexValues else { return nil }
    return types.withLock { types in
      if let known = types[ObjectIdentifier(wrapped)] { return known }
      let new = RawIndexValues()
      types[ObjectIdentifier(wrapped)] = new
      return new
    }
  }

  /// Whether an index value of the type stands for one value.
  ///
  /// Once `false`, it stays so. What was put into an index before a plan is made has been noted by then.
  var areExact: Bool { !isOwnSeen.load(ordering: .acquiring) }

  /// Looks at a value that is put into an index or searched for.
  func note<Value>(_ value: Value, _ indexValue: IndexValue) {
    guard areExact, var raw = (value as? any RawRepresentable).map({ $0.rawValue as Any }) else { return }
    while let next = raw as? any RawRepresentable { raw = next.rawValue }
    // A raw value that is not indexable says nothing: then the type itself has said that it is exact.
    guard let indexable = raw as? any IndexableValue, indexable.indexValue != indexValue else { return }
    isOwnSeen.store(true, ordering: .releasing)
  }
}

extension IndexableValue {
  /// Whether an index value of the type stands for one value, as the type says and its values confirm.
  static var standsForOneValue: Bool { hasExactIndexValues && RawIndexValues.of(Self.self)?.areExact ?? true }
}

/// An optional, whatever it wraps.
protocol OptionalType {
  static var wrapped: Any.Type { get }
}
extension Optional: OptionalType {
  static var wrapped: Any.Type { Wrapped.self }
}
