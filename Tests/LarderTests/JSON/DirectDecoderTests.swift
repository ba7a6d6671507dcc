import Foundation
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15))) struct DirectDecoderTests {
  private func decode<Value: Decodable>(_ text: String, as type: Value.Type) throws -> Value {
    try DirectDecoder().decode(type, from: Data(text.utf8))
  }

  /// Lists every text that Foundation reads differently: texts that no encoder writes.
  @Test func whatDiffersFromFoundationIsThis() throws {
    struct One: Decodable, Equatable { let a: Int }
    // Foundation looks only at what is asked for, and lets a comma stand before the end.
    for text in [#"{"a":1,}"#, #"{"a":1,"b":01}"#, #"{"a":1,"b":"\ud800"}"#, "{\"a\":1,\"b\":\"\t\"}", "[1,]", "\u{FEFF}{\"a\":1}"] {
      #expect(throws: DecodingError.self) { try decode(text, as: One.self) }
      if text.hasPrefix("{") { #expect(try JSONDecoder().decode(One.self, from: Data(text.utf8)) == One(a: 1)) }
    }
    // Foundation reads an integer by way of a `Double`, and cuts off what that cannot hold.
    for (text, cut) in [("1.0000000000000001", 1), ("18014398509481985.5", 18_014_398_509_481_985), ("1e-400", 0)] {
      #expect(throws: DecodingError.self) { try decode(text, as: Int.self) }
      #expect(try JSONDecoder().decode(Int.self, from: Data(text.utf8)) == cut)
    }
  }

  @Test func integersAreReadExactlyInEveryForm() throws {
    for (text, value) in [
      ("1.0", 1), ("-1.00", -1), ("1e3", 1_000), ("1.5e1", 15), ("120e-1", 12), ("1.05E+2", 105), ("0e99", 0), ("-0", 0), ("0.000", 0),
      ("9223372036854775807", .max), ("-9223372036854775808", .min), ("922337203685477580.7e1", .max), ("1e18", 1_000_000_000_000_000_000),
      ("-9223372036854775.808e3", .min), ("0.0012e4", 12),
    ] { #expect(try decode(text, as: Int.self) == value, "\(text)") }
    for text in ["9223372036854775808", "-9223372036854775809", "1e19", "0.5", "1e-1", "105e-1", "1e99999999999999999999"] {
      #expect(throws: DecodingError.self, "\(text)") { try decode(text, as: Int.self) }
    }
    #expect(try decode("255", as: UInt8.self) == 255)
    for text in ["256", "-1", "2.55e3"] { #expect(throws: DecodingError.self, "\(text)") { try decode(text, as: UInt8.self) } }
  }

  @Test func aDecoderMayOutliveTheCall() throws {
    struct Keeper: Decodable {
      let decoder: any Decoder
      init(from decoder: any Decoder) throws { self.decoder = decoder }
    }
    var data: Data? = Data(#"{"a":[1,"later"]}"#.utf8)
    let keeper = try DirectDecoder().decode(Keeper.self, from: data ?? Data())
    data = nil
    var list = try keeper.decoder.container(keyedBy: AnyKey.self).nestedUnkeyedContainer(forKey: AnyKey("a"))
    #expect(try list.decode(Int.self) == 1)
    #expect(try list.decode(String.self) == "later")
  }

  @Test func anObjectOfManyMembersIsReadInAnyOrder() throws {
    let count = 3_000
    let members = (0..<count).map { "\"k\($0)\":\($0)" }
    for text in [members.joined(separator: ","), members.sorted().joined(separator: ","), members.reversed().joined(separator: ",")] {
      let values = try decode("{\(text)}", as: [String: Int].self)
      #expect(values.count == count && values["k77"] == 77 && values["k2999"] == 2_999)
    }
  }

  @Test(arguments: [1, 40]) func namesThatAreEqualInAnotherSpellingAreFound(_ count: Int) throws {
    let members = (10..<10 + count).map { "\"A\($0)\":\($0)" } + ["\"K\":7"]
    struct Kelvin: Decodable {
      let value: Int
      init(from decoder: any Decoder) throws {
        value = try decoder.container(keyedBy: AnyKey.self).decode(Int.self, forKey: AnyKey("\u{212A}"))
      }
    }
    #expect(try decode("{\(members.joined(separator: ","))}", as: Kelvin.self).value == 7)
  }

  @Test func errorsNameThePathAndNoValue() {
    struct Inner: Decodable { let secret: Int }
    do {
      _ = try decode(#"{"a":[{"secret":1},{"secret":"hunter2"}]}"#, as: [String: [Inner]].self)
      Issue.record("expected an error")
    } catch DecodingError.typeMismatch(_, let context) {
      #expect(context.codingPath.map(\.stringValue) == ["a", "Index 1", "secret"])
      #expect(!context.debugDescription.contains("hunter2"))
    } catch {
      Issue.record(error)
    }
  }

  @Test func nestingIsLimited() {
    let text = String(repeating: "[", count: 100_000)
    #expect(throws: DecodingError.self) { try decode(text, as: [Int].self) }
    #expect(throws: DecodingError.self) { try decode(text + String(repeating: "]", count: 100_000), as: [Int].self) }
  }
}
