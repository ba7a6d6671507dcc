import Foundation
import StandInServer
import Testing

/// The forms of names and numbers that people type, and their results.
@Suite(.timeLimit(.minutes(15))) struct TypingTests {
  private let workspace = Workspace()
  private var store: String { workspace.path("spots.sqlite") }
  private let now = ["--now", morning]

  init() async throws {
    let file = try workspace.file(
      "spots.csv",
      "name,latitude,longitude,timezone\nBrest,48.39,-4.49,Europe/Paris\n東京湾,35.5,139.9,Asia/Tokyo\nÎle d'Ouessant,48.46,-5.09,Europe/Paris\n"
        + "A\u{202E}B\u{9B}31mC,1,2,GMT\n")
    #expect(try await weatherSpots(["import", file, "--store", store]).code == 0)
  }

  private func run(_ arguments: [String], columns: Int? = nil) async throws -> Run {
    try await weatherSpots(arguments + ["--store", store], environment: ["COLUMNS": columns.map(String.init) ?? ""])
  }

  @Test func anUnknownNameSuggestsNearOnesAndGeocoding() async throws {
    let unknown = try await run(["forecast", "Brset"])
    #expect(
      unknown
        == Run(
          output: "",
          errors: "weather-spots: no spot named \"Brset\"; similar names: \"Brest\"; `weather-spots geocode \"Brset\"` "
            + "searches for the place, and --add adds it\n", code: 2))
    let added = try await run(["geocode", "Hollywood", "--provider", "recorded", "--add"] + now)
    #expect(added.code == 0 && added.output.hasPrefix("Added "), "\(added)")
    let name = try #require(added.output.firstMatch(of: /Added (.+) @/)).1
    #expect(try await run(["forecast", String(name), "--provider", "recorded"] + now).code == 0)
  }

  @Test(arguments: [["sh\u{1B}[31mow"], ["show", "a", "--x\u{1B}[31m"], ["show", "a", "\u{9B}5m"], ["list", "--limit", "\u{202E}1"]])
  func whatTheParserRepeatsSteersNoTerminal(_ arguments: [String]) async throws {
    let run = try await weatherSpots(arguments)
    #expect(run.code == 64 && run.output.isEmpty && !run.errors.isEmpty, "\(run)")
    let controls = run.errors.unicodeScalars.filter { $0 != "\n" && ($0.value < 0x20 || 0x7F...0x9F ~= $0.value || $0.value == 0x202E) }
    #expect(controls.isEmpty, "\(run)")
  }

  @Test(arguments: ["bash", "zsh", "fish"]) func aCompletionScriptIsWritten(_ shell: String) async throws {
    for arguments in [["--generate-completion-script", shell], ["--generate-completion-script=\(shell)"]] {
      let run = try await weatherSpots(arguments)
      #expect(run.code == 0 && run.errors.isEmpty && run.output.contains("weather-spots"), "\(run)")
    }
  }

  @Test func theFirstHelpShowsExamplesBeforeExitCodes() async throws {
    let help = try await weatherSpots(["--help"]).output
    let examples = try #require(help.range(of: "EXAMPLES"))
    let codes = try #require(help.range(of: "EXIT CODES"))
    #expect(examples.upperBound < codes.lowerBound)
    #expect(help[examples.upperBound..<codes.lowerBound].matches(of: #/\n  weather-spots /#).count == 3)
  }

  /// Columns of a terminal, for the characters of these tests.
  private func columns(_ line: Substring) -> Int {
    line.reduce(0) { $0 + ($1.unicodeScalars.first.map { (0x3000...0x9FFF).contains($0.value) } == true ? 2 : 1) }
  }

  @Test(arguments: [40, 80]) func linesKeepToTheWidth(_ width: Int) async throws {
    for arguments in [
      ["list"], ["near", "48,-4"], ["search", "brest"], ["cache"], ["forecast", "--all", "--provider", "recorded"] + now,
      ["forecast", "Brest", "--provider", "recorded", "--hourly"] + now,
    ] {
      let run = try await run(arguments, columns: width)
      #expect(!run.output.isEmpty)
      for line in run.output.split(separator: "\n") where !line.contains("://") { #expect(columns(line) <= width, "\(line)") }
    }
  }

  @Test func inAPipeEveryLineIsWhole() async throws {
    let name = "A lighthouse with a name that is a good deal longer than any column for it"
    #expect(try await run(["add", name, "48.39", "-4.49", "--zone", "Europe/Paris", "--notes", "of stone"]).code == 0)
    let recorded = ["--provider", "recorded"] + now
    for arguments in [
      ["list"], ["near", "48,-4"], ["search", "stone"], ["forecast", "--all"] + recorded,
      ["forecast", name, "--hourly", "--marine", "--astronomy", "--days", "2"] + recorded, ["widget", name] + now,
    ] {
      let run = try await run(arguments)
      #expect(run.code == 0 && run.output.contains(name) && !run.output.contains("…"), "\(run)")
    }
    // A plain line is cut with three points.
    let plain = try await run(["forecast", name, "--hourly", "--plain"] + recorded)
    let hours = plain.output.split(separator: "\n").filter { $0.contains(#/^  [0-9]{2}:00 /#) }
    #expect(hours.count == 25 && !hours.contains { $0.hasSuffix("...") }, "\(plain)")
  }

  @Test func wideCharactersAlign() async throws {
    let lines = try await run(["list"]).output.split(separator: "\n")
    let starts = lines.map { line in line.range(of: ".").map { columns(line[..<$0.lowerBound]) } }
    #expect(lines.count == 4 && Set(starts).count == 1)
  }

  @Test func nothingThatTheTerminalObeysIsWritten() async throws {
    for arguments in [
      ["list"], ["list", "--json"], ["show", "A\u{202E}B\u{9B}31mC"], ["forecast", "\u{1B}[2J\u{202E}"], ["export", "--format", "geojson"],
      ["forecast", "--all", "--provider", "recorded"] + now,
    ] {
      let run = try await run(arguments)
      for scalar in (arguments[0] == "export" ? "" : run.output + run.errors).unicodeScalars where scalar != "\n" {
        #expect(scalar.value >= 0x20 && !(0x7F...0x9F).contains(scalar.value) && !(0x202A...0x202E).contains(scalar.value))
      }
    }
    struct Named: Decodable { let name: String }
    let list = try JSONDecoder().decode([Named].self, from: Data(try await run(["list", "--json"]).output.utf8))
    #expect(list.contains { $0.name == "A\u{202E}B\u{9B}31mC" })
  }

  @Test func plainIsASCII() async throws {
    for arguments in [["forecast", "Île d'Ouessant"], ["forecast", "東京湾"], ["forecast", "--all"], ["widget", "Île d'Ouessant"]] {
      let more = arguments[0] == "widget" ? [] : ["--provider", "recorded"]
      let run = try await run(arguments + more + ["--plain"] + now)
      #expect(run.code == 0 && run.output.utf8.allSatisfy { $0 < 0x80 }, "\(run)")
    }
    #expect(try await run(["forecast", "--all", "--provider", "recorded", "--plain"] + now).output.contains("Ile d'Ouessant"))
  }

  @Test func theServerTheTimeAndTheKeyAreSettings() async throws {
    let asked = try LoopbackServer { _ in .init(500, "{}") }
    let api = try await asked.start().absoluteString
    let settings = ["WEATHER_SPOTS_API": api, "WEATHER_SPOTS_TIMEOUT": "300", "WEATHER_SPOTS_OPEN_METEO_KEY": "abc-DEF_1"]
    let run = try await weatherSpots(["forecast", "Brest", "--store", store], environment: settings)
    #expect(run.code == 69 && !run.errors.contains("abc-DEF_1"))
    #expect(!asked.requests.isEmpty && asked.requests.allSatisfy { $0.query["apikey"] == "abc-DEF_1" })
    let shown = try await weatherSpots(["config"], environment: settings)
    #expect(shown.output.contains(api) && shown.output.contains("(not shown)") && !shown.output.contains("abc-DEF_1"))
    for (name, value) in [("API", "ftp://x"), ("TIMEOUT", "0"), ("OPEN_METEO_KEY", "a b")] {
      #expect(try await weatherSpots(["list", "--store", store], environment: ["WEATHER_SPOTS_\(name)": value]).code == 78)
    }
    await asked.stop()
  }

  /// The keys of all objects in a value, with their paths.
  private func keys(_ value: Any, _ path: String = "") -> Set<String> {
    switch value {
    case let object as [String: Any]:
      object.reduce(into: []) { $0.formUnion(keys($1.value, "\(path).\($1.key)").union(["\(path).\($1.key)"])) }
    case let array as [Any]: array.reduce(into: []) { $0.formUnion(keys($1, path + "[]")) }
    default: []
    }
  }

  @Test func theKeysOfJSONAreAlwaysTheSame() async throws {
    func topKeys(_ arguments: [String]) async throws -> [String] {
      let text = try await run(arguments + ["--json"]).output
      let value = try JSONSerialization.jsonObject(with: Data(text.utf8))
      let object = (value as? [String: Any]) ?? (value as? [[String: Any]])?.first ?? [:]
      return object.keys.sorted()
    }
    let forecast = ["forecast", "Brest", "--provider", "recorded"]
    let today = try await topKeys(forecast + now)
    #expect(today.contains("hours") && today.contains("astronomy") && today.contains("problem"))
    #expect(try await topKeys(forecast + now + ["--hourly", "--astronomy"]) == today)
    #expect(try await topKeys(forecast + now + ["--day", "2026-11-22"]) == today)
    #expect(try await topKeys(["widget", "Brest"] + now) == today)
    #expect(try await topKeys(["list"]) == topKeys(["near", "48,-4"]))
    #expect(try await topKeys(["search", "brest"]).contains("highlights"))
  }

  @Test func aWidgetDoesNotWarnOfWarningsThatTheProviderDoesNotHave() async throws {
    #expect(try await run(["forecast", "Brest", "--provider", "recorded"] + now).code == 0)
    let card = try await run(["widget", "Brest"] + now)
    #expect(card.code == 0 && !card.output.contains("Alerts"), "\(card)")
  }
}
