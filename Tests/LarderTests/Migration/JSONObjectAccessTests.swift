import Testing

@testable import Larder

/// Writes of a migration step into JSON objects, and into nested ones.
struct JSONObjectAccessTests {
  @Test func valuesAreTakenAsTheyAre() {
    var object = JSONObject()
    let (latitude, count, name) = (35.25, 3, "Jogashima")
    object["latitude"] = latitude
    object["half"] = 0.5
    object["number"] = 3
    object["count"] = JSONValue(count)
    object["name"] = JSONValue(name)
    object["isOpen"] = true
    object["none"] = Double.nan
    object["gone"] = 1
    object["gone"] = nil
    #expect(object["latitude"] == .number(JSONNumber(text: "35.25") ?? JSONNumber(0)))
    let read: Double? = object["half"]
    #expect(read == 0.5 && object["number"]?.intValue == 3 && object["count"]?.intValue == 3 && object["name"] == "Jogashima")
    #expect(object["isOpen"] == true && object["none"] == .null && object["gone"] == JSONValue?.none)
  }

  @Test func nestedValuesAreReachedByTheirPath() {
    var object: JSONObject = ["place": ["latitude": 35.1, "tags": ["pier", "dawn"]], "name": "Jogashima"]
    #expect(object["place"]?["latitude"]?.doubleValue == 35.1 && object["place", "latitude"] == 35.1)
    #expect(object["place"]?["tags"]?[1] == "dawn" && object["place"]?["tags"]?[2] == nil && object["name", "first"] == nil)
    object["place"]?["latitude"] = 36
    object["place"]?["tags"]?[0] = "beach"
    object["place", "zone", "name"] = "UTC"
    object["missing"]?["a"] = 1
    object["missing", "a"] = nil
    #expect(object["place", "latitude"] == 36 && object["place"]?["tags"] == ["beach", "dawn"])
    #expect(object["place", "zone"] == ["name": "UTC"] && object["missing"] == JSONValue?.none)
    object["place", "zone", "name"] = nil
    #expect(object["place", "zone"] == [:])
  }
}
