import Foundation
import Testing
import WeatherSpotsKit

/// The output that scripts read: a key is there whether or not it has a value.
@Suite struct EveryKeyTests {
  private struct Row: Encodable, Sendable {
    let name: String
    let elevation: Double?
    let population: Int?
  }

  @Test func aPropertyWithoutAValueIsWrittenAsNull() throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let text = String(decoding: try encoder.encode(EveryKey(Row(name: "Brest", elevation: nil, population: 3))), as: UTF8.self)
    #expect(text == #"{"elevation":null,"name":"Brest","population":3}"#)
  }

  @Test func aPlaceThatWasFoundHasTheseKeys() throws {
    let stored = #"{"name":"Brest","latitude":48.4,"longitude":-4.5,"timezone":"Europe/Paris","geonameID":3030300}"#
    let place = try JSONDecoder().decode(FoundPlace.self, from: Data(stored.utf8))
    let row = try #require(try JSONSerialization.jsonObject(with: JSONEncoder().encode(EveryKey(place))) as? [String: Any])
    let empty = ["country", "countryCode", "elevationMeters", "population", "region"]
    #expect(row.keys.sorted() == (empty + ["geonameID", "latitude", "longitude", "name", "timezone"]).sorted())
    #expect(row.keys.filter { row[$0] is NSNull }.sorted() == empty)
  }
}
