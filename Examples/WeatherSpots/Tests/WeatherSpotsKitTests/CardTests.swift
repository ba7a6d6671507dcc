import Astronomy
import Foundation
import Testing

@testable import WeatherSpotsKit

@Suite struct CardTests {
  /// Brest on a day, or seven, with a temperature that swings, a wind that grows and has a gap, and waves.
  private func card(
    days: Int = 1, title: String = "Brest, FR | 2026-11-21 (Europe/Paris)", weather: String? = nil
  ) throws -> WeatherCard {
    let paris = try zone("Europe/Paris")
    let day = try localDay("2026-11-21")
    let start = day.interval(in: paris).start
    let interval = DateInterval(start: start, end: day.advanced(by: days - 1).interval(in: paris).end)
    let hours = Int(interval.duration / 3600)
    // The first two and last two hours are of other days.
    let instants = (-2..<hours + 2).map { start + Double($0) * 3600 }
    let temperatures = instants.indices.map { 10 + 7 * sin((Double($0) - 9.3) / 24 * 2 * .pi) as Double? }
    var winds = instants.indices.map { Double($0 - 2) as Double? }
    winds[0] = 300
    winds[10] = nil
    winds[11] = .infinity
    return WeatherCard(
      title: title, weather: weather, code: WeatherCode(rawValue: 61), interval: interval, zone: paris, instants: instants,
      series: [.temperature(celsius: temperatures), .wind(kilometersPerHour: winds), .waves(meters: instants.map { _ in 2.6 })],
      astronomy: Astronomy(at: try #require(Coordinate(latitude: 48.39, longitude: -4.49)), on: day, in: paris),
      age: DataAge(seconds: 7300, origin: "disk", isStale: true, problem: "server unreachable"),
      attribution: ["Weather data by Open-Meteo.com (https://open-meteo.com/), CC BY 4.0"])
  }

  @Test func aCardHasAChartSunAndMoonTheAgeAndWhoIsToBeNamed() throws {
    #expect(
      try card().text(CardStyle()) == """
        Brest, FR | 2026-11-21 (Europe/Paris)
          ☔ Rain: slight
          Temp   ▁▁▁▁▁▂▃▄▅▆▇██████▇▆▅▄▃▂▁  3.0 to 17.0 °C
          Wind   ▁▁▁▂▂▂▃▃  ▄▄▅▅▅▆▆▆▇▇▇███  up to 23 km/h
          Waves  ████████████████████████  up to 2.6 m
                 0     6     12    18
          Sun    ↑ 08:34, ↓ 17:33
          Moon   ↓ 04:33, ↑ 15:28, 🌔 waxing gibbous, 87 % lit
          Data   STALE: 2 h old, from disk, server unreachable
          Weather data by Open-Meteo.com (https://open-meteo.com/), CC BY 4.0

        """)
  }

  @Test func aNarrowPlainCardIsASCIIAndBreaksItsLines() throws {
    #expect(
      try card().text(CardStyle(width: 40, isPlain: true, units: .imperial)) == """
        Brest, FR | 2026-11-21 (Europe/Paris)
          Rain: slight
          Temp   ..:=*@@@#+-.  37 to 63 F
          Wind   ..:- =+**#@@  up to 14 mph
          Waves  @@@@@@@@@@@@  up to 8.5 ft
                 0  6  12 18
          Sun    rises 08:34, sets 17:33
          Moon   sets 04:33, rises 15:28, waxing
                 gibbous, 87 % lit
          Data   STALE: 2 h old, from disk,
                 server unreachable
          Weather data by Open-Meteo.com
            (https://open-meteo.com/), CC BY 4.0

        """)
  }

  @Test func aCardOfAWeekHasWeekdaysUnderItsChart() throws {
    let lines = try card(days: 7).text(CardStyle()).components(separatedBy: "\n")
    #expect(lines[5] == "         Sat   Sun   Mon   Tue   Wed   Thu   Fri")
    #expect(lines[2].columns <= 80 && lines[2].hasSuffix("  3.0 to 17.0 °C"))
  }

  @Test func onATerminalTheImportantStandsOut() throws {
    let lines = try card().text(CardStyle(usesColor: true)).components(separatedBy: "\n")
    #expect(lines[0] == "\u{1B}[1mBrest, FR | 2026-11-21 (Europe/Paris)\u{1B}[0m")
    #expect(lines[8] == "  Data   \u{1B}[1;33mSTALE: 2 h old, from disk, server unreachable\u{1B}[0m")
  }

  @Test(arguments: [false, true]) func noLineIsWiderThanTheTerminal(_ isPlain: Bool) throws {
    for days in [1, 3, 7] {
      for width in 20...130 {
        let card = try card(days: days, title: "海の家 Jōgashima 🏖 | 2026-11-21", weather: "Thunderstorm with slight hail")
        let text = card.text(CardStyle(width: width, isPlain: isPlain))
        for line in text.components(separatedBy: "\n") {
          #expect(line.columns <= width || !line.trimmingCharacters(in: .whitespaces).contains(" "), "\(width): \(line)")
        }
        #expect(!text.contains("\u{1B}"))
        let isASCII = text.drop { $0 != "\n" }.allSatisfy { $0.isASCII }
        #expect(isASCII || !isPlain)
      }
    }
  }

  @Test func aCardWithoutAnythingHasItsTitleAndSaysThatThereAreNoData() throws {
    let interval = try localDay("2026-11-21").interval(in: .gmt)
    let card = WeatherCard(
      title: "Brest", interval: interval, zone: .gmt, instants: [interval.start, interval.end],
      series: [.temperature(celsius: [nil, 20]), .waves(meters: [.nan, 1])])
    #expect(
      card.text(CardStyle())
        == "Brest\n  Temp\(String(repeating: " ", count: 29))no data\n  Waves\(String(repeating: " ", count: 28))no data\n"
        + "         0     6     12    18\n")
  }

  @Test func whatServersSayCannotMoveTheCursor() throws {
    let interval = try localDay("2026-11-21").interval(in: .gmt)
    let card = WeatherCard(
      title: "A\u{1B}[2J", weather: "Rain\r\n\u{202E}x", interval: interval, zone: .gmt, instants: [], series: [],
      age: DataAge(seconds: 5, origin: "network", problem: "\u{7}bell"), attribution: ["by\u{9B}2J me"])
    #expect(card.text(CardStyle()) == "A[2J\n  Rainx\n  Data   just now, from network, bell\n  by2J me\n")
  }

  @Test func agesSayWhereDataComeFromAndWhyTheyAreOld() {
    #expect(DataAge(seconds: 30, origin: "network").parts == ["just now", "from network"])
    #expect(DataAge(seconds: 7300, origin: "disk", problem: "server unreachable").parts == ["2 h old", "from disk", "server unreachable"])
    #expect(
      DataAge(seconds: 90, origin: "memory", isStale: true, isRecorded: true).parts == ["STALE: 1 min old", "from memory", "recorded data"])
  }

  @Test func sunAndMoonAreInTheOrderOfTheDayAndTheMoonLiesOnItsSideInTheSouth() throws {
    func day(_ latitude: Double, _ longitude: Double, _ name: String, _ date: String) throws -> Astronomy {
      Astronomy(at: try #require(Coordinate(latitude: latitude, longitude: longitude)), on: try localDay(date), in: try zone(name))
    }
    let style = CardStyle()
    #expect(try day(69.6492, 18.9553, "Europe/Oslo", "2025-07-27").sunParts(style) == ["↓ 00:09", "↑ 01:33", "↓ 23:56"])
    #expect(try day(69.6492, 18.9553, "Europe/Oslo", "2025-06-21").sunParts(style) == ["up all day"])
    #expect(try day(69.6492, 18.9553, "Europe/Oslo", "2025-12-21").sunParts(style) == ["down all day"])
    #expect(try day(-33.93, 18.42, "Africa/Johannesburg", "2026-11-21").moonParts(style).contains("🌖 waxing gibbous"))
    #expect(try day(33.93, 18.42, "Africa/Johannesburg", "2026-11-21").moonParts(style).contains("🌔 waxing gibbous"))
  }

  @Test func everyCodeWithWordsHasASymbolAndPlainTextHasNone() throws {
    for code in 0...99 where !WeatherCode(rawValue: code).description.hasPrefix("Weather code") {
      #expect([1, 2].contains(WeatherCode(rawValue: code).symbol().columns), "\(code)")
      #expect(WeatherCode(rawValue: code).symbol(isPlain: true).isEmpty)
    }
    #expect(WeatherCode(rawValue: 42).symbol().isEmpty)
    #expect(WeatherCode(rawValue: 0).symbol() == "☀" && WeatherCode(rawValue: 0).symbol(isNight: true) == "☾")
    #expect(Set(MoonPhase.allCases.map { $0.symbol(isSouthern: false) }).count == 8)
  }
}
