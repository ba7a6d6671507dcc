import Foundation
import StandInServer
import Subprocess
import Testing

/// The forecast command against the stand-in server: the same instant always gives the same text.
@Suite(.timeLimit(.minutes(15))) struct ForecastTests {
  private let workspace = Workspace()

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
      ["forecast", "brest", "--store", store, "--api", api.absoluteString, "--now", now, "--timeout", "300"] + more,
      environment: ["LC_ALL": "th_TH.UTF-8", "LANG": "th_TH.UTF-8", "COLUMNS": "120"])
  }

  private let now = "  Now    11.9 °C, feels like 9.6 °C, Drizzle: light, 18 km/h from SSW"
  private let sea = "  Sea    2.6 m every 10 s from WNW, water 14.3 °C"
  private let waves = "  Waves  ▇▇▇▇▇▇▇▇███████████▇▇▇▇▇  up to 2.6 m\n"
  private let credit = "  Waves include data of DWD (https://www.dwd.de/)\n"

  private func card(_ age: String, now: String? = nil, sea: String? = nil) -> String {
    """
    Brest, FR | 2026-11-21 (Europe/Paris)
      ☔ Rain: slight
    \(now ?? self.now)
      12:00  13.6 °C, feels like 11.0 °C, 24 km/h from SSW, gusts 53, 39 % likely
      Rain   38.6 mm
    \(sea ?? self.sea)
      Temp   ▁▁▁▁▃▃▄▄▅▅▅▆▆▇▇█████▇▇▇▇  2.7 to 17.6 °C
      Wind   ▂▂▂▃▄▅▄▅▅▄▅▇▇▆▆▇████▆▆▆▇  up to 31 km/h
    \(waves)\
             0     6     12    18
      Sun    ↑ 08:34, ↓ 17:33
      Moon   ↓ 04:33, ↑ 15:28, 🌔 waxing gibbous, 87 % lit
      Data   \(age)
      Weather data by Open-Meteo.com (https://open-meteo.com/), CC BY 4.0
    \(credit)\
      Spot from GeoNames (https://www.geonames.org/), CC BY 4.0

    """
  }

  @Test func aForecastIsOneRequestToEachServiceThenFromDiskThenStale() async throws {
    let server = try standIn()
    let (store, api) = (try await store(), try await server.start())
    #expect(try await forecast(store, api, at: morning) == Run(output: card("just now, from network, recorded data")))
    #expect(server.requestCount("/v1/forecast") == 1 && server.requestCount("/v1/marine") == 1)
    #expect(try await forecast(store, api, at: "2026-11-21T09:08:00Z") == Run(output: card("8 min old, from disk, recorded data")))
    #expect(server.requestCount == 2)
    // After ten minutes only the conditions of the moment are old.
    #expect(try await forecast(store, api, at: "2026-11-21T09:30:00Z") == Run(output: card("30 min old, from disk, recorded data")))
    #expect(server.requestCount == 3)
    await server.stop()
    let stale = card("STALE: 2 h old, from disk, recorded data, server unreachable", now: now + ", STALE: 90 min old")
    #expect(try await forecast(store, api, at: "2026-11-21T11:00:00Z") == Run(output: stale, errors: refused, code: 4))
  }

  private let refused = "weather-spots: 127.0.0.1 cannot be reached (connection refused)\n"

  @Test func refreshingAsksAgainAndShowsTheLastKnownForecastWhenThatFails() async throws {
    let server = try standIn()
    let (store, api) = (try await store(), try await server.start())
    _ = try await forecast(store, api, at: morning)
    let again = try await forecast(store, api, at: "2026-11-21T09:10:00Z", ["--refresh"])
    #expect(again == Run(output: card("just now, from network, recorded data")))
    #expect(server.requestCount == 4)
    await server.stop()
    let old = ", STALE: 5 min old"
    let stale = card("STALE: 5 min old, from disk, recorded data, server unreachable", now: now + old, sea: sea + old)
    let failed = try await forecast(store, api, at: "2026-11-21T09:15:00Z", ["--policy", "network-first"])
    #expect(failed == Run(output: stale, errors: refused, code: 4))
    let quiet = try await forecast(store, api, at: "2026-11-21T09:15:00Z", ["--policy", "cache-only"])
    #expect(quiet == Run(output: card("5 min old, from disk, recorded data")))
    let strict = try await forecast(store, api, at: "2026-11-21T09:15:00Z", ["--policy", "network-only"])
    #expect(strict.code == 69 && strict.output.isEmpty)
  }

  static let failures: [(Failure.Kind, String)] = [
    (.status(500), "the weather service failed (status 500)"), (.status(503), "the weather service failed (status 503)"),
    (.status(429), "the weather service limits requests (Minutely API request limit exceeded. Please try again in one minute.)"),
    (.errorWithoutStatus, "the weather service refused the request (200: Something went wrong.)"),
    (.html, "the weather service failed (status 502)"),
    (.body("<html>sign in</html>"), "expected JSON of the weather service, found something else (status 200)"),
    (.truncated, "the answer of the weather service was cut off"),
    (.delay(.seconds(30)), "127.0.0.1 did not answer within 0.5 s"),
  ]

  /// A server that is merely slow must not be what makes the other failures.
  static func patience(_ kind: Failure.Kind) -> [String] { if case .delay = kind { ["--timeout", "0.5"] } else { [] } }

  @Test(arguments: failures + [(.status(400), "the weather service has no data for this place")])
  func withNothingStoredEveryFailureOfTheServiceIsOneLine(_ kind: Failure.Kind, _ reason: String) async throws {
    let server = try standIn(Failure(kind))
    let (store, api) = (try await store(), try await server.start())
    let isFact = if case .status(400) = kind { true } else { false }
    #expect(
      try await forecast(store, api, at: morning, Self.patience(kind))
        == Run(output: "", errors: "weather-spots: no forecast: \(reason)\(isFact ? "" : ", and none is stored")\n", code: 69))
    #expect(server.requestCount <= 2)
    await server.stop()
  }

  @Test(arguments: failures)
  func whateverTheServiceDoesTheLastKnownForecastIsShownAndNothingIsLost(_ kind: Failure.Kind, _ reason: String) async throws {
    let server = try standIn()
    let (store, api) = (try await store(), try await server.start())
    _ = try await forecast(store, api, at: morning)
    server.fail(Failure(kind))
    for _ in 0..<2 {
      let run = try await forecast(store, api, at: "2026-11-21T10:30:00Z", Self.patience(kind))
      #expect(run.output.contains("  Data   STALE: 90 min old, from disk, recorded data, "))
      #expect(run.errors == "weather-spots: \(reason)\n")
      #expect(run.code == 4)
    }
    #expect(server.requestCount <= 4)  // two that worked, and one for each failure: the sea is fresh for three hours
    server.fail(nil)
    #expect(try await forecast(store, api, at: "2026-11-21T10:31:00Z") == Run(output: card("just now, from network, recorded data")))
    await server.stop()
  }

  @Test func aFailingSeaNeverSinksTheForecastAndIsNotAskedAtEveryGlance() async throws {
    let server = try standIn(Failure(.status(500), path: "marine"))
    let (store, api) = (try await store(), try await server.start())
    for source in ["just now, from network, recorded data", "1 min old, from disk, recorded data"] {
      let run = try await forecast(store, api, at: source.hasPrefix("just") ? morning : "2026-11-21T09:01:00Z")
      let card = card(source, sea: "  Sea    unavailable: the weather service failed (status 500)")
      #expect(run == Run(output: card.replacing(credit, with: "").replacing(waves, with: "")))
    }
    #expect(server.requestCount("/v1/marine") == 1)
    server.fail(nil)
    let later = try await forecast(store, api, at: "2026-11-21T09:03:01Z")
    #expect(later.output == card("3 min old, from disk, recorded data"))
    await server.stop()
  }

  @Test func aPlaceWithoutASeaIsToldFromASeaThatIsOut() async throws {
    let server = try standIn(Failure(.status(400), path: "marine"))
    let (store, api) = (try await store(), try await server.start())
    for now in [morning, "2026-11-27T09:00:00Z"] {
      let run = try await forecast(store, api, at: now)
      #expect(run.code == 0 && run.output.contains("\n  Sea    no sea here\n"))
    }
    #expect(server.requestCount("/v1/marine") == 2)  // one for each day
    await server.stop()
  }

  @Test func theServerProgramPrintsItsURLFirst() async throws {
    let store = try await store()
    _ = try await Subprocess.run(
      .built("weather-spots-server"), arguments: ["--html", "--fail-only", "marine"],
      input: .none, output: .sequence, error: .discarded
    ) { execution in
      for try await line in execution.standardOutput.strings() {
        let api = try #require(URL(string: line.trimmingCharacters(in: .newlines)))
        let run = try await forecast(store, api, at: morning)
        #expect(run.code == 0)
        #expect(run.output.contains("  Sea    unavailable: the weather service failed (status 502)\n"))
        break
      }
      try execution.send(signal: .terminate)
    }
  }

  @Test(arguments: ["2026-11-21T23:30:00Z", "2026-11-22T12:00:00Z"])
  func theNextDayIsShownFromWhatWasFetchedTheDayBefore(_ later: String) async throws {
    let store = try await store()
    let server = try standIn()
    let api = try await server.start()
    #expect(try await forecast(store, api, at: "2026-11-21T21:00:00Z").code == 0)
    await server.stop()
    let run = try await forecast(store, api, at: later)
    #expect(run.code == 4 && run.output.hasPrefix("Brest, FR | 2026-11-22 (Europe/Paris)\n"), "\(run.testDescription)")
    #expect(run.output.contains("  Data   STALE: "))
    let stored = try await forecast(store, api, at: later, ["--policy", "cache-only"])
    #expect(stored.output.hasPrefix("Brest, FR | 2026-11-22 (Europe/Paris)\n") && !stored.output.contains("unavailable\n  12:00"))
  }

  @Test func aDayIsShownFromWhatWasFetchedForMoreOfThem() async throws {
    let store = try await store()
    let server = try standIn()
    let api = try await server.start()
    #expect(try await forecast(store, api, at: "2026-11-21T09:00:00Z", ["--days", "10"]).code == 0)
    await server.stop()
    let run = try await forecast(store, api, at: "2026-11-21T09:05:00Z")
    #expect(run.code == 4 && run.output.contains("  12:00  13.6 °C"), "\(run.testDescription)")
  }
}
