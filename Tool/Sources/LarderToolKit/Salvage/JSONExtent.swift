/// The extent of a JSON object in bytes that are not checked yet.
enum JSONExtent {
  /// Returns the offset behind the brace that closes the object which begins at an offset; `nil` where none does.
  static func end(of start: Int, in bytes: [UInt8], before limit: Int) -> Int? {
    var (depth, position, isInString) = (0, start, false)
    while position < limit {
      switch bytes[position] {
      case UInt8(ascii: "\\") where isInString: position += 1
      case UInt8(ascii: "\""): isInString.toggle()
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
