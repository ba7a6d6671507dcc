import Foundation
import LarderTesting

@testable import Larder

/// Random JSON text, with what is unusual and allowed: names in any order and twice, escapes, numbers in every form.
///
/// Left out are integers that Foundation reads inexactly; see `DirectDecoderTests`.
enum RandomText {
  private static let fragments = [
    "null", "true", "false", "0", "-0", "1", "-1", "1.0", "1.5", "1e3", "1E+2", "10e-1", "12e-1", "1e400", "0e400", "0.0", "-0.0",
    "9007199254740993", "18446744073709551615", "18446744073709551616", "-9223372036854775808", "9223372036854775807",
    "9223372036854775808", "340282366920938463463374607431768211455", "1.00e2", "100.00", "0.1e1", "1e18", "1e19", "127.0", "128", "255",
    "3.4e38", "3.5e38", "1e-46", "\"\"", "\"a\"", "\"\\u00e9\"", "\"\\ud83d\\ude00\"", "\"1\"", "\"AAECAw==\"", "\"AAEC\"",
    "\"https://a.b/c\"", "\"E621E1F8-C36C-495A-93FC-0C247A3E6E5F\"", "\"e621e1f8-c36c-495a-93fc-0c247a3e6e5f\"",
    "\"\\/\\b\\f\\n\\r\\t\\\"\\\\\"", "[]", "{}", "{\"a\":1}", "{\"b\":\"x\",\"super\":{\"a\":5}}", "[1,2,3]", "[\"a\"]",
    "{\"1\":\"x\",\"-2\":\"y\"}", "{\"a\":1,\"a\":2}", "{\"b\":1,\"a\":2,\"b\":3}", "{\"é\":1,\"e\u{301}\":2}", "{\"\\u0061\":7}",
    "[null,1,null]", "\"red\"", "0.1234567890123456789012345678901234567890", "123456789012345678901234567890.5",
  ]

  static func value(_ random: inout SeededGenerator, depth: Int) -> String {
    switch Int.random(in: 0..<(depth > 0 ? 8 : 3), using: &random) {
    case 0, 1, 2: return fragments.randomElement(using: &random) ?? "null"
    case 3, 4, 5:
      let comma = Int.random(in: 0..<5, using: &random) == 0 ? " ,\n" : ","
      return "{" + (0..<Int.random(in: 0..<7, using: &random)).map { _ in member(&random, depth - 1) }.joined(separator: comma) + "}"
    default:
      return "[" + (0..<Int.random(in: 0..<5, using: &random)).map { _ in value(&random, depth: depth - 1) }.joined(separator: ",") + "]"
    }
  }

  private static func member(_ random: inout SeededGenerator, _ depth: Int) -> String {
    let object: JSONObject = [randomNames.randomElement(using: &random) ?? "": .null]
    let name = String(decoding: object.json, as: UTF8.self).dropFirst().dropLast(":null}".count)
    return "\(name):\(Int.random(in: 0..<6, using: &random) == 0 ? " " : "")\(value(&random, depth: depth))"
  }

  /// Returns the bytes of a text with one to three of them changed, taken out or put in.
  static func damaged(_ text: String, _ random: inout SeededGenerator) -> [UInt8] {
    var bytes = Array(text.utf8)
    for _ in 0..<Int.random(in: 1...3, using: &random) where !bytes.isEmpty {
      let place = Int.random(in: 0..<bytes.count, using: &random)
      switch Int.random(in: 0..<3, using: &random) {
      case 0: bytes[place] = UInt8.random(in: .min ... .max, using: &random)
      case 1: bytes.remove(at: place)
      default: bytes.insert(Array("{}[],:\"\\0.eE-+ \n\u{1}tfn".utf8).randomElement(using: &random) ?? 0, at: place)
      }
    }
    return bytes
  }
}
