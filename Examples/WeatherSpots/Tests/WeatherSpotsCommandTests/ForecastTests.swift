import Foundation
import StandInServer
import Subprocess
import Testing

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// The forecast command against the stand-in server: the same instant always gives the same text.
@Suite(.timeLimit(.minutes(2))) struct ForecastTests {
  private let workspace: Workspace

  init() throws { workspace = try Workspace() }

  private func store() async throws -> String {
    let store = workspace.path("spots.sqlite")
    let run = try await weatherSpots([
      "add", "Brest", "48.39", "-4.49", "--zone", "Europe/Paris", "--country", "FR", "--source", "GeoNames:3030300", "--store", store,
    ])
    #expect(run.code == 0)
    return store
  }

  private func forecast(_ store: String, _ api: URL, at now: String, _ more: [String] = []) async throws -> Run {
    try await weatherSpots(
      ["forecast", "brest", "--store", store, "--api", api.absoluteString, "--now", now] + more,
      environment: ["LC_ALL": "th_TH.UTF-8", "LANG": "th_TH.UTF-8"])
  }

  private let waves = "  Waves     2.6 m every 10 s from WNW, water 14.3 °C\n"

  private func card(_ source: String) -> String {
    """
    Brest, FR | 2026-11-21 (Europe/Paris)
      At 12:00  13.6 °C, feels like 11.0 °C, Rain: slight
      Day       2.7 to 17.6 °C, 38.6 mm of rain or snow
      Wind      24 km/h from SSW, gusts 53, up to 31 over the day
    \(waves)\
      Source    \(source)
      Weather data by Open-Meteo.com (https://open-meteo.com/), CC BY 4.0
      Waves include data of DWD (https://www.dwd.de/)
      Spot from GeoNames (https://www.geonames.org/), CC BY 4.0

    """
  }

  private let recorded = "recorded data from the stand-in server"
  private let morning = "2026-11-21T09:00:00Z"

  @Test func aForecastComesFromTheNetworkThenFromDiskThenStale() async throws {
    let server = try StandInServer()
    let (store, api) = (try await store(), try await server.start())
    #expect(try await forecast(store, api, at: "2026-11-21T09:00:00Z") == Run(output: card("network, \(recorded), just now")))
    #expect(server.requestCount == 2)
    #expect(try await forecast(store, api, at: "2026-11-21T09:30:00Z") == Run(output: card("disk, \(recorded), 30 min old")))
    #expect(server.requestCount == 2)
    await server.stop()
    #expect(
      try await forecast(store, api, at: "2026-11-21T12:00:00Z")
        == Run(
          output: card("disk, \(recorded), STALE: the last known forecast, 3 h old (fetched 2026-11-21T09:00:00Z)"),
          errors: "weather-spots: 127.0.0.1 cannot be reached (connection refused)\n", code: 4))
  }

  @Test func refreshingAsksAgainAndShowsTheLastKnownForecastWhenThatFails() async throws {
    let server = try StandInServer()
    let (store, api) = (try await store(), try await server.start())
    _ = try await forecast(store, api, at: morning)
    let again = try await forecast(store, api, at: "2026-11-21T09:10:00Z", ["--refresh"])
    #expect(again == Run(output: card("network, \(recorded), just now")))
    #expect(server.requestCount == 4)
    await server.stop()
    #expect(
      try await forecast(store, api, at: "2026-11-21T09:15:00Z", ["--refresh"])
        == Run(
          output: card("disk, \(recorded), STALE: the last known forecast, 5 min old (fetched 2026-11-21T09:10:00Z)"),
          errors: "weather-spots: 127.0.0.1 cannot be reached (connection refused)\n", code: 4))
  }

  @Test(arguments: [
    (Failure.Kind.status(500), "the weather service failed (status 500)"),
    (.status(503), "the weather service failed (status 503)"),
    (
      .status(429),
      "the weather service limits requests (Minutely API request limit exceeded. Please try again in one minute.)"
    ),
    (.status(400), "the weather service has no data for this place"),
    (.html, "the weather service failed (status 502)"),
    (.truncated, "the answer of the weather service was cut off"),
    (.delay(.seconds(30)), "127.0.0.1 did not answer within 0.5 s"),
  ])
  func everyFailureOfTheServiceIsOneLine(_ kind: Failure.Kind, _ reason: String) async throws {
    let server = try StandInServer(failure: Failure(kind))
    let (store, api) = (try await store(), try await server.start())
    // A server that is merely slow must not be what makes the other failures.
    let isSlow = if case .delay = kind { true } else { false }
    #expect(
      try await forecast(store, api, at: morning, ["--timeout", isSlow ? "0.5" : "30"])
        == Run(output: "", errors: "weather-spots: no forecast: \(reason), and none is stored\n", code: 69))
    #expect(server.requestCount <= 2)
    await server.stop()
  }

  @Test func aFailingSeaNeverSinksTheForecast() async throws {
    let server = try StandInServer(failure: Failure(.status(500), path: "marine"))
    let (store, api) = (try await store(), try await server.start())
    let run = try await forecast(store, api, at: morning)
    #expect(
      run
        == Run(
          output: card("network, \(recorded), just now")
            .replacing(waves, with: "  Waves     unavailable: the weather service failed (status 500)\n")
            .replacing("  Waves include data of DWD (https://www.dwd.de/)\n", with: "")))
    await server.stop()
  }

  @Test func aForecastForMachinesIsJSON() async throws {
    let server = try StandInServer()
    let (store, api) = (try await store(), try await server.start())
    #expect(
      try await forecast(store, api, at: morning, ["--json", "--day", "2026-11-23"])
        == Run(
          output: """
            {"age_seconds":0,"attribution":["Weather data by Open-Meteo.com (https://open-meteo.com/), CC BY 4.0",\
            "Waves include data of DWD (https://www.dwd.de/)","Spot from GeoNames (https://www.geonames.org/), CC BY 4.0"],\
            "country":"FR","day":"2026-11-23","fetched_at":"2026-11-21T09:00:00Z","noon":{"apparent_c":2.7,"gust_kmh":62.3,\
            "temperature_c":7.4,"time":"12:00","weather":"Overcast","weather_code":3,"wind_from_degrees":210,"wind_kmh":18.2},\
            "origin":"network","precipitation_mm":0,"recorded":true,"sea":{"state":"available","surface_c":14.3,\
            "wave_from_degrees":299,"wave_m":2.56,"wave_period_s":9.9},"server":"127.0.0.1","spot":"Brest","stale":false,\
            "temperature_max_c":14.8,"temperature_min_c":2.4,"timezone":"Europe/Paris","wind_max_kmh":26.9}

            """))
    await server.stop()
  }

  @Test func aDayOrAServerThatCannotBeIsAMistakeOfUsage() async throws {
    for arguments in [["--day", "2026-02-30"], ["--day", "today"], ["--api", "ftp://x"], ["--timeout", "0"], ["--now", "noon"]] {
      let run = try await weatherSpots(["forecast", "brest", "--store", workspace.path("x.json")] + arguments)
      #expect(run.code == 64)
      #expect(run.output == "")
    }
  }

  @Test func theServerProgramPrintsItsURLFirst() async throws {
    let store = try await store()
    _ = try await Subprocess.run(
      .path(FilePath(buildDirectory.appending(path: "weather-spots-server").path)), arguments: ["--html", "--fail-only", "marine"],
      input: .none, output: .sequence, error: .discarded
    ) { execution in
      for try await line in execution.standardOutput.strings() {
        let api = try #require(URL(string: line.trimmingCharacters(in: .newlines)))
        let run = try await forecast(store, api, at: morning)
        #expect(run.code == 0)
        #expect(run.output.contains("  Waves     unavailable: the weather service failed (status 502)\n"))
        break
      }
      try execution.send(signal: .terminate)
    }
  }
}
