import Foundation
import Testing

@testable import WeatherSpotsKit

@Suite(.timeLimit(.minutes(15))) struct OpenMeteoProviderTests {
  private static let weather = hourlyBody("2026-07-01", [("temperature_2m", "°C", "21.5"), ("weather_code", "wmo code", "61")])
  private static let sea = hourlyBody("2026-07-01", [("wave_height", "m", "1.2")])
  private let transport = ScriptedTransport(forecast: .body(weather), marine: .body(sea))
  private let brest: ForecastPlace
  private let cadiz: ForecastPlace
  private let day: LocalDay
  private let provider: OpenMeteoProvider

  init() throws {
    brest = ForecastPlace(provider: "open-meteo", try #require(Coordinate(latitude: 48.39, longitude: -4.49)), timezone: "Europe/Paris")
    cadiz = ForecastPlace(provider: "open-meteo", try #require(Coordinate(latitude: 36.53, longitude: -6.29)), timezone: "Europe/Madrid")
    day = try localDay("2026-07-01")
    let now = try instant("2026-07-01T12:34:56Z")
    provider = OpenMeteoProvider(servers: try server("http://test"), transport: transport, now: { now })
  }

  private func request(_ place: ForecastPlace, _ datasets: Set<WeatherDataset>, days: Int = 7) -> ProviderRequest {
    ProviderRequest(place, from: day, days: days, datasets)
  }

  @Test func metricUnitsADayEitherSideAndTheCellsCenterAreAskedFor() async throws {
    _ = await provider.fetch(request(brest, [.hourly, .marine]))
    let place = "latitude=48.39500&longitude=-4.48814"
    #expect(
      transport.requests.map { $0.query(percentEncoded: false) ?? "" }.sorted() == [
        "\(place)&hourly=temperature_2m,apparent_temperature,relative_humidity_2m,precipitation,weather_code,cloud_cover,pressure_msl,"
          + "wind_speed_10m,wind_gusts_10m,wind_direction_10m,precipitation_probability,uv_index&timezone=GMT&start_date=2026-06-30"
          + "&end_date=2026-07-08&temperature_unit=celsius&wind_speed_unit=kmh&precipitation_unit=mm",
        "\(place)&hourly=wave_height,wave_direction,wave_period,swell_wave_height,swell_wave_direction,swell_wave_period,"
          + "sea_surface_temperature&timezone=GMT&start_date=2026-06-30&end_date=2026-07-08&length_unit=metric",
      ])
  }

  @Test func onlyWhatIsAskedForIsInTheRequest() async throws {
    let answer = await provider.fetch(request(brest, [.current]))
    let query = try #require(transport.requests.first?.query(percentEncoded: false))
    #expect(transport.requests.count == 1)
    #expect(query.contains("current=") && !query.contains("hourly=") && !query.contains("daily=") && !query.contains("start_date"))
    #expect(answer.hourly == nil && answer.daily == nil && answer.marine == nil)
  }

  @Test func daysAreAskedForInTheZoneOfThePlace() async throws {
    _ = await provider.fetch(request(brest, [.daily, .hourly]))
    #expect(transport.requests.first?.query(percentEncoded: false)?.contains("timezone=Europe/Paris&") == true)
  }

  @Test func noMoreThanSixteenDaysFromTodayAreAskedFor() async throws {
    _ = await provider.fetch(request(brest, [.hourly], days: 16))
    #expect(transport.requests.first?.query()?.contains("end_date=2026-07-16&") == true)
  }

  @Test func severalPlacesAreOneCallForEachService() async throws {
    let other = Self.weather.replacing("21.5", with: "30.5")
    transport.set(forecast: .body("[\(Self.weather),\(other)]"), marine: .body("[\(Self.sea),\(Self.sea)]"))
    let answers = await provider.fetch([request(brest, [.hourly, .marine]), request(cadiz, [.hourly, .marine])])
    #expect(transport.requests.count == 2)
    #expect(transport.requests.first?.query()?.hasPrefix("latitude=48.39500,36.53500&longitude=-4.48814,-6.2") == true)
    let temperatures = answers.map { $0.hourly?.data?.hours.first?.temperatureCelsius }
    #expect(temperatures == [21.5, 30.5])
    #expect(answers.allSatisfy { $0.marine?.data?.hours.count == 24 })
  }

  @Test func anAnswerForAnotherNumberOfPlacesIsRefused() async throws {
    transport.set(forecast: .body("[\(Self.weather),\(Self.weather)]"), marine: .down)
    let answer = await provider.fetch(request(brest, [.hourly]))
    #expect(answer.hourly?.failure == .mismatched("2 places instead of 1"))
  }

  @Test func aFailingSeaNeverSinksTheWeather() async throws {
    transport.set(forecast: .body(Self.weather), marine: .body("<html>", status: 502))
    let answer = await provider.fetch(request(brest, [.hourly, .marine]))
    #expect(answer.hourly?.data?.hours.count == 24)
    #expect(answer.marine?.failure == .serviceFailed(status: 502))
  }

  @Test func aWrongUnitOfOneKindDoesNotSpoilTheOthers() async throws {
    let body =
      Self.weather.dropLast()
      + #","current_units":{"time":"iso8601","temperature_2m":"°F"},"current":{"time":"2026-07-01T12:30","temperature_2m":70}}"#
    transport.set(forecast: .body(String(body)), marine: .down)
    let answer = await provider.fetch(request(brest, [.hourly, .current]))
    #expect(answer.hourly?.data != nil)
    #expect(answer.current?.failure == .unexpectedUnit(column: "temperature_2m", unit: "°F"))
  }

  @Test func anEmptySeaIsNoCoverageForADay() async throws {
    transport.set(forecast: .down, marine: .body(try Fixture.text("marine-inland-amsterdam-null.json")))
    let marine = await provider.fetch(request(brest, [.marine])).marine
    let isForADay = if case .noCoverage(let lifetime)? = marine { lifetime == .seconds(86400) } else { false }
    #expect(isForADay)
  }

  @Test func aLimitSaysHowLongToWait() async throws {
    for (name, wait) in [("minutely", 4), ("hourly", 25 * 60 + 4), ("daily", 11 * 3600 + 25 * 60 + 4)] {
      transport.set(forecast: .body(try Fixture.text("error-429-\(name)-limit.json"), status: 429), marine: .down)
      #expect(await provider.fetch(request(brest, [.hourly])).hourly?.failure?.retryAfter == .seconds(wait))
    }
  }

  @Test(arguments: [429, 500, 503]) func aServiceThatAsksToWaitSaysHowLong(_ status: Int) async throws {
    for body in [#"{"error":true,"reason":"The service is overloaded"}"#, "<html>"] {
      transport.set(forecast: .body(body, status: status, retryAfter: .seconds(90)), marine: .down)
      #expect(await provider.fetch(request(brest, [.hourly])).hourly?.failure?.retryAfter == .seconds(90))
    }
  }

  @Test func aRequestWeighsByPlacesVariablesAndDays() {
    #expect(provider.weight(of: request(brest, [.current])) == 1)
    #expect(abs(provider.weight(of: request(brest, [.hourly])) - 1.2) < 1e-9)
    #expect(abs(provider.weight(of: request(brest, [.hourly, .current, .daily, .marine])) - 4.1) < 1e-9)
    #expect(abs(provider.weight(of: request(brest, [.hourly], days: 16)) - 1.2 * 17 / 14) < 1e-9)
  }
}

extension ProviderAnswer.Part {
  /// The data of the part.
  var data: Value? { if case .data(let value, _) = self { value } else { nil } }
}
