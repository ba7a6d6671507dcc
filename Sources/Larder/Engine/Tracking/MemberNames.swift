/// A comparison of the member names in two JSON texts, which are read side by side without their values.
///
/// Nearly every edit writes the same members in the same order. This comparison shows that in a fraction of the time of parsing both texts.
struct MemberNames {
  private var left: Cursor
  private var right: Cursor

  private init(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) {
    self.left = Cursor(bytes: left)
    self.right = Cursor(bytes: right)
  }

  /// Returns whether two JSON texts have the same members in the same order, also within objects that both have.
  ///
  /// Returns `false` also for a text that is no JSON, and for names with different escapes. The caller then parses both texts.
  static func areEqual(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
    var names = MemberNames(left, right)
    // Bytes after a value are no JSON, and a parser must report them.
    return names.compareValues() && names.left.isAtEnd && names.right.isAtEnd
  }

  private mutating func compareValues() -> Bool {
    // Members within arrays are not compared, since an edit replaces an array whole.
    guard left.peek() == UInt8(ascii: "{"), right.peek() == UInt8(ascii: "{") else { return left.skipValue() && right.skipValue() }
    left.advance()
    right.advance()
    // An empty object has no name for the loop to read.
    if left.take(UInt8(ascii: "}")) { return right.take(UInt8(ascii: "}")) }
    while true {
      // Names are compared as they are written. Another escape of an equal name gives `false`, which costs only a parse.
      guard let name = left.takeString(), let other = right.takeString(), name.elementsEqual(other),
        left.take(UInt8(ascii: ":")), right.take(UInt8(ascii: ":")), compareValues()
      else { return false }
      let goesOn = left.take(UInt8(ascii: ","))
      guard right.take(UInt8(ascii: ",")) == goesOn else { return false }
      if !goesOn { return left.take(UInt8(ascii: "}")) && right.take(UInt8(ascii: "}")) }
    }
  }

  private struct Cursor {
    let bytes: UnsafeRawBufferPointer
    private var position = 0

    init(bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isAtEnd: Bool {
      mutating get { peek() == nil }
    }

    /// Returns the next byte that is not white space, without consuming it.
    mutating func peek() -> UInt8? {
      while position < bytes.count {
        let byte = bytes[position]
        if byte != 0x20, byte != 0x0A, byte != 0x0D, byte != 0x09 { return byte }
        position += 1
      }
      return nil
    }

    mutating func advance() { position += 1 }

    mutating func take(_ byte: UInt8) -> Bool {
      guard peek() == byte else { return false }
      position += 1
      return true
    }

    /// Returns a string as it is written, without its quotation marks.
    mutating func takeString() -> Slice<UnsafeRawBufferPointer>? {
      guard take(UInt8(ascii: "\"")) else { return nil }
      let start = position
      while position < bytes.count {
        switch bytes[position] {
        case UInt8(ascii: "\""):
          position += 1
          return bytes[start..<position - 1]
        // An escaped quotation mark does not end the string. A backslash at the end leads past the text, and the loop ends.
        case UInt8(ascii: "\\"): position += 2
        default: position += 1
        }
      }
      return nil
    }

    mutating func skipValue() -> Bool {
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
          // A bracket that closes nothing: the text is no JSON.
          guard depth >= 0 else { return false }
          position += 1
        case UInt8(ascii: ","), UInt8(ascii: ":"):
          // A separator in the place of a value: the text is no JSON.
          guard depth > 0 else { return false }
          position += 1
          continue
        // No scalar begins with a separator or white space here, so each turn of the loop advances.
        default: skipScalar()
        }
        // A value within brackets does not end the value that is skipped.
        if depth == 0 { return true }
      }
      return false
    }

    /// Skips a number, true, false or null, without checking its form.
    private mutating func skipScalar() {
      while position < bytes.count {
        switch bytes[position] {
        case UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: "]"), UInt8(ascii: ":"), 0x20, 0x0A, 0x0D, 0x09: return
        default: position += 1
        }
      }
    }
  }
}
