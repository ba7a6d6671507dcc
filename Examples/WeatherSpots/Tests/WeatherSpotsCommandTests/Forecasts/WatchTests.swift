import Foundation
import Subprocess
import Testing

/// Two processes and one store: one watches what the other does.
@Suite(.timeLimit(.minutes(15))) struct WatchTests {
  private let workspace = Workspace()
  private var store: String { workspace.path("spots.sqlite") }

  init() async throws { try await add("First") }

  private func add(_ name: String, _ more: [String] = []) async throws {
    #expect(try await weatherSpots(["add", name, "1", "2", "--zone", "GMT", "--store", store] + more).code == 0)
  }

  @Test(arguments: [Signal.interrupt, .terminate]) func aChangeByAnotherProcessIsALine(_ signal: Signal) async throws {
    let result = try await Subprocess.run(
      .built("weather-spots"), arguments: ["watch", "--store", store], input: .none, output: .sequence, error: .discarded
    ) { execution in
      var lines = execution.standardOutput.strings().makeAsyncIterator()
      #expect(try await lines.next() == "Watching 1 spots.")
      try await add("New", ["--kind", "pier"])
      #expect(try await lines.next() == "+ New    1.0000     2.0000  GMT  pier")
      try await add("New", ["--kind", "pier", "--rating", "3"])
      #expect(try await lines.next() == "~ New    1.0000     2.0000  GMT  pier  ***")
      _ = try await weatherSpots(["remove", "New", "--store", store])
      #expect(try await lines.next() == "- New    1.0000     2.0000  GMT  pier  ***")
      try execution.send(signal: signal)
      #expect(try await lines.next() == nil)
    }
    #expect(result.terminationStatus == .exited(0))
    // The last one to leave has closed the store.
    #expect(try FileManager.default.contentsOfDirectory(atPath: workspace.directory.path) == ["spots.sqlite"])
  }

  @Test func onlyWhatPassesTheFilterIsTold() async throws {
    _ = try await Subprocess.run(
      .built("weather-spots"), arguments: ["watch", "--country", "fr", "--json", "--store", store], input: .none, output: .sequence,
      error: .discarded
    ) { execution in
      var lines = execution.standardOutput.strings().makeAsyncIterator()
      #expect(try await lines.next() == "{\"watching\":0}")
      try await add("Elsewhere", ["--country", "JP"])
      try await add("Here", ["--country", "FR"])
      let came = try #require(try await lines.next())
      #expect(came.hasPrefix("{\"change\":\"added\",\"spot\":{\"country\":\"FR\",\"id\":\"Here @1.0,2.0\""))
      try await add("Here", ["--country", "ES"])
      let went = try #require(try await lines.next())
      #expect(went.hasPrefix("{\"change\":\"removed\",\"spot\":{\"country\":\"FR\""))
      try execution.send(signal: .kill)
    }
  }

  @Test func onATerminalTheListIsDrawnAnew() async throws {
    let terminal = try Terminal()
    let result = try await Subprocess.run(
      .built("weather-spots"), arguments: ["watch", "--store", store], input: .none,
      output: .fileDescriptor(terminal.programSide, closeAfterSpawningProcess: true), error: .discarded
    ) { execution in
      let first = try await terminal.read(until: "\u{1B}[J")
      #expect(
        first
          == "\u{1B}[H1 spots (Ctrl-C ends)\u{1B}[K\r\n\u{1B}[K\r\nName   Latitude  Longitude  Zone\u{1B}[K\r\n"
          + "First    1.0000     2.0000  GMT\u{1B}[K\r\n\u{1B}[J")
      try await add("Another")
      let second = try await terminal.read(until: "\u{1B}[J")
      #expect(second.hasPrefix("\u{1B}[H2 spots"))
      #expect(second.contains("\u{1B}[K\r\nAnother    1.0000     2.0000  GMT\u{1B}[K\r\nFirst"))
      try execution.send(signal: .interrupt)
    }
    #expect(result.terminationStatus == .exited(0))
  }

  @Test func aJSONStoreIsNotWatched() async throws {
    let store = workspace.path("spots.json")
    #expect(try await weatherSpots(["add", "First", "1", "2", "--zone", "GMT", "--store", store]).code == 0)
    #expect(
      try await weatherSpots(["watch", "--store", store])
        == Run.failure("`watch` needs a .sqlite store: a JSON store has one user at a time and cannot change meanwhile", 64))
  }
}
