import Foundation
import StandInServer
import Testing

/// The options of the forecast command, and geocode.
@Suite(.timeLimit(.minutes(15))) struct ForecastOptionsTests {
  private let workspace = Workspace()
  private let server: StandInServer

  init() throws { server = try standIn() }

  private var store: String { workspace.path("spots.sqlite") }

  private func run(_ arguments: [String], api: URL? = nil, environment: [String: String] = [:]) async throws -> Run {
    try await weatherSpots(
      arguments + ["--store", store, "--now", morning, "--timeout", "300"]
        + (api.map { ["--api", $0.absoluteString] } ?? []),
      environment: environment)
  }

  private func add(_ name: String, _ latitude: String, _ longitude: String, _ zone: String) async throws {
    #expect(try await weatherSpots(["add", name, latitude, longitude, "--zone", zone, "--store", store]).code == 0)
  }

  private func object(_ run: Run) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(run.output.utf8)) as? [String: Any])
  }

  @Test func aForecastForMachinesHasEveryKindOfData() async throws {
    let api = try await server.start()
    try await add("Toronto", "43.65", "-79.38", "America/Toronto")
    let run = try await weatherSpots([
      "forecast", "toronto", "--json", "--day", "2027-03-13", "--days", "3", "--hourly", "--astronomy", "--store", store,
      "--now", "2027-03-10T12:00:00Z", "--timeout", "300", "--api", api.absoluteString,
    ])
    #expect(run.code == 0 && run.errors.isEmpty)
    let report = try object(run)
    let hours = try #require(report["hours"] as? [[String: Any]])
    // The clocks of the 14th go from two to three.
    #expect(hours.count == 24 + 23 + 24)
    #expect(hours.count { $0["day"] as? String == "2027-03-14" } == 23)
    #expect(hours.first?["instant"] as? String == "2027-03-13T05:00:00Z" && hours.last?["instant"] as? String == "2027-03-16T03:00:00Z")
    #expect(hours.allSatisfy { $0["wave_m"] is Double && $0["temperature_c"] is Double })
    let days = try #require(report["days"] as? [[String: Any]])
    #expect(days.compactMap { $0["day"] as? String } == ["2027-03-13", "2027-03-14", "2027-03-15"])
    #expect(days.allSatisfy { $0["temperature_max_c"] is Double && $0["weather"] is String })
    #expect((report["noon"] as? [String: Any])?["time"] as? String == "12:00")
    let sky = try #require(report["astronomy"] as? [[String: Any]])
    #expect(sky.count == 3 && sky[0]["sunrise"] is String && sky[0]["date"] as? String == "2027-03-13")
    #expect(report["provider"] as? String == "open-meteo" && report["now"] is NSNull && report["origin"] as? String == "network")
    await server.stop()
  }

  @Test func aPointTakesTheZoneOfASpotNearbyElseTheServicesElseTheGivenOne() async throws {
    let api = try await server.start()
    try await add("Kathmandu", "27.70", "85.32", "Asia/Kathmandu")
    let near = try await run(["forecast", "27.72,85.30"], api: api)
    #expect(near.output.hasPrefix("27.7200,85.3000 | 2026-11-21 (Asia/Kathmandu)\n"))
    #expect(server.requestCount == 2)
    let far = try await run(["forecast", "-10,30.2"], api: api)
    #expect(far.output.hasPrefix("-10.0000,30.2000 | 2026-11-21 (Etc/GMT-2)\n"))
    #expect(server.requestCount == 5)  // one for the zone, which is then known
    _ = try await run(["forecast", "-10,30.2"], api: api)
    #expect(server.requestCount == 5)
    let given = try await run(["forecast", "10,20", "--zone", "Africa/Lagos"], api: api)
    #expect(given.output.hasPrefix("10.0000,20.0000 | 2026-11-21 (Africa/Lagos)\n"))
    #expect(server.requestCount == 7)
    await server.stop()
    let out = try await run(["forecast", "-50,30.2"], api: api)
    #expect(out.code == 69 && out.errors.contains("give it with --zone, such as --zone Europe/Paris"))
  }

  @Test func recordedWeatherNeedsNoNetworkAndSaysWhatItIs() async throws {
    let run = try await run(["forecast", "48.39,-4.49", "--zone", "Europe/Paris", "--provider", "recorded"])
    #expect(run.code == 0 && run.output.contains("just now, from network, recorded data\n"))
    let json = try object(try await self.run(["forecast", "48.39,-4.49", "--zone", "Europe/Paris", "--provider", "recorded", "--json"]))
    #expect(json["recorded"] as? Bool == true && json["provider"] as? String == "recorded")
  }

  @Test(.enabled("this build signs") { !Signing.isBuilt }) func weatherKitSaysHowToBuildWithIt() async throws {
    let way = "swift build --package-path Examples/WeatherSpots --product weather-spots --traits WeatherKit"
    let errors = "weather-spots: this build cannot sign requests to WeatherKit; build it with `\(way)`\n"
    #expect(
      try await run(["forecast", "48.39,-4.49", "--zone", "Europe/Paris", "--provider", "weatherkit"])
        == Run(output: "", errors: errors, code: 64))
  }

  @Test(.needsSigning) func weatherKitSaysWhatItNeedsAndNeverShowsTheKey() async throws {
    let point = ["forecast", "48.39,-4.49", "--zone", "Europe/Paris", "--provider", "weatherkit"]
    let missing = try await run(point)
    #expect(missing.code == 64 && missing.errors.contains("WEATHERKIT_KEY_FILE"))
    let key = try workspace.file("AuthKey.p8", "-----BEGIN PRIVATE KEY-----\nc2VjcmV0LXNlY3JldA==\n-----END PRIVATE KEY-----\n")
    let environment = [
      "WEATHERKIT_KEY_FILE": key, "WEATHERKIT_KEY_ID": "ABC123DEFG", "WEATHERKIT_TEAM_ID": "TEAM123456", "WEATHERKIT_SERVICE_ID": "a.b",
    ]
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: key)
    let open = try await run(point, environment: environment)
    #expect(open.code == 64 && open.errors.contains("can be read by others; type `chmod 600 "))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
    let broken = try await run(point, environment: environment)
    #expect(broken.code == 64 && !broken.errors.contains("c2Vj") && !broken.errors.contains("secret-secret"))
  }

  @Test func geocodeFindsPlacesAndKeepsThem() async throws {
    let api = try await server.start()
    let found = try await run(["geocode", "holly", "--count", "2"], api: api)
    #expect(
      found
        == Run(
          output: """
            Hollywood   26.0112   -80.1495  America/New_York  Florida, United States  149728 people
            Hollywood   34.0983  -118.3267  America/Los_Angeles  California, United States  167664 people
            Places from GeoNames (https://www.geonames.org/), CC BY 4.0, by Open-Meteo.com (https://open-meteo.com/)

            """))
    #expect(try await run(["geocode", "xyzzy"], api: api) == Run(output: "No such place.\n", code: 2))
    await server.stop()
    #expect(try await run(["geocode", "holly", "--count", "2"], api: api) == found)
    let out = try await run(["geocode", "berlin"], api: api)
    #expect(out == Run.failure("no places: 127.0.0.1 cannot be reached (connection refused), and none are stored", 69))
  }

  @Test func whatCannotBeIsAMistakeOfUsage() async throws {
    for arguments in [
      ["brest", "--day", "2026-02-30"], ["brest", "--day", "today"], ["brest", "--api", "ftp://x"], ["brest", "--timeout", "0"],
      ["brest", "--now", "noon"], ["brest", "--days", "0"], ["brest", "--days", "17"], ["brest", "--all"], [], ["91,0"], ["1,181"],
      ["brest", "--policy", "sometimes"], ["brest", "--provider", "oracle"], ["brest", "--refresh", "--policy", "cache-only"],
      ["brest", "--zone", "Mars/Olympus"],
    ] {
      let run = try await weatherSpots(["forecast", "--store", workspace.path("x.json")] + arguments)
      #expect(run.code == 64, "\(arguments)")
      #expect(run.output == "")
    }
    for arguments in [["a"], ["ab", "--count", "0"], ["ab", "--language", "e&n"], ["ab", "--country", "Frnace"]] {
      #expect(try await weatherSpots(["geocode", "--store", workspace.path("x.json")] + arguments).code == 64, "\(arguments)")
    }
  }
}
