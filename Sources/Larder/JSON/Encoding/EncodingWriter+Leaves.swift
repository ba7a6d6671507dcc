internal import Foundation

// The values that are one token of JSON. The types are compared and not cast: most values are of other types.
extension EncodingWriter {
  /// Writes a value of one of the types that have a form of their own.
  /// - Returns: `false` for any other type; then nothing is written.
  /// - Throws: `EncodingError` for a number that is not finite.
  @inline(__always) func writeLeaf<Value: Encodable>(_ value: Value, _ step: @autoclosure () -> Step) throws -> Bool {
    // Where the types are the same, the bits are.
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
    bytes.append(UInt64(truncatingIfNeeded: value.magnitude), isNegative: value < 0)
  }

  /// Writes an integer that may not fit 64 bits.
  func write(wide value: some BinaryInteger) {
    let text = String(value)
    if text.utf8.count > JSONSyntax.usualNumberLength { tally.hasUnusualNumber = true }
    bytes.append(plain: text)
  }

  @inline(__always) func write(_ value: Double, _ step: @autoclosure () -> Step) throws {
    // From 2^53 on, the text has zeros or an exponent in other places; zero may be negative.
    if let whole = Int64(exactly: value), whole.magnitude < 1 << 53, whole != 0 || value.sign == .plus {
      write(whole)
    } else {
      try write(fraction: value, step())
    }
  }

  func write<Number: BinaryFloatingPoint & LosslessStringConvertible & Encodable>(
    fraction value: Number, _ step: @autoclosure () -> Step
  ) throws {
    guard value.isFinite else {
      throw EncodingError.invalidValue(
        value, .init(codingPath: path(step()), debugDescription: "expected a number that JSON can hold, found \(value)"))
    }
    var text = value.description
    if text.utf8.last == UInt8(ascii: "0"), text.hasSuffix(".0") { text.removeLast(2) }
    // Exponents of three digits.
    if value.magnitude >= 1e100 || value.magnitude < 1e-99 { if value != 0 { tally.hasUnusualNumber = true } }
    bytes.append(plain: text)
  }

  func write(_ value: Decimal, _ step: @autoclosure () -> Step) throws {
    guard !value.isNaN else {
      throw EncodingError.invalidValue(
        value, .init(codingPath: path(step()), debugDescription: "expected a number that JSON can hold, found NaN"))
    }
    let text = value.description
    // A decimal is written without an exponent.
    if text.utf8.count > JSONSyntax.usualNumberLength { tally.hasUnusualNumber = true }
    bytes.append(plain: text)
  }

  /// Writes the upper-case text of an id, as `uuidString` has it.
  func write(_ id: UUID) {
    bytes.append(UInt8(ascii: "\""))
    UUIDNumber(id).withText { bytes.append($0) }
    bytes.append(UInt8(ascii: "\""))
  }
}
