import Foundation
import Testing

@testable import WeatherSpotsKit

@Suite struct NumbersTests {
  @Test(arguments: [(-0.0, "0.0"), (-0.04, "0.0"), (-0.05001, "-0.1"), (21.45, "21.4"), (-12, "-12.0"), (1234567.89, "1234567.9")])
  func numbersHaveAPointAndNeverANegativeZero(_ number: Double, _ text: String) { #expect(number.text(decimals: 1) == text) }

  @Test func negativeZeroWithoutDecimalsIsZero() {
    #expect((-0.4).text(decimals: 0) == "0")
    #expect((-0.001).rounded(decimals: 2).sign == .plus)
  }

  @Test func distancesAreGreatCircles() throws {
    let paris = try #require(Coordinate(latitude: 48.8566, longitude: 2.3522))
    let tokyo = try #require(Coordinate(latitude: 35.6762, longitude: 139.6503))
    #expect(abs(paris.kilometers(to: tokyo) - 9712) < 5)
    let west = try #require(Coordinate(latitude: 0, longitude: 179.5))
    let east = try #require(Coordinate(latitude: 0, longitude: -179.5))
    #expect(abs(west.kilometers(to: east) - 111.19) < 0.1)
    #expect(paris.kilometers(to: paris) == 0)
  }

  @Test func directionsHaveSixteenNames() {
    #expect(
      [0, 11, 12, 90, 225, 348, 349, 360, -90].map { ForecastReport.compass($0) } == ["N", "N", "NNE", "E", "SW", "NNW", "N", "N", "W"])
  }

  /// The page has a test of the same eight, and of its arrows.
  @Test func everyTextSaysWhereWindWavesAndSwellComeFrom() throws {
    let text = WeatherText(style: CardStyle(isPlain: true), zone: .gmt)
    for (name, degrees) in zip(["N", "NE", "E", "SE", "S", "SW", "W", "NW"], stride(from: 0.0, to: 360, by: 45)) {
      var hour = WeatherHour(instant: try instant("2026-07-01T12:00:00Z"))
      (hour.windKilometersPerHour, hour.windDegrees) = (20, degrees)
      #expect(text.wind(hour)?.hasSuffix("from \(name)") == true)
      var sea = SeaHour(instant: hour.instant)
      (sea.waveMeters, sea.waveDegrees, sea.swellMeters, sea.swellDegrees) = (1, degrees, 2, degrees)
      #expect(text.parts(sea).map { $0.hasSuffix("from \(name)") } == [true, true])
    }
  }

  @Test func unknownWeatherCodesAreKept() {
    #expect(WeatherCode(rawValue: 61).description == "Rain: slight")
    #expect(WeatherCode(rawValue: 42).description == "Weather code 42")
  }

  @Test func agesAreWords() {
    #expect(
      [0, 59, 60, 7199, 7200, 172_799, 172_800, -1].map(ForecastReport.words(forAge:)) == [
        "just now", "just now", "1 min old", "119 min old", "2 h old", "47 h old", "2 days old", "from the future: was the clock set back?",
      ])
  }
}
