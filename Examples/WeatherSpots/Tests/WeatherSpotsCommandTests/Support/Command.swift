// These tests run the built programs as a person does and compare everything they write.

import Foundation
import StandInServer
import Subprocess
import Testing

/// The morning that the tests of forecasts take for the present.
let morning = "2026-11-21T09:00:00Z"

/// A stand-in server for which it is that morning.
func standIn(_ failure: Failure? = nil) throws -> StandInServer {
  let now = try Date(morning, strategy: .iso8601)
  return try StandInServer(failure: failure, now: { now })
}

/// Runs weather-spots to its end.
func weatherSpots(_ arguments: [String], input: String = "", environment: [String: String] = [:]) async throws -> Run {
  try await run("weather-spots", arguments, input: input, environment: environment)
}

extension Workspace {
  /// Adds a spot to a store, and returns the store's path.
  func store(_ name: String = "spots.sqlite") async throws -> String {
    let store = path(name)
    let run = try await weatherSpots(["add", "Brest", "48.39", "-4.49", "--zone", "Europe/Paris", "--country", "FR", "--store", store])
    #expect(run.code == 0)
    return store
  }
}

/// Runs weather-spots, and kills it when the closure returns.
func killed(_ arguments: [String], environment: [String: String] = [:], at moment: () async throws -> Void) async throws {
  _ = try await Subprocess.run(
    .built("weather-spots"), arguments: Arguments(arguments), environment: .inherit(with: environment), input: .none, output: .discarded,
    error: .discarded
  ) { execution in
    try await moment()
    try execution.send(signal: .kill)
  }
}

/// The file of spots that ships with the example.
let shippedSpots = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../../spots.csv").standardizedFileURL.path
