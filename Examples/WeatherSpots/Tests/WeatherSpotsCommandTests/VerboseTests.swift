import Foundation
import StandInServer
import Testing

@Suite(.timeLimit(.minutes(15))) struct VerboseTests {
  @Test func theLogHasRequestsAndTheirOutcomesAndNothingOfWhoOrWhere() async throws {
    let workspace = Workspace()
    let store = workspace.path("secretly.sqlite")
    let spot = ["Privatissimum", "48.3912", "-4.4934", "--zone", "Europe/Paris", "--country", "FR"]
    #expect(try await weatherSpots(["add"] + spot + ["--store", store]).code == 0)
    let server = try standIn()
    let api = try await server.start().absoluteString
    let forecast = ["forecast", "privatissimum", "--api", api, "--timeout", "300", "--store", store, "--now"]
    #expect(try await weatherSpots(forecast + [morning]).errors.isEmpty)
    // A refusal repeats what was asked for.
    server.fail(.init(.body("{\"error\":true,\"reason\":\"Latitude 48.3912 of Privatissimum\"}")))
    let kit = try WeatherKit(workspace) { _ in WeatherKit.oneAlert }
    let url = try await kit.server.start()
    var runs = [
      try await weatherSpots(forecast + ["2026-11-21T11:00:00Z", "--verbose"]),
      try await weatherSpots(["--verbose"] + forecast + ["2026-11-21T11:05:00Z"]),
    ]
    if Signing.isBuilt { runs.append(try await weatherSpots(kit.arguments(url, store) + ["--verbose"], environment: kit.texts)) }
    for run in runs {
      let log = run.errors.split(separator: "\n").filter { !$0.hasPrefix("weather-spots: ") }.joined(separator: "\n")
      #expect(log.contains(" debug "))
      for secret in ["rivatissimum", "48.3", "4.49", "secretly", "AuthKey", "ABC123DEFG", "TEAM123456", "com.example", "Europe", "http"] {
        #expect(!log.contains(secret), "\(secret) is in the log")
      }
    }
    #expect(runs[0].errors.contains("kinds=") && runs[0].errors.contains("provider=open-meteo"))
    await server.stop()
    await kit.server.stop()
  }
}
