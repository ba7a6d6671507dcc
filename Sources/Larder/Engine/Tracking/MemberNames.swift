/// Compares the member names of two JSON texts, without parsing their values.
///
/// Nearly every edit writes the same members in the same order. Comparing the member names takes a fraction of the time of parsing both
/// texts.
struct MemberNames {
  private var left: JSONCursor
  private var right: JSONCursor

  private init(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) {
    self.left = JSONCursor(bytes: left)
    self.right = JSONCursor(bytes: right)
  }

  /// Returns whether two JSON texts have the same member names in the same order, including those of nested objects.
  ///
  /// The result is also `false` for text that is not JSON, and for equal names that are written with different escapes. If the result is
  /// `false`, the caller parses both texts.
  static func areEqual(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
    var names = MemberNames(left, right)
    // Bytes after the value make a text invalid JSON. For such a text the result is `false`, and the parser reports the error.
    return names.compareValues() && names.left.isAtEnd && names.right.isAtEnd
  }

  private mutating func compareValues() -> Bool {
    // The member names of objects within arrays are not compared, because an edit replaces an array as a whole.
    guard left.peek() == UInt8(ascii: "{"), right.peek() == UInt8(ascii: "{") else { return left.skipValue() && right.skipValue() }
    left.advance()
    right.advance()
    // An empty object is handled before the loop, because the loop expects a member name.
    if left.take(UInt8(ascii: "}")) { return right.take(UInt8(ascii: "}")) }
    while true {
      // Member names are compared as they are written. Two spellings of one name, such as "a" and "\u0061", give `false`, which only costs
      // a parse.
      guard let name = left.takeString(), let other = right.takeString(), name.elementsEqual(other),
        left.take(UInt8(ascii: ":")), right.take(UInt8(ascii: ":")), compareValues()
      else { return false }
      let goesOn = left.take(UInt8(ascii: ","))
      guard right.take(UInt8(ascii: ",")) == goesOn else { return false }
      if !goesOn { return left.take(UInt8(ascii: "}")) && right.take(UInt8(ascii: "}")) }
    }
  }
}
