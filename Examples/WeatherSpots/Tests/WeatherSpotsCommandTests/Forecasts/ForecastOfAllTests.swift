import Foundation
import StandInServer
import Subprocess
import Testing

/// `forecast --all`: all spots, some of which fail, and kills in the middle of it.
@Suite(.timeLimit(.minutes(15))) struct ForecastOfAllTests {
  private let workspace = Workspace()
  private let server: StandInServer

  init() throws { server = try standIn() }

  private var store: String { workspace.path("spots.sqlite") }

  /// Spots whose number is their latitude, as far as there are latitudes.
  private func importSpots(_ count: Int, from first: Int = 10) async throws {
    let rows = (first..<first + count).map { "Spot \($0),\($0 % 80).5,\($0 / 80 + 7).5,GMT\n" }.joined()
    let file = try workspace.file("spots.csv", "name,latitude,longitude,timezone\n\(rows)")
    #expect(try await weatherSpots(["import", file, "--store", store]).code == 0)
  }

  private func arguments(_ api: URL, at now: String = morning) -> [String] {
    ["forecast", "--all", "--store", store, "--api", api.absoluteString, "--now", now, "--timeout", "300"]
  }

  private func all(_ api: URL, _ more: [String] = [], at now: String = morning) async throws -> Run {
    try await weatherSpots(arguments(api, at: now) + more)
  }

  @Test func thereIsOneLineForEachSpotInTheirOrder() async throws {
    try await importSpots(20)
    let api = try await server.start()
    let run = try await all(api)
    #expect(run.code == 0 && run.errors.isEmpty)
    let lines = run.output.split(separator: "\n")
    #expect(lines.map { $0.prefix(9) } == (10..<30).map { "Spot \($0)  " })
    #expect(lines.allSatisfy { $0.hasSuffix("just now, from network, recorded data") })
    #expect((1...20).contains(server.requestCount("/v1/forecast")) && (1...20).contains(server.requestCount("/v1/marine")))
    #expect(server.mostInFlight <= 4)
    let before = server.requestCount
    let again = try await all(api, ["--json"])
    #expect(again.code == 0 && again.output.split(separator: "\n").count == 20)
    #expect(server.requestCount == before)
    await server.stop()
  }

  @Test func whatWaitsForARequestGoesWithTheNextOne() async throws {
    try await importSpots(60)
    let api = try await server.start()
    // While the first four are answered, all others come.
    server.fail(Failure(.delay(.seconds(5))))
    let run = try await all(api)
    #expect(run.code == 0 && run.errors.isEmpty)
    #expect(run.output.split(separator: "\n").map { $0.prefix(9) } == (10..<70).map { "Spot \($0)  " })
    // Four of one spot, and three for the rest of each service.
    #expect(server.requestCount <= 4 + 3 + 3 && server.mostInFlight <= 4)
    // The other places are others' weather.
    let single = ["--store", workspace.path("other.sqlite"), "--zone", "GMT", "40.5,7.5", "--api", api.absoluteString, "--timeout", "300"]
    var texts: [String] = []
    for arguments in [single, ["Spot 40", "--store", store, "--policy", "cache-only"]] {
      let run = try await weatherSpots(["forecast", "--json", "--now", morning] + arguments)
      let report = try JSONSerialization.jsonObject(with: Data(run.output.utf8)) as? [String: Any]
      let keys = ["temperature_min_c", "temperature_max_c", "precipitation_mm", "wind_max_kmh", "noon", "days"]
      let parts = keys.map { report?[$0] ?? "none" }
      texts.append(String(decoding: try JSONSerialization.data(withJSONObject: parts, options: [.sortedKeys]), as: UTF8.self))
    }
    #expect(texts[0] == texts[1] && !texts[0].contains("none"))
    await server.stop()
  }

  @Test func withNothingStoredAndNobodyAskedThatIsSaidOnce() async throws {
    try await importSpots(1)
    let reason = "none is stored, and --policy cache-only sends no request"
    let one = try await weatherSpots(["forecast", "Spot 10", "--policy", "cache-only", "--store", store])
    #expect(one == Run.failure("no forecast: \(reason)", 69))
    let all = try await weatherSpots(["forecast", "--all", "--policy", "cache-only", "--store", store])
    let list = "weather-spots: 1 of 1 spots have no forecast:\n  Spot 10: not cached (policy: cache only)\n"
    #expect(all == Run(output: "Spot 10  no forecast\n", errors: list, code: 69))
    let places = try await weatherSpots(["geocode", "Brest", "--policy", "cache-only", "--store", store])
    let none = "weather-spots: no places: none are stored, and --policy cache-only sends no request\n"
    #expect(places == Run(output: "", errors: none, code: 69))
  }

  @Test func forecastsThatCannotBeStoredAreShownAndCounted() async throws {
    try await importSpots(5)
    let api = try await server.start()
    // A limit on the size of files stands in for a disk that is full.
    let size = try #require(try FileManager.default.attributesOfItem(atPath: store)[.size] as? Int)
    let program = buildDirectory.appending(path: "weather-spots").path
    let result = try await Subprocess.run(
      .shell,
      arguments: Arguments(["-c", "trap '' XFSZ; ulimit -f \(size / 512 + 64); exec \"$0\" \"$@\"", program] + arguments(api)),
      environment: .inherit.updating(["XDG_CONFIG_HOME": "/nonexistent"]), output: .string(limit: 1 << 20), error: .string(limit: 1 << 20))
    #expect(result.standardOutput.split(separator: "\n").count == 5 && !result.standardOutput.contains("no forecast"))
    let note = /weather-spots: ([1-5]) of 5 forecasts could not be stored: (?:the disk is full|the store cannot be written)\n/
    let count = try #require(result.standardError.firstMatch(of: note).flatMap { Int($0.1) })
    await server.stop()
    let there = try await all(api, ["--policy", "cache-only"])
    #expect(there.output.matches(of: /no forecast/).count <= count, "\(result.standardError)\(there.testDescription)")
  }

  @Test func aFailedLineHasTheKeysOfOneThatSucceeded() async throws {
    try await importSpots(3)
    let api = try await server.start()
    server.fail(Failure(.html, path: "forecast", latitude: "11.5"))
    let run = try await all(api, ["--json"])
    #expect(run.code == 69)
    let lines = try run.output.split(separator: "\n").map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }
    #expect(lines.map { $0["spot"] as? String } == ["Spot 10", "Spot 11", "Spot 12"])
    #expect(Set(lines[1].keys) == Set(lines[0].keys) && Set(lines[1].keys) == Set(lines[2].keys))
    #expect(lines[1]["noon"] is NSNull && lines[1]["fetched_at"] is NSNull && lines[1]["latitude"] as? Double == 11.5)
    #expect(lines[1]["problem"] as? String == "the weather service failed (status 502)" && lines[0]["problem"] is NSNull)
    await server.stop()
  }

  /// The width of the bar, in columns, that a terminal shows at most while forecasts are fetched.
  @Test(arguments: [("40", 40), ("80", 80), ("20", 20)]) func theProgressBarKeepsToTheWidth(_ columns: String, _ width: Int) async throws {
    try await importSpots(20)
    let api = try await server.start()
    server.fail(Failure(.delay(.milliseconds(300))))
    let terminal = try Terminal()
    async let read = terminal.read(until: "\u{1B}[K")
    let result = try await Subprocess.run(
      .built("weather-spots"), arguments: Arguments(arguments(api)),
      environment: .inherit.updating(["COLUMNS": columns, "XDG_CONFIG_HOME": "/nonexistent"]), input: .none, output: .discarded,
      error: .fileDescriptor(terminal.programSide, closeAfterSpawningProcess: true))
    #expect(result.terminationStatus == .exited(0))
    let bars = try await read.split(separator: "\r").filter { $0.contains("%") }
    #expect(!bars.isEmpty)
    // The last column stays free, or some terminals begin a new line.
    for bar in bars { #expect(bar.count < width, "\(bar)") }
    if width >= 40 { #expect(bars.allSatisfy { $0.hasPrefix("Forecasts [") }) }
    await server.stop()
  }

  @Test func whatFailsIsListedAtTheEndAndTheRestIsThere() async throws {
    try await importSpots(12)
    let api = try await server.start()
    server.fail(Failure(.html, path: "forecast", latitude: "15.5"))
    let run = try await all(api)
    #expect(run.code == 69)
    #expect(run.errors == "weather-spots: 1 of 12 spots have no forecast:\n  Spot 15: the weather service failed (status 502)\n")
    #expect(run.output.split(separator: "\n").count == 12 && run.output.contains("Spot 15  no forecast\n"))
    server.fail(nil)
    let before = server.requestCount("/v1/forecast")
    #expect(try await all(api).code == 0)
    #expect(server.requestCount("/v1/forecast") == before + 1)
    await server.stop()
  }

  @Test(arguments: [Failure.Kind.status(500), .status(429), .delay(.seconds(30))])
  func aServiceThatIsOutMakesNoStormAndLosesNothing(_ kind: Failure.Kind) async throws {
    try await importSpots(15)
    let api = try await server.start()
    #expect(try await all(api).code == 0)
    let before = server.requestCount
    server.fail(Failure(kind))
    let run = try await all(api, ForecastTests.patience(kind), at: "2026-11-21T12:30:00Z")
    #expect(run.code == 4)
    #expect(run.output.split(separator: "\n").count == 15)
    #expect(run.output.split(separator: "\n").allSatisfy { $0.contains("STALE: 3 h old, from disk, recorded data") })
    #expect(run.errors.hasPrefix("weather-spots: 15 of 15 forecasts are only the last known ones: "))
    #expect(run.errors.split(separator: "\n").count == 1)
    // Five failures in a row open the breaker of each of the two services; four may be under way then.
    #expect(server.requestCount - before <= 2 * (5 + 4))
    await server.stop()
  }

  @Test func withoutSpotsThereIsNothingToDo() async throws {
    #expect(try await weatherSpots(["add", "A", "1", "2", "--zone", "GMT", "--store", store]).code == 0)
    #expect(try await weatherSpots(["remove", "A", "--store", store]).code == 0)
    #expect(try await weatherSpots(["forecast", "--all", "--store", store]) == Run(output: "No spots.\n"))
  }

  @Test(arguments: [1, 23])
  func afterAKillEveryForecastThatWasAcknowledgedIsThereAndNoneIsHalfWritten(_ lines: Int) async throws {
    // So many that there is always something left to do when the kill comes.
    try await importSpots(300, from: 100)
    let api = try await server.start()
    var acknowledged: [String] = []
    let result = try await Subprocess.run(
      .built("weather-spots"), arguments: Arguments(arguments(api)), input: .none, output: .sequence, error: .discarded
    ) { execution in
      for try await line in execution.standardOutput.strings() {
        acknowledged.append(String(line.prefix(8)))
        if acknowledged.count == lines { try execution.send(signal: .kill) }
      }
    }
    #expect(result.terminationStatus == .signaled(9))
    #expect(acknowledged.count >= lines && acknowledged.count < 300)
    await server.stop()
    let verified = try await weatherSpots(["verify", "--store", store])
    #expect(verified.code == 0 && verified.output.hasPrefix("Sound: "))
    let there = try await all(api, ["--policy", "cache-only"])
    for name in acknowledged { #expect(there.output.contains("\(name)  ") && !there.output.contains("\(name)  no forecast")) }
    // Whatever else is there is whole: nothing is a damaged record that was skipped.
    #expect(there.output.split(separator: "\n").count == 300)
  }
}
