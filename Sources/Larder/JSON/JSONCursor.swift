/// A reading position in a JSON text.
///
/// The caller requests one token or value after the other. The cursor skips white space, and skips values that the caller does not need
/// without parsing them.
package struct JSONCursor {
  let bytes: UnsafeRawBufferPointer
  /// Offset of the next byte to read.
  package private(set) var position = 0

  package init(bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  package var isAtEnd: Bool {
    mutating get { peek() == nil }
  }

  /// Returns the next byte that is not white space, without consuming it.
  package mutating func peek() -> UInt8? {
    while position < bytes.count {
      let byte = bytes[position]
      if byte != 0x20, byte != 0x0A, byte != 0x0D, byte != 0x09 { return byte }
      position += 1
    }
    return nil
  }

  mutating func advance() { position += 1 }

  /// Skips white space, and moves the position behind a byte if that byte comes next.
  ///
  /// - Returns: True if the byte came next.
  package mutating func take(_ byte: UInt8) -> Bool {
    guard peek() == byte else { return false }
    position += 1
    return true
  }

  /// Returns the bytes of the next string with its escapes and without quotation marks, or `nil` if no complete string comes next.
  package mutating func takeString() -> Slice<UnsafeRawBufferPointer>? {
    guard take(UInt8(ascii: "\"")) else { return nil }
    let start = position
    while position < bytes.count {
      switch bytes[position] {
      case UInt8(ascii: "\""):
        position += 1
        return bytes[start..<position - 1]
      // An escaped quotation mark does not end the string. If the text ends with a backslash, the position moves beyond the end of the
      // text, and the loop ends.
      case UInt8(ascii: "\\"): position += 2
      default: position += 1
      }
    }
    return nil
  }

  /// Returns the integer that comes next, or `nil` if no integer comes next or it does not fit into 64 bits.
  ///
  /// After an integer was returned, the position is behind its last digit. The cursor does not read a fraction or an exponent behind the
  /// digits.
  package mutating func takeInteger() -> Int64? {
    guard let first = peek() else { return nil }
    let isNegative = first == UInt8(ascii: "-")
    if isNegative { position += 1 }
    let start = position
    var value: Int64 = 0
    while position < bytes.count, case let digit = bytes[position] &- 0x30, digit <= 9 {
      let (product, overflows) = value.multipliedReportingOverflow(by: 10)
      // Digits of a negative number are subtracted, because the magnitude of `Int64.min` does not fit into an `Int64`.
      let (sum, carries) = product.addingReportingOverflow(isNegative ? -Int64(digit) : Int64(digit))
      if overflows || carries { return nil }
      value = sum
      position += 1
    }
    return position > start ? value : nil
  }

  /// Moves the position forward by `count` bytes, if exactly one byte follows these bytes and that byte is a closing brace.
  ///
  /// - Returns: True if the position was moved.
  package mutating func skipToLastBracket(over count: Int64) -> Bool {
    guard count > 0, count == bytes.count - position - 1, bytes.last == UInt8(ascii: "}") else { return false }
    position += Int(count)
    return true
  }

  /// Moves the position behind the next value without parsing the value.
  ///
  /// - Returns: `false` if the text ends within the value, or brackets and separators show that no value comes next. Numbers and the names
  ///   of literals are not checked.
  package mutating func skipValue() -> Bool {
    var depth = 0
    while let byte = peek() {
      switch byte {
      case UInt8(ascii: "\""):
        if takeString() == nil { return false }
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        depth += 1
        position += 1
        continue
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth -= 1
        // A closing bracket without an opening bracket means that the text is not valid JSON.
        guard depth >= 0 else { return false }
        position += 1
      case UInt8(ascii: ","), UInt8(ascii: ":"):
        // A comma or colon in the place of a value means that the text is not valid JSON.
        guard depth > 0 else { return false }
        position += 1
        continue
      // `skipScalar()` consumes at least one byte, so the loop ends: the other cases handle all bytes at which `skipScalar()` stops.
      default: skipScalar()
      }
      // An array or object that is skipped ends with its closing bracket, at which `depth` is 0.
      if depth == 0 { return true }
    }
    return false
  }

  /// Skips a number, `true`, `false` or `null`, without checking its form.
  private mutating func skipScalar() {
    while position < bytes.count {
      switch bytes[position] {
      case UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: "]"), UInt8(ascii: ":"), 0x20, 0x0A, 0x0D, 0x09: return
      default: position += 1
      }
    }
  }
}
