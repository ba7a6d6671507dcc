import Foundation
import Testing

@testable import WeatherSpotsKit

@Suite struct MergeTests {
  private func forecast(_ hours: [WeatherHour]) throws -> DayForecast {
    let key = DayForecast.Key(try #require(Coordinate(latitude: 36.6, longitude: -121.9)), try localDay("2026-07-01"))
    return DayForecast(id: key, fetchedAt: .now, server: "test", isRecorded: false, hours: hours, sea: .noCoverage)
  }

  private func montereySea() throws -> [SeaHour] {
    let text = try Fixture.text("marine-monterey-24h-imperial-2026-07-01.json").replacing("\"ft\"", with: "\"m\"")
    return try SeaHour.hours(OpenMeteoResponse(TransportResponse(status: 200, body: Data(text.utf8))))
  }

  private func montereyWeather() throws -> [WeatherHour] {
    let text = try Fixture.text("forecast-monterey-24h-knots-2026-07-01.json").replacing("°F", with: "°C").replacing(
      "\"kn\"", with: "\"km/h\"")
    return try WeatherHour.hours(OpenMeteoResponse(TransportResponse(status: 200, body: Data(text.utf8))))
  }

  @Test func weatherAndSeaOfOneSpotMergeHourByHour() throws {
    var forecast = try forecast(montereyWeather())
    forecast.add(.success(try montereySea()))
    #expect(forecast.hours.count == 24)
    #expect(forecast.hours.allSatisfy { $0.temperatureCelsius != nil && $0.sea?.instant == $0.instant })
    #expect(forecast.hours.first?.sea?.waveMeters == 6.627)
    #expect(forecast.sea == .available)
  }

  @Test func aShorterSeaIsMergedByInstantAndNotByIndex() throws {
    var forecast = try forecast(montereyWeather())
    forecast.add(.success(try montereySea().suffix(6).reversed()))
    #expect(forecast.hours.prefix(18).allSatisfy { $0.sea == nil })
    #expect(forecast.hours.last?.sea?.waveMeters == 6.43)
  }

  @Test func noCoverageAndUnavailableAreToldApart() throws {
    var forecast = try forecast(montereyWeather())
    forecast.add(.success([]))
    #expect(forecast.sea == .noCoverage)
    forecast.add(.failure(.noCoverage))
    #expect(forecast.sea == .noCoverage)
    forecast.add(.failure(.serviceFailed(status: 500)))
    #expect(forecast.sea == .unavailable(reason: "the weather service failed (status 500)"))
  }
}
