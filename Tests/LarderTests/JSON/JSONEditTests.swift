import Foundation
import LarderTesting
import TestSupport
import Testing

@testable import Larder

@Suite("Declared edits of a record", .timeLimit(.minutes(15))) struct JSONEditTests {
  private func edited(_ json: String, _ edits: JSONEdit...) throws -> String {
    String(decoding: try JSONEditor(edits).edit(Data(json.utf8)), as: UTF8.self)
  }

  @Test func membersAreRenamedSetRemovedAndMoved() throws {
    let json = #"{"draft":[1,{"a":2}],"id":7,"name":"Pier","town":"Kamakura","zip":"248"}"#
    #expect(try edited(json, .rename("town", to: "city")) == #"{"city":"Kamakura","draft":[1,{"a":2}],"id":7,"name":"Pier","zip":"248"}"#)
    #expect(try edited(json, .set("unit", "m")) == #"{"draft":[1,{"a":2}],"id":7,"name":"Pier","town":"Kamakura","unit":"m","zip":"248"}"#)
    #expect(try edited(json, .set("name", .null)) == #"{"draft":[1,{"a":2}],"id":7,"name":null,"town":"Kamakura","zip":"248"}"#)
    #expect(try edited(json, .remove("draft"), .remove("none")) == #"{"id":7,"name":"Pier","town":"Kamakura","zip":"248"}"#)
    #expect(
      try edited(json, .move("zip", to: ["address", "zip"]), .move("town", to: ["address", "town"]), .remove("draft"))
        == #"{"address":{"town":"Kamakura","zip":"248"},"id":7,"name":"Pier"}"#)
    #expect(try edited(json) == json)
    // In order: the second edit finds the result of the first.
    #expect(try edited(#"{"a":1}"#, .rename("a", to: "b"), .rename("b", to: "c"), .set("a", 2)) == #"{"a":2,"c":1}"#)
  }

  @Test func nestedMembersAreReachedByTheirPath() throws {
    let json = #"{"a":{"b":{"c":[1],"d":"x"},"e":{}},"f":true}"#
    #expect(try edited(json, .remove(["a", "b", "c"])) == #"{"a":{"b":{"d":"x"},"e":{}},"f":true}"#)
    #expect(try edited(json, .set(["a", "e", "g"], 1)) == #"{"a":{"b":{"c":[1],"d":"x"},"e":{"g":1}},"f":true}"#)
    #expect(try edited(json, .rename(["a", "b"], to: "z")) == #"{"a":{"e":{},"z":{"c":[1],"d":"x"}},"f":true}"#)
    #expect(try edited(json, .move(["a", "b", "d"], to: "d")) == #"{"a":{"b":{"c":[1]},"e":{}},"d":"x","f":true}"#)
    #expect(try edited(json, .move("a", to: ["a", "a"])) == #"{"a":{"a":{"b":{"c":[1],"d":"x"},"e":{}}},"f":true}"#)
    // A value on the way that is no object gives way to one that is set, and is left alone by the others.
    #expect(try edited(json, .remove(["f", "x"]), .move(["f", "y"], to: "y")) == json)
    #expect(try edited(json, .set(["f", "x"], 1)) == #"{"a":{"b":{"c":[1],"d":"x"},"e":{}},"f":{"x":1}}"#)
    #expect(try edited(json, .remove(["a", "x", "y"]), .remove(JSONPath([])), .move("f", to: JSONPath([]))) == json)
  }

  @Test func numbersKeepEveryDigitAndTextItsBytes() throws {
    let json = #"{"a":123456789012345678901234567890.500,"b":"\u00e9\/é","c":1e400}"#
    #expect(try edited(json, .set("d", 1)) == #"{"a":123456789012345678901234567890.500,"b":"\u00e9\/é","c":1e400,"d":1}"#)
  }

  /// Texts that Larder does not write, such as one with white space or another order of names.
  @Test(arguments: [
    #" {"b":1,"a":{"d":1,"c":2}} "#, #"{"a":{"c":2,"d":1} ,"b":1}"#, #"{"a":{"c":2,"d":1}, "b":1}"#, #"{"a":{"c":2,"d":1},"b":1 }"#,
    #"{"a": {"d":1,"c":2} , "b":1}"#, "{\"a\":{\n\"c\":2,\"d\":1},\"b\":1}", #"{"\u0061":{"c":2,"d":1},"b":1}"#,
  ])
  func otherSpellingsAreEditedTheSame(_ json: String) throws {
    #expect(try edited(json, .remove(["a", "d"]), .set("é", "ü")) == #"{"a":{"c":2},"b":1,"é":"ü"}"#)
    #expect(try edited(json, .remove(["a", "d"]), .set("e", "ü")) == #"{"a":{"c":2},"b":1,"e":"ü"}"#)
  }

  @Test func noEditsLeaveEveryText() throws {
    for json in ["[1]", "7", " {\n} "] { #expect(try edited(json) == json) }
  }

  @Test(arguments: ["[1]", "7", #""a""#, #"{"a":1"#, "", #"{"a":1,"a":2}"#, "{\"a\":1}}"])
  func anotherTextThanAnObjectIsRefused(_ json: String) async {
    #expect(await code { _ = try JSONEditor([.set("b", 1)]).edit(Data(json.utf8)) } == .decodingFailed)
  }

  /// The same edits on the bytes and on the parsed object have the same result.
  @Test(arguments: Seeds.list(4, for: "editsOfBytesAreEditsOfTheObject"))
  func editsOfBytesAreEditsOfTheObject(_ seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<1_500 {
      let text = Data(RandomText.value(&random, depth: 4).utf8)
      let edits = (0..<Int.random(in: 0..<5, using: &random)).map { _ in Self.edit(&random) }
      guard case .object(var object)? = try? JSONValue(json: text) else {
        // A text that no step takes. The editor must end, too.
        _ = try? JSONEditor(edits).edit(text)
        continue
      }
      let canonical = object.json
      for edit in edits { object.apply(edit) }
      let editor = JSONEditor(edits)
      #expect(try JSONValue(json: editor.edit(text)) == .object(object), "\(edits) of \(String(decoding: text, as: UTF8.self))")
      #expect(try !editor.edit(text).contains(0x0A) || edits.isEmpty)
      #expect(try editor.edit(canonical) == object.json, "\(edits) of \(String(decoding: canonical, as: UTF8.self))")
    }
  }

  private static func edit(_ random: inout SeededGenerator) -> JSONEdit {
    // Mostly the short names, which meet each other in the random texts.
    let names = Bool.random(using: &random) ? ["a", "b", "super", "1"] : randomNames
    func path(_ random: inout SeededGenerator) -> JSONPath {
      JSONPath((0..<Int.random(in: 1..<4, using: &random)).map { _ in names.randomElement(using: &random) ?? "a" })
    }
    switch Int.random(in: 0..<4, using: &random) {
    case 0: return .set(path(&random), [1, "é", ["a": 1, "b": ["a": 2]], .null].randomElement(using: &random) ?? .null)
    case 1: return .remove(path(&random))
    case 2: return .rename(path(&random), to: names.randomElement(using: &random) ?? "a")
    default: return .move(path(&random), to: path(&random))
    }
  }
}
