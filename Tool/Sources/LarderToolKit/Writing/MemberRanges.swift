internal import Foundation
internal import Larder

/// Ranges of the members of an object, or of the elements of an array, in the bytes of valid JSON.
///
/// A store keeps values as bytes under a checksum, so they are copied from these ranges instead of being written anew.
struct MemberRanges {
  private let bytes: [UInt8]
  private var position: Int

  /// Returns the range of each member's value, by the member's name.
  static func members(ofObject text: Data) -> [String: Range<Int>] {
    var ranges = MemberRanges([UInt8](text))
    var found: [String: Range<Int>] = [:]
    guard ranges.take(UInt8(ascii: "{")) else { return found }
    while let name = ranges.name() {
      found[name] = ranges.value()
      guard ranges.take(UInt8(ascii: ",")) else { break }
    }
    return found
  }

  /// Returns the range of each element.
  static func elements(ofArray text: [UInt8]) -> [Range<Int>] {
    var ranges = MemberRanges(text)
    var found: [Range<Int>] = []
    // An empty array has no element, and the loop below would return an empty range for it.
    guard ranges.take(UInt8(ascii: "[")), !ranges.take(UInt8(ascii: "]")) else { return found }
    repeat { found.append(ranges.value()) } while ranges.take(UInt8(ascii: ","))
    return found
  }

  private init(_ bytes: [UInt8]) {
    self.bytes = bytes
    // A byte order mark before the JSON is skipped.
    position = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
  }

  private mutating func skipSpace() {
    while position < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[position]) { position += 1 }
  }

  private mutating func take(_ byte: UInt8) -> Bool {
    skipSpace()
    guard position < bytes.count, bytes[position] == byte else { return false }
    position += 1
    return true
  }

  private mutating func name() -> String? {
    skipSpace()
    guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") else { return nil }
    let range = value()
    guard take(UInt8(ascii: ":")) else { return nil }
    // The name may have escapes, which the comparison with a plain text must not depend on.
    do { return try JSONDecoder().decode(String.self, from: Data(bytes[range])) } catch { return nil }
  }

  /// Skips a value, and returns its range.
  private mutating func value() -> Range<Int> {
    skipSpace()
    let start = position
    var (depth, isInString) = (0, false)
    while position < bytes.count {
      let byte = bytes[position]
      if isInString {
        // The byte after a backslash is skipped, because an escaped quotation mark does not end the string.
        if byte == UInt8(ascii: "\\") { position += 1 }
        if byte == UInt8(ascii: "\"") { isInString = false }
        position += 1
        if depth == 0, !isInString { break }
        continue
      }
      let closes = byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]")
      // A number or a word ends at the first byte that cannot belong to it, which is not consumed.
      if depth == 0, closes || byte == UInt8(ascii: ",") || byte <= 0x20 { break }
      if byte == UInt8(ascii: "\"") { isInString = true }
      if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") { depth += 1 }
      position += 1
      guard closes else { continue }
      depth -= 1
      if depth == 0 { break }
    }
    return start..<min(position, bytes.count)
  }
}
