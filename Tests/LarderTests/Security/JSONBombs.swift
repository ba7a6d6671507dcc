import Foundation

/// Texts that cost an attacker little and a careless reader everything.
///
/// The tests of the tool have a link to this file.
enum JSONBombs {
  private static let header =
    #"{"format":"larder","formatVersion":1,"store":"C0FFEE00-1234-4567-89AB-CDEF01234567","generation":1,"commit":1,"tombstonesSince":0"#

  /// The beginnings of main files that a bomb can stand behind.
  static let beginnings = [
    "", header + ",\"x\":",
    header + ",\"crc\":\"00000000\",\"records\":[\n{\"in\":\"a\",\"id\":\"a\",\"rev\":1,\"version\":1,\"crc\":\"00000000\",\"value\":",
  ]

  /// Returns the bombs with their names.
  /// - Parameters:
  ///   - size: The number of bytes, of digits and the like.
  ///   - depth: The number of brackets.
  static func all(size: Int, depth: Int = 500_000) -> [(String, Data)] {
    func data(_ head: String, _ piece: String, _ count: Int, _ tail: String) -> Data {
      var data = Data(head.utf8)
      let bytes = Data(piece.utf8)
      data.reserveCapacity(head.utf8.count + bytes.count * count + tail.utf8.count)
      for _ in 0..<count { data.append(bytes) }
      data.append(Data(tail.utf8))
      return data
    }
    return [
      ("arrays", data("{\"id\":1,\"list\":", "[", depth, "")),
      ("closed arrays", data(String(repeating: "[", count: depth / 2), "]", depth / 2, "")),
      ("objects", data("", "{\"a\":", depth / 2, "")), ("mixed", data("{\"id\":1,\"x\":", "[{\"a\":", depth / 2, "")),
      ("digits", data("{\"id\":1,\"number\":", "9", size, "}")), ("fraction", data("{\"id\":1,\"number\":0.", "0", size, "1}")),
      ("integer", data("{\"id\":1,\"integer\":", "9", size, "}")), ("exponent", data("{\"id\":1,\"number\":1e", "9", size, "}")),
      ("string", data("{\"id\":1,\"text\":\"", "x", size, "\"}")), ("escapes", data("{\"id\":1,\"text\":\"", "\\u0041", size / 6, "\"}")),
      ("open string", data("{\"id\":1,\"text\":\"", "\\\\", size / 2, "")), ("names", data("{\"id\":1", ",\"id\":1", size / 7, "}")),
      ("spaces", data("{\"id\":1", " ", size, "}")), ("commas", data("{\"id\":1,\"list\":[", ",", size, "]}")),
      ("elements", data("{\"id\":1,\"list\":[1", ",1", size / 20, "]}")), ("zeros", Data(count: size)),
      ("surrogates", data("{\"id\":1,\"text\":\"", "\\ud800", size / 6, "\"}")),
    ]
  }
}
