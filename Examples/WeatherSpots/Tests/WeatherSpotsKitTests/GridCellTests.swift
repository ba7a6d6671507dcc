import Testing

@testable import WeatherSpotsKit

@Suite struct GridCellTests {
  private func cell(_ latitude: Double, _ longitude: Double) throws -> GridCell {
    GridCell(try #require(Coordinate(latitude: latitude, longitude: longitude)))
  }

  @Test func cellsAreRoundedDownAndNotTowardZero() throws {
    #expect(try cell(-0.004, 0.5) != cell(0.004, 0.5))
    #expect(try cell(10.5, -0.004) != cell(10.5, 0.004))
    #expect(try cell(48.391, -4.486) == cell(48.399, -4.486))
    #expect(try cell(48.39, 2).row == 13_839)
  }

  @Test func theDateLineIsOneMeridian() throws {
    #expect(try cell(-13.8, 180) == cell(-13.8, -180))
    #expect(try cell(-13.8, 179.9999) != cell(-13.8, -179.9999))
  }

  @Test func thePolesAreOneCellEach() throws {
    #expect(try cell(90, 0) == cell(90, 137))
    #expect(try cell(-90, -180) == cell(-90, 12))
    #expect(try cell(90, 0).row == 17_999)
  }

  @Test(arguments: [-89.5, -60.2, -0.003, 0.0, 48.39, 60.1, 78.2, 89.98])
  func aCellIsAboutAKilometerHighAndWide(_ latitude: Double) throws {
    let here = try #require(Coordinate(latitude: latitude, longitude: 15.2))
    let center = GridCell(here).center
    let middle = try #require(Coordinate(latitude: center.latitude, longitude: center.longitude))
    #expect(here.kilometers(to: middle) < 0.9)
    #expect(GridCell(middle) == GridCell(here))
  }
}
