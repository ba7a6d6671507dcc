import Foundation
import Testing

@testable import WeatherSpotsKit

@Suite struct UnitTests {
  @Test(arguments: [
    (21.5, "21.5 °C", "71 °F"), (0, "0.0 °C", "32 °F"), (-40, "-40.0 °C", "-40 °F"), (-0.0, "0.0 °C", "32 °F"), (-0.04, "0.0 °C", "32 °F"),
    (-17.8, "-17.8 °C", "0 °F"),
  ])
  func temperaturesHaveOneDecimalInCelsiusAndNoneInFahrenheit(_ celsius: Double, _ metric: String, _ imperial: String) {
    let temperature = Measurement(value: celsius, unit: UnitTemperature.celsius)
    #expect(UnitSystem.metric.text(temperature, as: .temperature) == metric)
    #expect(UnitSystem.imperial.text(temperature, as: .temperature) == imperial)
  }

  @Test func everyQuantityHasItsUnits() {
    func both<Dimension>(_ value: Double, _ unit: Dimension, _ quantity: Quantity<Dimension>) -> [String] {
      UnitSystem.allCases.map { $0.text(Measurement(value: value, unit: unit), as: quantity) }
    }
    #expect(both(100, UnitSpeed.kilometersPerHour, .windSpeed) == ["100 km/h", "62 mph"])
    #expect(both(10, UnitSpeed.metersPerSecond, .windSpeed) == ["36 km/h", "22 mph"])
    #expect(both(1013.25, UnitPressure.hectopascals, .pressure) == ["1013 hPa", "29.92 inHg"])
    #expect(both(25.4, UnitLength.millimeters, .precipitation) == ["25.4 mm", "1.00 in"])
    #expect(both(2.6, UnitLength.meters, .waveHeight) == ["2.6 m", "8.5 ft"])
    #expect(both(5, UnitLength.kilometers, .distance) == ["5.0 km", "3.1 mi"])
  }

  @Test func conversionsAreRightWithinFoundationsTolerance() {
    let wind = Measurement(value: 10, unit: UnitSpeed.metersPerSecond)
    #expect(abs(UnitSystem.metric.value(wind, as: .windSpeed) / 36 - 1) < 1e-6)
    let temperature = Measurement(value: 21.5, unit: UnitTemperature.celsius)
    #expect(abs(UnitSystem.imperial.value(temperature, as: .temperature) - 70.7) < 1e-9)
  }

  @Test func aValueInItsOwnUnitIsNotTouched() {
    for value in (0..<1000).map({ Double($0) / 10 }) {
      let wind = Measurement(value: value, unit: UnitSpeed.kilometersPerHour)
      #expect(UnitSystem.metric.value(wind, as: .windSpeed) == value)
    }
    #expect(UnitSystem.metric.value(Measurement(value: -0.0, unit: UnitSpeed.kilometersPerHour), as: .windSpeed).sign == .plus)
  }

  @Test func storedNumbersAreOfferedAsMeasurementsAndMissingOnesStayMissing() throws {
    var hour = WeatherHour(instant: try instant("2026-11-21T12:00:00Z"))
    #expect(hour.temperature == nil && hour.apparentTemperature == nil && hour.precipitation == nil && hour.wind == nil)
    #expect(hour.gust == nil && hour.windDirection == nil)
    (hour.temperatureCelsius, hour.apparentCelsius, hour.precipitationMillimeters) = (1, 2, 3)
    (hour.windKilometersPerHour, hour.gustKilometersPerHour, hour.windDegrees) = (4, 5, 6)
    #expect(hour.temperature == Measurement(value: 1, unit: .celsius))
    #expect(hour.apparentTemperature == Measurement(value: 2, unit: .celsius))
    #expect(hour.precipitation == Measurement(value: 3, unit: .millimeters))
    #expect(hour.wind == Measurement(value: 4, unit: .kilometersPerHour))
    #expect(hour.gust == Measurement(value: 5, unit: .kilometersPerHour))
    #expect(hour.windDirection == Measurement(value: 6, unit: .degrees))
    var sea = SeaHour(instant: hour.instant)
    #expect(sea.waveHeight == nil && sea.wavePeriod == nil && sea.waveDirection == nil && sea.surfaceTemperature == nil)
    (sea.waveMeters, sea.wavePeriodSeconds, sea.waveDegrees, sea.surfaceCelsius) = (7, 8, 9, 10)
    #expect(sea.waveHeight == Measurement(value: 7, unit: .meters))
    #expect(sea.wavePeriod == Measurement(value: 8, unit: .seconds))
    #expect(sea.waveDirection == Measurement(value: 9, unit: .degrees))
    #expect(sea.surfaceTemperature == Measurement(value: 10, unit: .celsius))
  }
}
