import Foundation
import Larder

enum JSONSmoke {
  static func run(_ directory: URL) async throws {
    var object: JSONObject = ["a": 1, "b": ["c": true], "d": .null]
    try expect(object.count == 3 && object.names.sorted() == ["a", "b", "d"] && JSONObject().count == 0)
    object.rename("a", to: "e")
    try expect(object["e"] == JSONValue(1) && object["a"] as JSONValue? == nil)
    let number: Double? = object["e"]
    try expect(number == 1)
    object["e"] = 2.5 as Double?
    try expect(object["b", "c"]?.boolValue == true)
    object["b", "c"] = "text"
    try expect(object["b", "c"]?.stringValue == "text")
    object["d"] = JSONValue.null
    try expect(object["d"]?.isNull == true)

    var array: JSONValue = [1, 2.5, "three", true, .null]
    try expect(array.arrayValue?.count == 5 && array[0]?.intValue == 1 && array[1]?.doubleValue == 2.5)
    array[0] = JSONValue("one")
    array.arrayValue?.append(JSONValue(true))
    try expect(array[0] == "one" && array.arrayValue?.count == 6)
    var value = JSONValue.object(object)
    value["f"] = JSONValue(1.5)
    value.objectValue?["g"] = JSONValue.array([.bool(false), .string("s")])
    try expect(value["f"]?.numberValue?.doubleValue == 1.5 && value.objectValue?.count == 5)

    let huge = JSONNumber(text: "12345678901234567890.5")
    try expect(huge?.text == "12345678901234567890.5" && huge?.description == huge?.text && JSONNumber(text: "1x") == nil)
    try expect(JSONNumber(7).exactly(Int8.self) == 7 && JSONNumber(700).exactly(Int8.self) == nil && JSONNumber(Double.nan) == nil)
    try expect(JSONValue.number(JSONNumber(7)).intValue == 7)
    let read = try JSONValue(json: Data(#"{"b":1.50,"a":[]}"#.utf8))
    try expect(read.json == Data(#"{"a":[],"b":1.50}"#.utf8))
    try expect(object.count == 3)
  }
}
