import Foundation
import Testing

@testable import Astronomy
@testable import WeatherSpotsKit

@Suite(.timeLimit(.minutes(15))) struct WeatherIconTests {
  @Test func everyCodeHasAnIconAndOnlyWhereTheSkyShowsItKnowsTheNight() throws {
    let same = [
      3: "overcast", 45: "fog", 48: "fog", 51: "drizzle", 53: "drizzle", 55: "drizzle", 56: "freezing-drizzle", 57: "freezing-drizzle",
      61: "rain", 63: "rain", 65: "rain", 66: "freezing-rain", 67: "freezing-rain", 71: "snow", 73: "snow", 75: "snow", 77: "snow",
      95: "thunderstorm", 96: "thunderstorm-hail", 99: "thunderstorm-hail",
    ]
    let sky = [
      0: "clear", 1: "mainly-clear", 2: "partly-cloudy", 80: "rain-showers", 81: "rain-showers", 82: "rain-showers", 85: "snow-showers",
      86: "snow-showers",
    ]
    var known: Set<Int> = []
    for code in -1...120 {
      let (day, night) = (
        WeatherIcon(WeatherCode(rawValue: code), isDay: true)?.name, WeatherIcon(WeatherCode(rawValue: code), isDay: false)?.name
      )
      #expect(day == same[code] ?? sky[code].map { $0 + "-day" })
      #expect(night == same[code] ?? sky[code].map { $0 + "-night" })
      if day != nil { known.insert(code) }
    }
    // As many as there are words for.
    let words = known.filter { !WeatherCode(rawValue: $0).description.hasPrefix("Weather code") }
    #expect(words == known && known.count == 28)
  }

  @Test(arguments: [
    ("48.39,-4.49", "Europe/Paris", "2026-11-21"), ("69.65,18.96", "Europe/Oslo", "2025-05-17"),
    ("69.65,18.96", "Europe/Oslo", "2025-05-18"), ("69.65,18.96", "Europe/Oslo", "2025-07-27"),
    ("69.65,18.96", "Europe/Oslo", "2025-06-21"), ("69.65,18.96", "Europe/Oslo", "2025-12-21"),
    ("69.65,18.96", "Europe/Oslo", "2025-11-27"), ("-41.29,174.78", "Pacific/Auckland", "2025-04-06"),
    ("64.50,-165.41", "America/Nome", "2025-05-10"),
  ]) func theSunIsUpWhereItsLimbIsAboveTheHorizon(_ place: String, _ zone: String, _ date: String) throws {
    let numbers = place.split(separator: ",").compactMap { Double($0) }
    let coordinate = try #require(Coordinate(latitude: numbers[0], longitude: numbers[1]))
    let zone = try #require(TimeZone(identifier: zone))
    let day = try localDay(date)
    let sun = Astronomy(at: coordinate, on: day, in: zone).sun
    let interval = day.interval(in: zone)
    let (start, end) = (interval.start.timeIntervalSince1970, interval.end.timeIntervalSince1970)
    let (observer, ephemeris) = (
      Observer(latitude: coordinate.latitude, longitude: coordinate.longitude), Ephemeris(from: start - 7200, to: end + 7200)
    )
    var (up, down) = (0, 0)
    for seconds in stride(from: start, to: end, by: 300) {
      let height = observer.altitude(of: ephemeris.sunFixedToEarth(at: seconds)).degrees - SunDay.Height.horizon
      // So near to an event a second decides.
      guard abs(height) > 0.001 else { continue }
      #expect(sun.isUp(at: Date(timeIntervalSince1970: seconds)) == (height > 0))
      if height > 0 { up += 1 } else { down += 1 }
    }
    #expect(up + down > 250)
  }

  @Test func theIconIsThatOfTheSkyOverThePlace() throws {
    let brest = try #require(Coordinate(latitude: 48.39, longitude: -4.49))
    let zone = try #require(TimeZone(identifier: "Europe/Paris"))
    // The Sun rises at 08:34 and sets at 17:33 there.
    for (instant, name) in [
      ("2026-11-21T07:33:00Z", "clear-night"), ("2026-11-21T07:36:00Z", "clear-day"), ("2026-11-21T16:31:00Z", "clear-day"),
      ("2026-11-21T16:35:00Z", "clear-night"), ("2026-11-21T23:30:00Z", "clear-night"),
    ] {
      #expect(WeatherIcon(WeatherCode(rawValue: 0), at: brest, try self.instant(instant), in: zone)?.name == name, "\(instant)")
    }
  }

  private func instant(_ text: String) throws -> Date { try Date(text, strategy: .iso8601) }

  @Test func aTemplateMakesAURLOfItsOwnForEveryName() throws {
    let icon = try #require(WeatherIcon(WeatherCode(rawValue: 61), isDay: true))
    for (template, url) in [
      ("https://example.org/{icon}.png", "https://example.org/rain.png"),
      ("http://127.0.0.1:8080/a?name={icon}&size=64", "http://127.0.0.1:8080/a?name=rain&size=64"),
      ("https://example.org/{icon}/{icon}.png", "https://example.org/rain/rain.png"),
    ] { #expect(try #require(IconTemplate(template)).url(of: icon)?.absoluteString == url) }
    for template in [
      "", "{icon}", "https://example.org/rain.png", "ftp://example.org/{icon}.png", "https:///{icon}.png", "file:///{icon}.png",
      "https://example.org/#{icon}", "https://example.org/{size}/{icon}.png", "https://example.org/{ icon }.png",
      "https://example.org/{icon.png", "https://example.org/{icon}} .png",
    ] { #expect(IconTemplate(template) == nil, "\(template)") }
  }
}
