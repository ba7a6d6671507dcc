import Foundation
import Testing

@testable import WeatherSpotsKit

@Suite struct GeohashTests {
  private func geohash(_ latitude: Double, _ longitude: Double, _ precision: Int = 5) throws -> Geohash {
    Geohash(try #require(Coordinate(latitude: latitude, longitude: longitude)), precision: precision)
  }

  private func geohash(_ text: String) throws -> Geohash { try #require(Geohash(text)) }

  @Test func everyVectorIsEncodedAndLiesInItsBox() throws {
    var count = 0
    for case .success(let record) in CSVReader(Array(try Fixture.text("geohash-vectors.csv").utf8)).dropFirst() {
      let fields = record.fields
      let latitude = try #require(Double(fields[1]))
      let longitude = try #require(Double(fields[2]))
      for (text, precision) in zip(fields[3...], [5, 6, 9]) {
        let hash = try geohash(latitude, longitude, precision)
        #expect(hash.description == text, "\(fields[0])")
        #expect(Geohash(text) == hash)
        #expect(hash.box.latitudes.contains(latitude), "\(fields[0])")
        #expect(hash.box.longitudes.contains(longitude == 180 ? -180 : longitude), "\(fields[0])")
      }
      count += 1
    }
    #expect(count == 107)
  }

  @Test(arguments: 1...12) func theMiddleOfACellIsInTheCell(_ precision: Int) throws {
    for (latitude, longitude) in [(48.39, -4.49), (-33.93, 18.42), (89.9999, 179.9999), (-90, -180), (0, 0), (-0.0001, -0.0001)] {
      let hash = try geohash(latitude, longitude, precision)
      #expect(hash.description.count == precision)
      #expect(try geohash(hash.center.latitude, hash.center.longitude, precision) == hash)
    }
  }

  @Test func theNeighborsOfAKnownCellAreKnown() throws {
    #expect(try geohash("ezs42").neighbors.map(\.description) == ["ezs48", "ezs49", "ezs43", "ezs41", "ezs40", "ezefp", "ezefr", "ezefx"])
  }

  @Test func neighborsTouchTheCell() throws {
    let cell = try geohash(48.39, -4.49, 6)
    for neighbor in cell.neighbors {
      #expect(neighbor.box.latitudes.overlaps(cell.box.latitudes) && neighbor.box.longitudes.overlaps(cell.box.longitudes))
      #expect(neighbor.neighbors.contains(cell))
    }
    #expect(Set(cell.neighbors).count == 8)
  }

  @Test func neighborsGoAroundTheGlobeAndNotOverThePoles() throws {
    let west = try geohash(-13.8, -179.999)
    #expect(west.neighbor(north: 0, east: -1) == (try geohash(-13.8, 179.999)))
    #expect(try geohash(-13.8, 179.999).neighbor(north: 0, east: 1) == west)
    #expect(try geohash(-13.8, 180) == geohash(-13.8, -180))
    #expect(west.neighbors.count == 8)
    for latitude in [90.0, -90] {
      let pole = try geohash(latitude, 12)
      #expect(pole.neighbors.count == 5)
      #expect(pole.neighbor(north: latitude > 0 ? 1 : -1, east: 0) == nil)
    }
  }

  @Test func nearPointsThatShareNothingAreNeighbors() throws {
    for (south, north) in [((-0.001, 10.0), (0.001, 10.0)), ((45, -0.001), (45, 0.001)), ((45, 179.999), (45, -179.999))] {
      let (one, other) = (try geohash(south.0, south.1), try geohash(north.0, north.1))
      #expect(one.description.first != other.description.first)
      #expect(one.neighbors.contains(other))
    }
  }

  @Test func whatIsNoGeohashIsNotRead() {
    for text in ["", "a", "ezs4i", "ezs 2", "0123456789bcd", "é"] { #expect(Geohash(text) == nil, "\(text)") }
    #expect(Geohash("EZS42")?.description == "ezs42")
  }

  @Test func aGeohashIsStoredAsItsText() throws {
    let hash = try geohash("u4pruy")
    #expect(String(decoding: try JSONEncoder().encode([hash]), as: UTF8.self) == "[\"u4pruy\"]")
    #expect(try JSONDecoder().decode([Geohash].self, from: Data("[\"u4pruy\"]".utf8)) == [hash])
    #expect(throws: DecodingError.self) { try JSONDecoder().decode([Geohash].self, from: Data("[\"aaa\"]".utf8)) }
  }
}
