/// Functions on the strings of a JSON text that ``JSONScan`` has found to be well formed.
enum JSONString {
  /// Returns the text of a JSON string with its escapes resolved, given the bytes between the quotation marks.
  static func text(_ contents: UnsafeRawBufferPointer) -> String {
    // Most strings have no escape, and their bytes are converted in one step.
    guard contents.contains(UInt8(ascii: "\\")) else { return String(decoding: contents, as: UTF8.self) }
    // An escape is never shorter than the UTF-8 of its character, so the text needs no more bytes than the JSON string.
    return String(unsafeUninitializedCapacity: contents.count) { text in
      var (from, to) = (0, 0)
      while from < contents.count {
        guard contents[from] == UInt8(ascii: "\\") else {
          text[to] = contents[from]
          (from, to) = (from + 1, to + 1)
          continue
        }
        let mark = contents[from + 1]
        from += 2
        guard mark == UInt8(ascii: "u") else {
          text[to] = plainByte(of: mark)
          to += 1
          continue
        }
        var scalar = codeUnit(contents, &from)
        // `JSONScan` has checked that an escaped low surrogate follows each high surrogate, so reading the second escape stays within the
        // contents.
        if scalar & 0xFC00 == 0xD800 {
          from += 2
          scalar = 0x1_0000 + (scalar & 0x3FF) << 10 + codeUnit(contents, &from) & 0x3FF
        }
        to += write(scalar, to: text, at: to)
      }
      return to
    }
  }

  /// Returns the offset behind the closing quotation mark of the string whose opening mark is at `start`.
  static func end(in text: UnsafeRawBufferPointer, from start: Int) -> Int {
    var position = start + 1
    // The loop needs no check of bounds, because a string in a well-formed text has a closing quotation mark.
    while text[position] != UInt8(ascii: "\"") { position += text[position] == UInt8(ascii: "\\") ? 2 : 1 }
    return position + 1
  }

  private static func plainByte(of mark: UInt8) -> UInt8 {
    switch mark {
    case UInt8(ascii: "b"): 0x08
    case UInt8(ascii: "f"): 0x0C
    case UInt8(ascii: "n"): 0x0A
    case UInt8(ascii: "r"): 0x0D
    case UInt8(ascii: "t"): 0x09
    default: mark
    }
  }

  private static func codeUnit(_ contents: UnsafeRawBufferPointer, _ position: inout Int) -> UInt32 {
    var unit: UInt32 = 0
    // `JSONScan` has checked that the escape has four hexadecimal digits, so `?? 0` never replaces an invalid digit.
    for byte in contents[position..<(position + 4)] { unit = unit << 4 | UInt32(Hexadecimal.value(of: byte) ?? 0) }
    position += 4
    return unit
  }

  private static func write(_ scalar: UInt32, to text: UnsafeMutableBufferPointer<UInt8>, at position: Int) -> Int {
    let byte = { (shift: UInt32, mask: UInt32, mark: UInt32) in UInt8(truncatingIfNeeded: scalar >> shift & mask | mark) }
    switch scalar {
    case 0..<0x80:
      text[position] = byte(0, 0x7F, 0)
      return 1
    case 0x80..<0x800:
      text[position] = byte(6, 0x1F, 0xC0)
      text[position + 1] = byte(0, 0x3F, 0x80)
      return 2
    case 0x800..<0x1_0000:
      text[position] = byte(12, 0x0F, 0xE0)
      text[position + 1] = byte(6, 0x3F, 0x80)
      text[position + 2] = byte(0, 0x3F, 0x80)
      return 3
    default:
      text[position] = byte(18, 0x07, 0xF0)
      text[position + 1] = byte(12, 0x3F, 0x80)
      text[position + 2] = byte(6, 0x3F, 0x80)
      text[position + 3] = byte(0, 0x3F, 0x80)
      return 4
    }
  }
}
