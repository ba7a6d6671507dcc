import Foundation
import Testing

@Suite(.timeLimit(.minutes(15))) struct ConfigTests {
  private let workspace = Workspace()

  private func run(_ arguments: [String], _ environment: [String: String] = [:]) async throws -> Run {
    let own = ["XDG_CONFIG_HOME": workspace.directory.path, "XDG_DATA_HOME": workspace.path("data")]
    return try await weatherSpots(arguments, environment: own.merging(environment) { $1 })
  }

  private func config(_ text: String) throws -> String {
    try FileManager.default.createDirectory(at: workspace.directory.appending(path: "weather-spots"), withIntermediateDirectories: true)
    return try workspace.file("weather-spots/config", text)
  }

  @Test func theSourceOfEachSettingIsShownAndTheNearestOneHolds() async throws {
    #expect(try await run(["config"]).output.hasPrefix("provider    open-meteo"))
    func source(_ key: String, _ arguments: [String] = [], _ environment: [String: String] = [:]) async throws -> String {
      let run = try await run(["config", "show"] + arguments, environment)
      let line = run.output.split(separator: "\n").first { $0.hasPrefix(key + " ") } ?? ""
      return line.split(separator: " ", omittingEmptySubsequences: true).dropFirst().joined(separator: " ")
    }
    #expect(try await source("units") == "metric default")
    #expect(try await source("key-file") == "- not set")
    #expect(try await source("store") == "\(workspace.path("data"))/weather-spots/spots.sqlite default")
    #expect(try await run(["config", "set", "units", "imperial"]) == Run(output: ""))
    #expect(try await run(["config", "set", "store", "/a/b.sqlite"]) == Run(output: ""))
    let file = workspace.path("weather-spots/config")
    #expect(try await source("units") == "imperial \(file):1")
    #expect(try await source("store") == "/a/b.sqlite \(file):2")
    #expect(try await source("units", [], ["WEATHER_SPOTS_UNITS": "metric"]) == "metric WEATHER_SPOTS_UNITS")
    #expect(try await source("store", [], ["WEATHER_SPOTS_STORE": "/c.json"]) == "/c.json WEATHER_SPOTS_STORE")
    #expect(try await source("store", ["--store", "/d.json"], ["WEATHER_SPOTS_STORE": "/c.json"]) == "/d.json --store")
    #expect(try await run(["config", "unset", "units"]) == Run(output: ""))
    #expect(try await source("units") == "metric default")
    #expect(try FileManager.default.contentsOfDirectory(atPath: workspace.path("weather-spots")) == ["config"])
  }

  @Test func theHomeDirectoryIsThatOfHOMEWhereThatIsAnAbsolutePath() async throws {
    let own = workspace.path("home")
    let file = "\(own)/.config/weather-spots/config"
    try FileManager.default.createDirectory(atPath: "\(own)/.config/weather-spots", withIntermediateDirectories: true)
    try Data("units = imperial\n".utf8).write(to: URL(filePath: file))  // a test's input
    func config(_ home: String) async throws -> String {
      try await run(["config"], ["HOME": home, "XDG_CONFIG_HOME": "", "XDG_DATA_HOME": ""]).output
    }
    let found = try await config(own)
    #expect(found.contains("\(file):1\n"), "\(found)")
    #if os(Linux)
      #expect(found.contains(" \(own)/.local/share/weather-spots/spots.sqlite "), "\(found)")
      // The home directory of the password database, which Foundation would take in place of `$HOME`.
      let known = String(cString: try #require(getpwuid(getuid())).pointee.pw_dir)
      for home in ["", "home", "./home"] {
        #expect(try await config(home).contains(" \(known)/.local/share/weather-spots/spots.sqlite "), "\(home)")
      }
    #endif
  }

  @Test func theCommandsDoWhatIsSet() async throws {
    let store = workspace.path("elsewhere.sqlite")
    #expect(try await run(["config", "set", "store", store]).code == 0)
    #expect(try await run(["add", "Brest", "48.39", "-4.49", "--zone", "Europe/Paris"]).code == 0)
    #expect(FileManager.default.fileExists(atPath: store))
    #expect(try await run(["config", "set", "provider", "recorded"]).code == 0)
    let now = ["--now", "2026-11-21T09:00:00Z"]
    let metric = try await run(["forecast", "Brest"] + now)
    #expect(metric.code == 0 && metric.output.contains("recorded data") && metric.output.contains(" °C"))
    #expect(try await run(["config", "set", "units", "imperial"]).code == 0)
    #expect(try await run(["forecast", "Brest"] + now).output.contains(" °F"))
    #expect(try await run(["forecast", "Brest"] + now, ["WEATHER_SPOTS_UNITS": "metric"]).output.contains(" °C"))
    #expect(try await run(["forecast", "Brest", "--units", "metric"] + now).output.contains(" °C"))
    // An option goes before the environment.
    let weatherKit = try await run(["forecast", "Brest"] + now, ["WEATHER_SPOTS_PROVIDER": "weatherkit"])
    #expect(weatherKit.code == 64 && weatherKit.errors.contains(Signing.isBuilt ? "WEATHERKIT_KEY_FILE" : "--traits WeatherKit"))
    #expect(try await run(["forecast", "Brest", "--provider", "recorded"] + now, ["WEATHER_SPOTS_PROVIDER": "weatherkit"]).code == 0)
  }

  private static let keys =
    "provider, units, store, api, timeout, sync-token, open-meteo-key, key-file, key-id, team-id, service-id"

  @Test func commentsAndOtherLinesStay() async throws {
    _ = try config("# mine\nunits = metric\n\n  provider=recorded  \n")
    #expect(try await run(["config", "set", "units", "imperial"]).code == 0)
    #expect(try await run(["config", "set", "key-id", "ABC"]).code == 0)
    #expect(try workspace.text("weather-spots/config") == "# mine\nunits = imperial\n\n  provider=recorded  \nkey-id = ABC\n")
    #expect(try await run(["config", "unset", "provider"]).code == 0)
    #expect(try workspace.text("weather-spots/config") == "# mine\nunits = imperial\n\nkey-id = ABC\n")
  }

  @Test func lineBreaksOfWindowsAreLineBreaks() async throws {
    _ = try config("# mine\r\nunits = imperial\r\n")
    #expect(try await run(["config", "set", "key-id", "ABC"]).code == 0)
    #expect(try workspace.text("weather-spots/config") == "# mine\nunits = imperial\nkey-id = ABC\n")
  }

  @Test(arguments: [
    ("units = metric\nunit = imperial\n", 2, "unknown key; the keys are \(keys)"),
    ("# x\n\nunits\n", 3, "expected `key = value`"), ("units = kelvin\n", 1, "units is one of metric, imperial"),
    ("units = metric\nunits = metric\n", 2, "units is set in line 1 already"),
    ("store = spots.txt\n", 1, "the name of a store ends in .sqlite or .json"), ("key-id =\n", 1, "key-id is empty"),
  ]) func whatIsNotUnderstoodEndsEveryCommandWithFileAndLine(_ text: String, _ line: Int, _ reason: String) async throws {
    let file = try config(text)
    for command in [["config"], ["list"], ["config", "set", "units", "metric"], ["alerts", "list"]] {
      #expect(try await run(command) == Run.failure("\(file):\(line): \(reason)", 78))
    }
    #expect(try workspace.text("weather-spots/config") == text)
    #expect(try await run(["list", "--help"]).code == 0)
  }

  @Test func whatIsNotUnderstoodInTheEnvironmentNamesTheVariable() async throws {
    #expect(
      try await run(["list"], ["WEATHER_SPOTS_UNITS": "kelvin"])
        == Run.failure("WEATHER_SPOTS_UNITS in the environment: units is one of metric, imperial", 78))
  }

  @Test func aConfigurationThatCannotBeReadOrWrittenSaysWhy() async throws {
    let file = try workspace.file("file", "")
    let written = try await run(["config", "set", "units", "imperial"], ["XDG_CONFIG_HOME": file])
    let problem = "weather-spots: \(file)/weather-spots/config cannot be written: the system refused "
    #expect(written.code == 73 && written.errors.hasPrefix(problem), "\(written.errors)")
    let folder = workspace.path("weather-spots/config")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let read = try await run(["list"])
    #expect(read.code == 78 && read.errors.contains(/cannot be read: ./), "\(read.errors)")
  }

  @Test func whatCannotBeSetIsAMistake() async throws {
    #expect(try await run(["config", "set", "colour", "red"]).code == 64)
    #expect(try await run(["config", "set", "units", "kelvin"]).code == 64)
    #expect(try await run(["config", "set", "key-id", "a\nunits = metric"]).code == 64)
  }
}
