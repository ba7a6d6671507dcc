import Foundation
import StandInServer
import Subprocess
import Testing

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// `forecast --all`: all spots, some of which fail, and kills in the middle of it.
@Suite(.timeLimit(.minutes(10))) struct ForecastOfAllTests {
  private let workspace: Workspace
  private let server: StandInServer

  init() throws {
    workspace = try Workspace()
    let now = try Date("2026-11-21T09:00:00Z", strategy: .iso8601)
    server = try StandInServer(now: { now })
  }

  private var store: String { workspace.path("spots.sqlite") }

  /// Spots at 10.5, 11.5 … degrees north.
  private func importSpots(_ count: Int) async throws {
    let rows = (0..<count).map { "Spot \($0 + 10),\($0 + 10).5,7.5,GMT\n" }.joined()
    let file = try workspace.file("spots.csv", "name,latitude,longitude,timezone\n\(rows)")
    #expect(try await weatherSpots(["import", file, "--store", store]).code == 0)
  }

  private func all(_ api: URL, _ more: [String] = [], at now: String = "2026-11-21T09:00:00Z") async throws -> Run {
    try await weatherSpots(
      ["forecast", "--all", "--store", store, "--api", api.absoluteString, "--now", now]
        + (more.contains("--timeout") ? [] : ["--timeout", "300"]) + more)
  }

  @Test func thereIsOneLineForEachSpotInTheirOrder() async throws {
    try await importSpots(20)
    let api = try await server.start()
    let run = try await all(api)
    #expect(run.code == 0 && run.errors.isEmpty)
    let lines = run.output.split(separator: "\n")
    #expect(lines.map { $0.prefix(9) } == (10..<30).map { "Spot \($0)  " })
    #expect(lines.allSatisfy { $0.hasSuffix("just now, from network, recorded data") })
    #expect(server.requestCount("/v1/forecast") == 20)
    #expect(server.requestCount("/v1/marine") == 20)
    #expect(server.mostInFlight <= 4)
    let again = try await all(api, ["--json"])
    #expect(again.code == 0 && again.output.split(separator: "\n").count == 20)
    #expect(server.requestCount == 40)
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
    try await importSpots(30)
    let api = try await server.start()
    #expect(try await all(api).code == 0)
    let before = server.requestCount
    server.fail(Failure(kind))
    let run = try await all(api, Self.patience(kind), at: "2026-11-21T12:30:00Z")
    #expect(run.code == 4)
    #expect(run.output.split(separator: "\n").count == 30)
    #expect(run.output.split(separator: "\n").allSatisfy { $0.contains("STALE: 3 h old, from disk, recorded data") })
    #expect(run.errors.hasPrefix("weather-spots: 30 of 30 forecasts are only the last known ones: "))
    #expect(run.errors.split(separator: "\n").count == 1)
    // Five failures in a row open the breaker of each of the two services; four may be under way then.
    #expect(server.requestCount - before <= 2 * (5 + 4))
    await server.stop()
  }

  /// A server that is merely slow must not be what makes the other failures.
  private static func patience(_ kind: Failure.Kind) -> [String] { if case .delay = kind { ["--timeout", "0.5"] } else { [] } }

  @Test func withoutSpotsThereIsNothingToDo() async throws {
    #expect(try await weatherSpots(["add", "A", "1", "2", "--zone", "GMT", "--store", store]).code == 0)
    #expect(try await weatherSpots(["remove", "A", "--store", store]).code == 0)
    #expect(try await weatherSpots(["forecast", "--all", "--store", store]) == Run(output: "No spots.\n"))
  }

  @Test(arguments: [1, 7, 23])
  func afterAKillEveryForecastThatWasAcknowledgedIsThereAndNoneIsHalfWritten(_ lines: Int) async throws {
    try await importSpots(40)
    let api = try await server.start()
    var acknowledged: [String] = []
    let result = try await Subprocess.run(
      .path(FilePath(buildDirectory.appending(path: "weather-spots").path)),
      arguments: Arguments([
        "forecast", "--all", "--store", store, "--api", api.absoluteString, "--now", "2026-11-21T09:00:00Z", "--timeout", "300",
      ]),
      input: .none, output: .sequence, error: .discarded
    ) { execution in
      for try await line in execution.standardOutput.strings() {
        acknowledged.append(String(line.prefix(7)))
        if acknowledged.count == lines { try execution.send(signal: .kill) }
      }
    }
    #expect(result.terminationStatus == .signaled(9))
    #expect(acknowledged.count >= lines && acknowledged.count < 40)
    await server.stop()
    let verified = try await weatherSpots(["verify", "--store", store])
    #expect(verified.code == 0 && verified.output.hasPrefix("Sound: "))
    let there = try await all(api, ["--policy", "cache-only"])
    for name in acknowledged { #expect(there.output.contains("\(name)  ") && !there.output.contains("\(name)  no forecast")) }
    // Whatever else is there is whole: nothing is a damaged record that was skipped.
    #expect(there.output.split(separator: "\n").count == 40)
  }
}
