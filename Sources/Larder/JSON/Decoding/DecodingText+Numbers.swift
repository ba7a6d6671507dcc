internal import Foundation

extension DecodingText {
  /// Returns the integer at an entry, or `nil` if the value is no number or does not fit the type.
  @inline(__always) func integer<Number: FixedWidthInteger>(_ type: Number.Type, at entry: Int) -> Number? {
    let length = Int(entries[entry].length)
    // An integer of at most 18 characters fits into 64 bits, so the loop needs no check for overflow. Longer integers are read by the
    // slower `longInteger`.
    guard entries[entry].kind == .number, entries[entry].isPlain, length <= 18 else { return longInteger(type, at: entry) }
    let start = Int(entries[entry].offset)
    var position = start
    let isNegative = bytes[start] == UInt8(ascii: "-")
    if isNegative { position += 1 }
    var value: Int64 = 0
    while position < start + length {
      value = value &* 10 &+ Int64(bytes[position] &- 0x30)
      position += 1
    }
    return Number(exactly: isNegative ? -value : value)
  }

  /// Returns an integer of many digits, or an integer that is written with a point or an exponent, such as `1.0` and `1e3`.
  ///
  /// An integer with a point or an exponent may have at most 64 bits, as with Foundation. A number with a fractional value gives `nil`.
  private func longInteger<Number: FixedWidthInteger>(_ type: Number.Type, at entry: Int) -> Number? {
    guard let number = number(at: entry) else { return nil }
    // An integer without point and exponent may have 128 bits, which `WrittenNumber` cannot hold, so the initializer of the integer type
    // parses the digits.
    if entries[entry].isPlain { return Number(String(decoding: number, as: UTF8.self)) }
    let written = WrittenNumber(number)
    return written.integer.flatMap { Number(exactly: written.isNegative ? -Int128($0) : Int128($0)) }
  }

  /// Returns the `Double` nearest to a number's text, or `nil` if the value is no number or is out of range.
  @inline(__always) func double(at entry: Int) -> Double? {
    guard let number = number(at: entry) else { return nil }
    // Most numbers have up to 15 digits, and `WrittenNumber` converts a number of up to 15 digits without the cost of a string.
    return WrittenNumber(number).double ?? floatingPoint(Double.self, number)
  }

  func float(at entry: Int) -> Float? { number(at: entry).flatMap { floatingPoint(Float.self, $0) } }

  private func floatingPoint<Number: BinaryFloatingPoint & LosslessStringConvertible>(
    _ type: Number.Type, _ number: UnsafeRawBufferPointer
  ) -> Number? {
    // A text such as `1e999` parses as infinity. The encoder could not write an infinity back, because JSON has no infinity.
    guard let value = Number(String(decoding: number, as: UTF8.self)), value.isFinite else { return nil }
    // A number that is too small for its type parses as zero. For a number that is too small, `floatingPoint` returns `nil` and not zero,
    // so that no value is lost silently.
    return value != 0 || WrittenNumber(number).isZero ? value : nil
  }

  func decimal(at entry: Int) -> Decimal? {
    number(at: entry).flatMap { Decimal(string: String(decoding: $0, as: UTF8.self)) }
  }
}

/// The parts of a number's JSON text: the sign, the digits without the point, and the power of ten that multiplies the digits.
private struct WrittenNumber {
  let digits: Slice<UnsafeRawBufferPointer>
  let isNegative: Bool
  /// The digits as an integer, which is correct for at most 19 digits and wraps around for more digits.
  private(set) var mantissa: UInt64 = 0
  private(set) var digitCount = 0
  private(set) var exponent = 0

  @inline(__always) init(_ number: UnsafeRawBufferPointer) {
    isNegative = number.first == UInt8(ascii: "-")
    digits = number[(isNegative ? 1 : 0)...]
    var isFraction = false
    var position = digits.startIndex
    while position < digits.endIndex {
      let byte = number[position]
      position += 1
      if byte &- 0x30 < 10 {
        if isFraction { exponent -= 1 }
        // Leading zeros do not count as digits, because they add nothing to the mantissa: `0.001` has one digit.
        if digitCount > 0 || byte != 0x30 { digitCount += 1 }
        mantissa = mantissa &* 10 &+ UInt64(byte &- 0x30)
      } else if byte == UInt8(ascii: ".") {
        isFraction = true
      } else {
        exponent += Self.exponent(number[position...])
        break
      }
    }
  }

  private static func exponent(_ text: Slice<UnsafeRawBufferPointer>) -> Int {
    var value = 0
    // The exponent is capped, because an exponent with very many digits would overflow `Int` and trap.
    for byte in text where byte &- 0x30 < 10 { value = min(value * 10 + Int(byte &- 0x30), 1 << 24) }
    return text.first == UInt8(ascii: "-") ? -value : value
  }

  var isZero: Bool { digitCount == 0 }

  /// The `Double` nearest to the number, or `nil` if one multiplication or division cannot give the correctly rounded result.
  ///
  /// The mantissa and the power of ten are both exact as `Double`, so the result is rounded only once (Clinger, "How to read floating point
  /// numbers accurately", 1990).
  var double: Double? {
    // A `Double` holds integers of 15 digits and powers of ten up to 10^22 exactly. With more than 15 digits or a larger power of ten, an
    // operand and the result could both be rounded.
    guard digitCount <= 15, -22...22 ~= exponent else { return nil }
    let value = exponent < 0 ? Double(mantissa) / Self.powers[-exponent] : Double(mantissa) * Self.powers[exponent]
    return isNegative ? -value : value
  }

  private static let powers: [Double] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
  ]

  /// The magnitude of the number, or `nil` if the number is no integer or its magnitude exceeds 64 bits.
  var integer: UInt64? {
    var value: UInt64 = 0
    var zeros = 0
    for byte in digits {
      if byte | 0x20 == UInt8(ascii: "e") { break }
      guard byte &- 0x30 < 10 else { continue }
      zeros += 1
      // Zeros are multiplied in only when a digit other than zero follows them. In `1.000` the three zeros at the end are not multiplied
      // in, and they cancel the exponent of -3.
      guard byte != 0x30 else { continue }
      guard let sum = Self.shifted(value, by: zeros, plus: UInt64(byte - 0x30)) else { return nil }
      (value, zeros) = (sum, 0)
    }
    if value == 0 { return 0 }
    return exponent + zeros >= 0 ? Self.shifted(value, by: exponent + zeros, plus: 0) : nil
  }

  /// Returns a value multiplied by a power of ten, with a digit added, or `nil` if the result exceeds 64 bits.
  private static func shifted(_ value: UInt64, by digits: Int, plus digit: UInt64) -> UInt64? {
    var value = value
    // Every value except zero overflows 64 bits within twenty multiplications by ten, and zero stays zero. The loop stops after twenty
    // steps, so that a hostile exponent cannot make the loop long.
    for _ in 0..<(value == 0 ? 0 : min(digits, 20)) {
      let (product, overflows) = value.multipliedReportingOverflow(by: 10)
      if overflows { return nil }
      value = product
    }
    let (sum, overflows) = value.addingReportingOverflow(digit)
    return overflows ? nil : sum
  }
}
