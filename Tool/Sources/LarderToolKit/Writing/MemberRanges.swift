internal import Foundation
internal import Larder

/// The places of the members of an object, or of the elements of an array, in a text that is known to be JSON.
///
/// What a store holds are bytes: a value must not be written anew on its way.
struct MemberRanges {
  private let bytes: [UInt8]
  private var position: Int

  /// Returns the range of each member's value, by name.
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
    guard ranges.take(UInt8(ascii: "[")), !ranges.take(UInt8(ascii: "]")) else { return found }
    repeat { found.append(ranges.value()) } while ranges.take(UInt8(ascii: ","))
    return found
  }

  private init(_ bytes: [UInt8]) {
    self.bytes = bytes
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
    do { return try JSONDecoder().decode(String.self, from: Data(bytes[range])) } catch { return nil }
  }

  /// Steps over a value.
  private mutating func value() -> Range<Int> {
    skipSpace()
    let start = position
    var (depth, isInString) = (0, false)
    while position < bytes.count {
      let byte = bytes[position]
      if isInString {
        if byte == UInt8(ascii: "\\") { position += 1 }
        if byte == UInt8(ascii: "\"") { isInString = false }
        position += 1
        if depth == 0, !isInString { break }
        continue
      }
      let closes = byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]")
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
