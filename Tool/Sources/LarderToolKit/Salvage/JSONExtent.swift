/// Search for the end of a JSON object in bytes that were not checked yet.
enum JSONExtent {
  /// Returns the offset after the brace that closes the object at `start`.
  ///
  /// `nil` if no brace before `limit` closes it.
  static func end(of start: Int, in bytes: [UInt8], before limit: Int) -> Int? {
    var (depth, position, isInString) = (0, start, false)
    while position < limit {
      switch bytes[position] {
      // The byte after a backslash is skipped, because an escaped quotation mark does not end the string.
      case UInt8(ascii: "\\") where isInString: position += 1
      case UInt8(ascii: "\""): isInString.toggle()
      // Braces within a string are text, and must not change the depth.
      case UInt8(ascii: "{") where !isInString, UInt8(ascii: "[") where !isInString: depth += 1
      case UInt8(ascii: "}") where !isInString, UInt8(ascii: "]") where !isInString:
        depth -= 1
        if depth == 0 { return position + 1 }
      default: break
      }
      position += 1
    }
    return nil
  }
}
