import Foundation
import Larder
import Testing

@testable import WeatherSpotsKit

@Suite(.timeLimit(.minutes(1))) struct ForecastsTests {
  private static let weather = hourlyBody("2026-07-01", [("temperature_2m", "°C", "21.5"), ("weather_code", "wmo code", "61")])
  private static let sea = hourlyBody("2026-07-01", [("wave_height", "m", "1.2")])

  private let transport = ScriptedTransport(forecast: .body(weather), marine: .body(sea))
  private let noon: Date
  private let spot: Spot
  private let day: LocalDay

  init() throws {
    noon = try instant("2026-07-01T12:00:00Z")
    spot = try Spot(name: "Brest", latitude: 48.39, longitude: -4.49, timezone: "GMT")
    day = try localDay("2026-07-01")
  }

  private func forecasts() async throws -> Forecasts {
    let storage = try await SpotStore(backend: InMemoryBackend())
    return Forecasts(storage, client: OpenMeteoClient(servers: try server("http://test"), transport: transport))
  }

  @Test func aForecastIsFetchedOnceAndThenComesFromTheStoreForAnHour() async throws {
    let forecasts = try await forecasts()
    let first = try await forecasts.forecast(for: spot, on: day, at: noon)
    let second = try await forecasts.forecast(for: spot, on: day, at: noon + 3599)
    #expect(first.isFromNetwork && !second.isFromNetwork)
    #expect(!second.isStale)
    #expect(transport.requests.count == 2)  // weather and sea
    let third = try await forecasts.forecast(for: spot, on: day, at: noon + 3600)
    #expect(third.isFromNetwork)
  }

  @Test func metricUnitsADayEitherSideAndTheCellsCenterAreAskedFor() async throws {
    _ = try await forecasts().forecast(for: spot, on: day, at: noon)
    let queries = transport.requests.map { $0.query(percentEncoded: false) ?? "" }.sorted()
    let place = "latitude=48.39500&longitude=-4.48814"
    #expect(
      queries == [
        "\(place)&hourly=temperature_2m,apparent_temperature,precipitation,precipitation_probability,wind_speed_10m,wind_gusts_10m,"
          + "wind_direction_10m,weather_code&timezone=GMT&start_date=2026-06-30&end_date=2026-07-02&temperature_unit=celsius&wind_speed_unit=kmh"
          + "&precipitation_unit=mm",
        "\(place)&hourly=wave_height,wave_direction,wave_period,sea_surface_temperature&timezone=GMT&start_date=2026-06-30"
          + "&end_date=2026-07-02&length_unit=metric",
      ])
  }

  @Test func withoutANetworkTheLastKnownForecastIsShownAsStale() async throws {
    let forecasts = try await forecasts()
    _ = try await forecasts.forecast(for: spot, on: day, at: noon)
    transport.set(forecast: .down, marine: .down)
    let answer = try await forecasts.forecast(for: spot, on: day, at: noon + 7200)
    #expect(answer.isStale && !answer.isFromNetwork)
    #expect(answer.failure == .network(.unreachable(host: "test", code: NSURLErrorCannotConnectToHost)))
    let report = try #require(ForecastReport(answer, of: spot, at: noon + 7200))
    #expect(report.card.contains("STALE: the last known forecast, 2 h old"))
  }

  @Test func withoutANetworkAndWithNothingStoredTheReasonIsThrown() async throws {
    let forecasts = try await forecasts()
    transport.set(forecast: .down, marine: .body(Self.sea))
    await #expect(throws: OpenMeteoError.network(.unreachable(host: "test", code: NSURLErrorCannotConnectToHost))) {
      try await forecasts.forecast(for: spot, on: day, at: noon)
    }
  }

  @Test func aFailingSeaNeverSinksTheWeatherAndIsTriedAgainAfterFiveMinutes() async throws {
    let forecasts = try await forecasts()
    transport.set(forecast: .body(Self.weather), marine: .body("<html>", status: 502))
    let first = try await forecasts.forecast(for: spot, on: day, at: noon)
    #expect(first.forecast.sea == .unavailable(reason: "the weather service failed (status 502)"))
    #expect(first.forecast.hours.count == 24)
    _ = try await forecasts.forecast(for: spot, on: day, at: noon + 299)
    #expect(transport.requests.count == 2)
    transport.set(forecast: .body(Self.weather), marine: .body(Self.sea))
    let later = try await forecasts.forecast(for: spot, on: day, at: noon + 300)
    #expect(later.forecast.sea == .available)
  }

  @Test func aRetryForTheSeaThatFailsDoesNotMakeAFreshForecastStale() async throws {
    let forecasts = try await forecasts()
    transport.set(forecast: .body(Self.weather), marine: .down)
    _ = try await forecasts.forecast(for: spot, on: day, at: noon)
    transport.set(forecast: .down, marine: .down)
    let answer = try await forecasts.forecast(for: spot, on: day, at: noon + 600)
    #expect(!answer.isStale && answer.failure != nil)
  }

  @Test func aForecastFromTheFutureIsNotFreshForever() async throws {
    let forecasts = try await forecasts()
    _ = try await forecasts.forecast(for: spot, on: day, at: noon)
    let answer = try await forecasts.forecast(for: spot, on: day, at: noon - 86400)
    #expect(answer.isFromNetwork)
  }

  @Test func anotherDayIsAnotherForecast() async throws {
    let forecasts = try await forecasts()
    _ = try await forecasts.forecast(for: spot, on: day, at: noon)
    transport.set(forecast: .down, marine: .down)
    await #expect(throws: OpenMeteoError.self) { try await forecasts.forecast(for: spot, on: day.advanced(by: 1), at: noon) }
  }

  @Test func anAnswerWithoutTheDayHasNoReport() async throws {
    let answer = try await forecasts().forecast(for: spot, on: day.advanced(by: 3), at: noon)
    #expect(ForecastReport(answer, of: spot, at: noon) == nil)
  }

  @Test func atMostFiveHundredForecastsAreKept() async throws {
    let storage = try await SpotStore(backend: InMemoryBackend())
    let forecasts = Forecasts(
      storage, client: OpenMeteoClient(servers: try server("http://test"), transport: transport))
    for index in 0...Forecasts.capacity {
      _ = try await forecasts.forecast(for: spot, on: day.advanced(by: index), at: noon + Double(index))
    }
    #expect(try await storage.forecasts.count() == Forecasts.capacity / 2 + 1)
    #expect(try await storage.forecasts.find(by: .init(spot.coordinate, day)) == nil)
    #expect(try await storage.forecasts.find(by: .init(spot.coordinate, day.advanced(by: Forecasts.capacity))) != nil)
  }
}
