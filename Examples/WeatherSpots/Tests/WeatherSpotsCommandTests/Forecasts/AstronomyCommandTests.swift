import Testing

/// The astronomy command: the same point and day always give the same text, whatever the device's zone, language and calendar.
@Suite(.timeLimit(.minutes(15))) struct AstronomyCommandTests {
  private func astronomy(_ arguments: String...) async throws -> Run {
    try await weatherSpots(
      ["astronomy"] + arguments, environment: ["LC_ALL": "th_TH.UTF-8", "LANG": "th_TH.UTF-8", "TZ": "Asia/Tokyo", "HOME": "/nonexistent"])
  }

  @Test func aDayIsShownInTheClockTimeOfItsZone() async throws {
    #expect(
      try await astronomy("-33.93,18.42", "--zone", "Africa/Johannesburg", "--date", "2026-01-10")
        == Run(
          output: """
            33.9300° S, 18.4200° E | 2026-01-10 (Africa/Johannesburg)
              Sun                    rises and sets, up to 78.0° high
              Sunrise                05:46
              Sunset                 20:01
              Solar noon             12:54
              Civil twilight         from 05:18, until 20:30
              Nautical twilight      from 04:43, until 21:05
              Astronomical twilight  from 04:04, until 21:43
              Moon                   sets and stays down, third quarter, 52 % lit
              Moonrise               none
              Moonset                12:54
              Moon highest           06:17
              Moon lowest            18:37

            """))
  }

  @Test func whatHappensTwiceIsShownTwiceAndWhatDoesNotHappenIsNone() async throws {
    #expect(
      try await astronomy("69.6492,18.9553", "--zone", "Europe/Oslo", "--date", "2025-07-27")
        == Run(
          output: """
            69.6492° N, 18.9553° E | 2025-07-27 (Europe/Oslo)
              Sun                    rises and sets, up to 39.4° high
              Sunrise                01:33
              Sunset                 00:09, 23:56
              Solar noon             12:51
              Civil twilight         none
              Nautical twilight      none
              Astronomical twilight  none
              Moon                   rises and sets, waxing crescent, 8 % lit
              Moonrise               06:43
              Moonset                22:38
              Moon highest           15:05
              Moon lowest            02:43

            """))
  }

  @Test func aDayForMachinesHasTheColumnsOfTheTablesAndNull() async throws {
    #expect(
      try await astronomy("69.6492,18.9553", "--zone", "Europe/Oslo", "--date", "2025-07-27", "--json")
        == Run(
          output: """
            {"astronomical_dawn":null,"astronomical_dusk":null,"civil_dawn":null,"civil_dusk":null,"date":"2025-07-27",\
            "day_end_utc":"2025-07-27T22:00:00Z","day_start_utc":"2025-07-26T22:00:00Z","latitude":69.6492,"longitude":18.9553,\
            "moon_elongation_longitude_deg":32.4334,"moon_illuminated_fraction":0.07843,"moon_lower_transit":"2025-07-27T00:42:45Z",\
            "moon_phase_angle_deg":147.4721,"moon_sample_utc":"2025-07-27T10:00:00Z","moon_sensitivity_s_per_0.01deg":9,\
            "moon_upper_transit":"2025-07-27T13:05:05Z","moonrise":"2025-07-27T04:42:47Z","moonrise_2":null,\
            "moonset":"2025-07-27T20:37:43Z","moonset_2":null,"nautical_dawn":null,"nautical_dusk":null,"place":null,\
            "solar_noon":"2025-07-27T10:50:44Z","sun_max_altitude_deg":39.4434,"sun_min_altitude_deg":-1.145,\
            "sun_sensitivity_s_per_0.01deg":40.3,"sun_state":"rises_and_sets","sunrise":"2025-07-26T23:32:57Z","sunrise_2":null,\
            "sunset":"2025-07-26T22:09:25Z","sunset_2":"2025-07-27T21:56:09Z","timezone":"Europe/Oslo"}

            """))
  }

  @Test func aDayThatTheZoneSkippedIsSaidToBeSo() async throws {
    let problem =
      "weather-spots: expected a day of Pacific/Apia, found 2011-12-30, which that zone skipped: 2011-12-29 was followed by 2011-12-31; "
      + "give one of these\n"
    let arguments = ["-13.83,-171.76", "--zone", "Pacific/Apia"]
    #expect(try await weatherSpots(["astronomy"] + arguments + ["--date", "2011-12-30"]) == Run(output: "", errors: problem, code: 64))
    let workspace = Workspace()
    let forecast = ["forecast"] + arguments + ["--store", workspace.path("spots.sqlite"), "--provider", "recorded"]
    let refused = try await weatherSpots(forecast + ["--day", "2011-12-30", "--now", "2011-12-29T20:00:00Z"])
    #expect(refused == Run(output: "", errors: problem, code: 64))
    let days = forecast + ["--day", "2011-12-29", "--days", "3", "--now", "2011-12-29T20:00:00Z"]
    let shown = try await weatherSpots(days + ["--astronomy"])
    #expect(shown.code == 0 && shown.output.contains("\n  Fri 30 no such day: Pacific/Apia skipped it\n  Sat 31 "), "\(shown)")
    #expect(shown.output.contains(" | 2011-12-30 (Pacific/Apia)\n  no such day: Pacific/Apia skipped it\n"), "\(shown)")
    let json = try await weatherSpots(days + ["--json"])
    let skips = json.output.matches(of: #/"day":"([0-9-]+)","gust_max_kmh":[^}]*"skipped":(true|false)/#)
    #expect(skips.map { "\($0.1) \($0.2)" } == ["2011-12-29 false", "2011-12-30 true", "2011-12-31 false"], "\(json)")
  }

  @Test func withoutADateTheDayIsTodayInTheZone() async throws {
    let run = try await astronomy("1.87,-157.43", "--zone", "Pacific/Kiritimati")
    #expect(run.code == 0)
    #expect(run.output.hasPrefix("1.8700° N, 157.4300° W | 20"))
  }

  @Test(arguments: [
    ["astronomy"], ["astronomy", "1,2"], ["astronomy", "--zone", "GMT"], ["astronomy", "91,0", "--zone", "GMT"],
    ["astronomy", "-90.001,0", "--zone", "GMT"], ["astronomy", "0,180.1", "--zone", "GMT"], ["astronomy", "nan,0", "--zone", "GMT"],
    ["astronomy", "1,2,3", "--zone", "GMT"], ["astronomy", "1,2", "--zone", "Nowhere/Town"], ["astronomy", "1,2", "--zone", ""],
    ["astronomy", "1,2", "--zone", "../GMT"], ["astronomy", "1,2", "--zone", "GMT", "--date", "2026-02-30"],
    ["astronomy", "1,2", "--zone", "GMT", "--date", "tomorrow"], ["astronomy", "1,2", "--zone", "GMT", "--date", "2026-1-1"],
  ])
  func whatCannotBeIsAMistakeOfUsage(_ arguments: [String]) async throws {
    let run = try await weatherSpots(arguments)
    #expect(run.code == 64)
    #expect(run.output.isEmpty)
    #expect(run.errors.hasPrefix("Error: "))
  }
}
