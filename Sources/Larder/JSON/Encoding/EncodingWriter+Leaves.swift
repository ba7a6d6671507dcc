internal import Foundation

// `EncodingWriter+Leaves.swift` writes the values that are one JSON token each, such as strings and numbers. `writeLeaf` compares the type
// of a value with each type that it can write, because casting the value would cost more and most of the comparisons fail.
extension EncodingWriter {
  /// Writes a value of a type that has a JSON form of its own, such as a string, a number or a date.
  ///
  /// - Returns: True if the value was written, and `false` if `writeLeaf` does not know the type of the value.
  /// - Throws: `EncodingError` for a number that is not finite.
  @inline(__always) func writeLeaf<Value: Encodable>(_ value: Value, _ step: @autoclosure () -> Step) throws -> Bool {
    // `unsafeBitCast` is safe, because the comparison has shown that the source and target types are equal, and it avoids the cost of a
    // cast.
    if Value.self == String.self {
      bytes.append(quoting: unsafeBitCast(value, to: String.self))
    } else if Value.self == Double.self {
      try write(unsafeBitCast(value, to: Double.self), step())
    } else if Value.self == Int.self {
      write(unsafeBitCast(value, to: Int.self))
    } else if Value.self == Bool.self {
      write(unsafeBitCast(value, to: Bool.self))
    } else if Value.self == UUID.self {
      write(unsafeBitCast(value, to: UUID.self))
    } else if Value.self == Date.self {
      try write(unsafeBitCast(value, to: Date.self).timeIntervalSinceReferenceDate, step())
    } else if Value.self == Data.self {
      bytes.append(quoting: unsafeBitCast(value, to: Data.self).base64EncodedString())
    } else if Value.self == URL.self {
      bytes.append(quoting: unsafeBitCast(value, to: URL.self).absoluteString)
    } else if Value.self == Decimal.self {
      try write(unsafeBitCast(value, to: Decimal.self), step())
    } else {
      return false
    }
    return true
  }

  func writeNull() { bytes.append("null") }

  @inline(__always) func write(_ value: Bool) {
    if value { bytes.append("true") } else { bytes.append("false") }
  }

  @inline(__always) func write(_ value: some FixedWidthInteger) {
    // The conversion to `UInt64` loses no digit, because `write(wide:)` writes the integers that are wider than 64 bits.
    bytes.append(UInt64(truncatingIfNeeded: value.magnitude), isNegative: value < 0)
  }

  /// Writes an integer, whose type may be wider than 64 bits.
  func write(wide value: some BinaryInteger) {
    let text = String(value)
    // Some number types cannot decode a number of more than 25 characters. If `hasUnusualNumber` is set, `RecordCoder` decodes the record
    // once before it is saved.
    if text.utf8.count > JSONSyntax.usualNumberLength { tally.hasUnusualNumber = true }
    bytes.append(plain: text)
  }

  @inline(__always) func write(_ value: Double, _ step: @autoclosure () -> Step) throws {
    // From 2^53 on, the text of a `Double` may differ from the text of the equal integer, for example by an exponent. The integer zero has
    // no sign, so negative zero is written as a fraction.
    if let whole = Int64(exactly: value), whole.magnitude < 1 << 53, whole != 0 || value.sign == .plus {
      write(whole)
    } else {
      try write(fraction: value, step())
    }
  }

  func write<Number: BinaryFloatingPoint & LosslessStringConvertible & Encodable>(
    fraction value: Number, _ step: @autoclosure () -> Step
  ) throws {
    // RFC 8259 has no infinity and no NaN, and a record with such a number would make the store's whole JSON file invalid.
    guard value.isFinite else {
      throw EncodingError.invalidValue(
        value, .init(codingPath: path(step()), debugDescription: "expected a number that JSON can hold, found \(value)"))
    }
    var text = value.description
    // `1.0` is written as `1`, because Foundation's encoder writes `1`, and Larder's encoder must give the same bytes.
    if text.utf8.last == UInt8(ascii: "0"), text.hasSuffix(".0") { text.removeLast(2) }
    // A number with an exponent of three digits is beyond the range of some number types. If `hasUnusualNumber` is set, `RecordCoder`
    // decodes the record once before it is saved.
    if value.magnitude >= 1e100 || value.magnitude < 1e-99 { if value != 0 { tally.hasUnusualNumber = true } }
    bytes.append(plain: text)
  }

  func write(_ value: Decimal, _ step: @autoclosure () -> Step) throws {
    // A `Decimal` has no infinity, so NaN is its only value that JSON cannot hold.
    guard !value.isNaN else {
      throw EncodingError.invalidValue(
        value, .init(codingPath: path(step()), debugDescription: "expected a number that JSON can hold, found NaN"))
    }
    let text = value.description
    // `Decimal` prints no exponent, so a very large or small `Decimal` has many digits, which some number types cannot decode.
    if text.utf8.count > JSONSyntax.usualNumberLength { tally.hasUnusualNumber = true }
    bytes.append(plain: text)
  }

  /// Writes the upper-case text of a UUID, which equals its `uuidString`.
  func write(_ id: UUID) {
    bytes.append(UInt8(ascii: "\""))
    UUIDNumber(id).withText { bytes.append($0) }
    bytes.append(UInt8(ascii: "\""))
  }
}
