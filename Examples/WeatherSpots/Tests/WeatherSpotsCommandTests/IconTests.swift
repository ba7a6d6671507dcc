import Foundation
import StandInServer
import Testing

/// The icon of the weather, with the weather and the pictures from two servers on loopback.
@Suite(.timeLimit(.minutes(15))) struct IconTests {
  private static let picture =
    Data(
      base64Encoded: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=") ?? Data()
  private static let clearSky = """
    {"utc_offset_seconds":0,"current_units":{"time":"iso8601","weather_code":"wmo code"},
    "current":{"time":"2026-11-21T09:00","weather_code":0}}
    """

  private let workspace: Workspace
  private let store: String
  private let weather: StandInServer
  /// The ports of the servers, which refuse connections while these are down.
  ///
  /// Another program may be given a port that is only free. macOS lets no server listen beside them, and there they are taken afterwards.
  private let held: [SilentPort]

  init() async throws {
    #if os(Linux)
      held = [try SilentPort(), try SilentPort()]
    #else
      held = []
    #endif
    workspace = try Workspace()
    store = workspace.path("spots.sqlite")
    let now = try Date("2026-11-21T09:00:00Z", strategy: .iso8601)
    weather = try StandInServer(port: UInt16(held.first?.port ?? 0), now: { now })
    #expect(try await weatherSpots(["add", "Brest", "48.39", "-4.49", "--zone", "Europe/Paris", "--store", store]).code == 0)
    weather.fail(Failure(.body(Self.clearSky), path: "forecast"))
  }

  private func serving(
    _ answers: [String: PictureServer.Answer], _ body: (PictureServer, String, URL) async throws -> Void
  ) async throws {
    let pictures = try PictureServer(answers, port: UInt16(held.last?.port ?? 0))
    let (base, api) = (try await pictures.start().absoluteString, try await weather.start())
    do { try await body(pictures, base, api) } catch {
      await pictures.stop()
      await weather.stop()
      throw error
    }
    await pictures.stop()
    await weather.stop()
  }

  private func icon(
    _ template: String?, _ api: URL, at now: String = "2026-11-21T09:00:00Z", _ more: [String] = [], of name: String = "brest"
  ) async throws -> Run {
    try await weatherSpots(
      ["icon", name, "--api", api.absoluteString, "--timeout", "300", "--now", now, "--store", store] + more,
      environment: template.map { ["WEATHER_SPOTS_ICON_URL": $0] } ?? [:])
  }

  @Test func itComesFromTheNetworkAndThenFromDiskWithoutARequestAlsoWhenBothServersAreDown() async throws {
    var (template, api) = ("", URL(filePath: "/"))
    try await serving(["/icons/clear-day.png": .whole(Self.picture)]) { (pictures, base, url) async throws in
      (template, api) = (base + "/icons/{icon}.png", url)
      #expect(try await icon(template, api) == Run(output: "Brest: clear-day, PNG, 68 bytes, from the network.\n"))
      #expect(try await icon(template, api) == Run(output: "Brest: clear-day, PNG, 68 bytes, from disk.\n"))
      #expect(pictures.requests == ["/icons/clear-day.png"] && weather.requestCount == 2)
      let file = workspace.path("icon.png")
      #expect(
        try await icon(template, api, ["--json", "--output", file])
          == Run(
            output: """
              {"age_seconds":0,"bytes":68,"format":"png","icon":"clear-day","kept":true,"origin":"disk","spot":"Brest @48.39,-4.49",\
              "stale":false,"url":"\(base)/icons/clear-day.png","weather_code":0}

              """))
      #expect(try Data(contentsOf: URL(filePath: file)) == Self.picture)
      #expect(pictures.requests.count == 1)
      // An icon is no photo of the spot.
      #expect(try await weatherSpots(["photos", "--store", store]) == Run(output: "No photos.\n"))
    }
    let ports = [api, try #require(URL(string: template.replacing("{icon}", with: "x")))].compactMap(\.port)
    let silent = held.isEmpty ? try ports.map { try SilentPort($0) } : held
    defer { withExtendedLifetime(silent) {} }
    #expect(
      try await icon(template, api, at: "2026-11-21T09:30:00Z")
        == Run(
          output: "Brest: clear-day, weather 30 min old, PNG, 68 bytes, from disk.\n",
          errors: "weather-spots: 127.0.0.1 cannot be reached (connection refused)\n", code: 4))
    #expect(
      try await icon(template, api, ["--policy", "cache-only", "--zone", "GMT"], of: "1.5,2.5")
        == Run(output: "", errors: "weather-spots: no icon: no weather is stored, and --policy cache-only sends no request\n", code: 69))
  }

  @Test func theNightHasItsOwn() async throws {
    try await serving(["/clear-night": .whole(Self.picture)]) { (pictures, base, api) async throws in
      let run = try await icon(base + "/{icon}", api, at: "2026-11-21T17:00:00Z")
      #expect(run == Run(output: "Brest: clear-night, PNG, 68 bytes, from the network.\n"))
    }
  }

  @Test func withoutConditionsOfTheMomentTheNearestHourDecides() async throws {
    weather.fail(
      Failure(
        .body(
          #"{"utc_offset_seconds":0,"hourly_units":{"time":"iso8601","weather_code":"wmo code"},"hourly":{"time":["2026-11-21T08:00","#
            + #""2026-11-21T09:00","2026-11-21T10:00"],"weather_code":[0,61,95]}}"#), path: "forecast"))
    try await serving(["/rain": .whole(Self.picture)]) { (_, base, api) async throws in
      let run = try await icon(base + "/{icon}", api, at: "2026-11-21T09:20:00Z", ["--zone", "Europe/Paris"], of: "48.39,-4.49")
      #expect(run == Run(output: "48.3900,-4.4900: rain, PNG, 68 bytes, from the network.\n"))
    }
  }

  @Test func aFailureIsOneLineAndIsNotKept() async throws {
    try await serving([:]) { (pictures, base, api) async throws in
      for count in 1...2 {
        let run = try await icon(base + "/{icon}.png", api)
        #expect(run == Run(output: "", errors: "weather-spots: no icon: the server answered with status 404\n", code: 69))
        #expect(pictures.requests.count == count)
      }
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: store + "-images").allSatisfy { $0.hasPrefix("blob-index") })
  }

  @Test func withoutASettingItSaysHowToSetOneAndAsksNobody() async throws {
    try await serving([:]) { (_, base, api) async throws in
      let run = try await icon(nil, api)
      #expect(
        run
          == Run(
            output: "",
            errors: "weather-spots: icon-url is not set; set it, such as: weather-spots config set icon-url "
              + "'https://example.org/icons/{icon}.png'\n", code: 64))
      #expect(weather.requestCount == 0)
    }
  }

  @Test func theSettingIsCheckedWhenItIsSet() async throws {
    let environment = ["XDG_CONFIG_HOME": workspace.directory.path]
    for value in ["https://example.org/rain.png", "ftp://example.org/{icon}.png", "{icon}.png", "https://example.org/#{icon}"] {
      #expect(
        try await weatherSpots(["config", "set", "icon-url", value], environment: environment)
          == Run(
            output: "",
            errors: "weather-spots: icon-url is a URL of http or https with {icon} in it, such as https://example.org/{icon}.png\n",
            code: 64))
    }
    let value = "https://example.org/{icon}.png"
    #expect(try await weatherSpots(["config", "set", "icon-url", value], environment: environment) == Run(output: ""))
    #expect(try workspace.text("weather-spots/config") == "icon-url = \(value)\n")
    #expect(try await weatherSpots(["config"], environment: environment).output.contains("\nicon-url    \(value)  "))
  }
}
