import Foundation
import Larder
import LarderSQLite
import StandInServer
import Subprocess
import Testing

/// A widget beside the program that fetches: real processes at the same time.
@Suite(.timeLimit(.minutes(15))) struct WidgetTests {
  private let workspace = Workspace()
  private let store: String

  init() async throws { store = try await workspace.store() }

  private func widget(_ now: String, _ more: [String] = []) async throws -> Run {
    try await weatherSpots(["widget", "brest", "--now", now, "--store", store] + more)
  }

  /// Fetches a forecast from a server that is gone afterwards.
  private func fetch() async throws {
    let server = try standIn()
    let api = try await server.start().absoluteString
    _ = try await weatherSpots(["forecast", "brest", "--api", api, "--timeout", "300", "--now", morning, "--store", store])
    await server.stop()
  }

  @Test func itShowsWhatAnotherProcessFetchesWhileAThirdHoldsTheStore() async throws {
    let server = try standIn()
    let api = try await server.start().absoluteString
    _ = try await Subprocess.run(
      .built("weather-spots"), arguments: ["watch", "--store", store], input: .none, output: .sequence, error: .discarded
    ) { execution in
      var lines = execution.standardOutput.strings().makeAsyncIterator()
      #expect(try await lines.next() == "Watching 1 spots.")
      let none = "weather-spots: no forecast of this spot is stored for today; `weather-spots forecast` fetches one\n"
      #expect(try await widget(morning) == Run(output: "", errors: none, code: 69))
      let forecast = try await weatherSpots(["forecast", "brest", "--api", api, "--timeout", "300", "--now", morning, "--store", store])
      #expect(forecast.code == 0)
      let requests = server.requestCount
      let shown = try await widget("2026-11-21T09:12:00Z")
      #expect(shown.code == 0 && shown.errors.isEmpty)
      #expect(shown.output.contains("12 min old") && shown.output.contains("from disk"))
      // What is shown is what was fetched, but for its age and what is too old to be of the moment.
      let body = forecast.output.split(separator: "\n").filter { $0.hasPrefix("  Temp") || $0.hasPrefix("  Wind") || $0.hasPrefix("  Sea") }
      #expect(body.count == 3)
      for line in body { #expect(shown.output.contains(line)) }
      // After the hour it is stale, after two days there is none; nobody is ever asked.
      #expect(try await widget("2026-11-21T11:00:00Z").code == 4)
      #expect(try await widget("2026-11-22T11:00:00Z").code == 4)
      #expect(try await widget("2026-11-23T11:00:00Z").code == 69)
      #expect(server.requestCount == requests)
      try execution.send(signal: .interrupt)
    }
    await server.stop()
  }

  @Test func itChangesNothing() async throws {
    try await fetch()
    let before = try Data(contentsOf: URL(filePath: store))
    #expect(try await widget("2026-11-21T09:12:00Z", ["--json"]).code == 0)
    #expect(try Data(contentsOf: URL(filePath: store)) == before)
    #expect(try FileManager.default.contentsOfDirectory(atPath: workspace.directory.path) == ["spots.sqlite"])
  }

  @Test func itAnswersAtOnceWhileAnotherProgramHoldsTheWriteLock() async throws {
    try await fetch()
    let clock = ContinuousClock()
    let start = clock.now
    let before = try await widget("2026-11-21T09:12:00Z")
    let alone = start.duration(to: clock.now)
    #expect(before.code == 0)

    // BEGIN IMMEDIATE, and nothing after it.
    let writer = SQLiteBackend(file: URL(filePath: store))
    _ = try writer.open(StoreOptions(access: .shared)) { _ in }
    _ = try writer.beginCommit(after: .zero, .durable)
    let other = SQLiteBackend(file: URL(filePath: store))
    _ = try other.open(StoreOptions(access: .shared, lockTimeout: .zero)) { _ in }
    let refusal = #expect(throws: RepositoryError.self) { _ = try other.beginCommit(after: .zero, .durable) }
    #expect(refusal?.code == .locked, "the lock is held")
    try other.close()
    let middle = clock.now
    #expect(try await widget("2026-11-21T09:12:00Z") == before)
    // A command waits ten seconds for the lock.
    #expect(middle.duration(to: clock.now) < alone * 3 + .seconds(5))
    writer.cancelCommit()
    try writer.close()
  }

  @Test func whereThereIsNothingToReadItSaysSo() async throws {
    #expect(try await weatherSpots(["widget", "Nowhere", "--store", store]).code == 2)
    let missing = try await weatherSpots(["widget", "brest", "--store", workspace.path("none.sqlite")])
    #expect(missing.code == 2 && missing.errors.contains("no store at "))
    let json = workspace.path("spots.json")
    #expect(try await weatherSpots(["add", "Brest", "1", "2", "--zone", "GMT", "--store", json]).code == 0)
    #expect(try await weatherSpots(["widget", "brest", "--store", json]).code == 64)
  }
}
