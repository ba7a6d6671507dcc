/// The names of the members of two JSON texts, read side by side without their values.
///
/// Nearly every edit writes the members that were there, in the same order: that is seen here in a fraction of the time of reading both.
struct MemberNames {
  private var left: Cursor
  private var right: Cursor

  private init(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) {
    self.left = Cursor(bytes: left)
    self.right = Cursor(bytes: right)
  }

  /// Returns whether two JSON texts have the same members in the same order, through objects that both have.
  ///
  /// `false` also for what is no JSON, or names members in another way: whoever asks then reads both.
  static func areEqual(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
    var names = MemberNames(left, right)
    return names.compareValues() && names.left.isAtEnd && names.right.isAtEnd
  }

  private mutating func compareValues() -> Bool {
    guard left.peek() == UInt8(ascii: "{"), right.peek() == UInt8(ascii: "{") else { return left.skipValue() && right.skipValue() }
    left.advance()
    right.advance()
    if left.take(UInt8(ascii: "}")) { return right.take(UInt8(ascii: "}")) }
    while true {
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

    /// Returns the next byte that is no blank.
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
          guard depth >= 0 else { return false }
          position += 1
        case UInt8(ascii: ","), UInt8(ascii: ":"):
          guard depth > 0 else { return false }
          position += 1
          continue
        default: skipScalar()
        }
        if depth == 0 { return true }
      }
      return false
    }

    /// Skips a number, true, false or null.
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
