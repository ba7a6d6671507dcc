import Foundation
import Testing

@testable import WeatherSpotsKit

@Suite struct MergeTests {
  private let provenance = Provenance(provider: "test", server: "test", isRecorded: false)

  private func weather() throws -> HourlyForecast {
    let hours = try OpenMeteoResponse(metricBody("forecast-monterey-24h-knots-2026-07-01.json")).weatherHours()
    return HourlyForecast(hours: hours, provenance: provenance)
  }

  private func sea(_ hours: (([SeaHour]) -> [SeaHour]) = { $0 }) throws -> MarineForecast {
    let all = try OpenMeteoResponse(metricBody("marine-monterey-24h-imperial-2026-07-01.json")).seaHours()
    return MarineForecast(hours: hours(all), provenance: provenance)
  }

  @Test func weatherAndSeaOfOneSpotMergeHourByHour() throws {
    let hours = try weather().merged(with: sea())
    #expect(hours.count == 24)
    #expect(hours.allSatisfy { $0.temperatureCelsius != nil && $0.sea?.instant == $0.instant })
    #expect(hours.first?.sea?.waveMeters == 6.627)
    #expect(hours.first?.sea?.swellPeriodSeconds == 7.2)
  }

  @Test func aShorterSeaIsMergedByInstantAndNotByIndex() throws {
    let hours = try weather().merged(with: sea { $0.suffix(6).reversed() })
    #expect(hours.prefix(18).allSatisfy { $0.sea == nil })
    #expect(hours.last?.sea?.waveMeters == 6.43)
  }

  @Test func withoutASeaTheWeatherIsWhole() throws { #expect(try weather().merged(with: nil).count == 24) }
}
