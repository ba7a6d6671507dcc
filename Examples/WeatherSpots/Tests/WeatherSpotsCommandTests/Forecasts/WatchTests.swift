import Foundation
import Subprocess
import Testing

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// Two processes and one store: one watches what the other does.
@Suite(.timeLimit(.minutes(15))) struct WatchTests {
  private let workspace: Workspace

  init() throws { workspace = try Workspace() }

  private func add(_ name: String, _ more: [String] = [], to store: String) async throws {
    #expect(try await weatherSpots(["add", name, "1", "2", "--zone", "GMT", "--store", store] + more).code == 0)
  }

  private let program = Executable.path(FilePath(buildDirectory.appending(path: "weather-spots").path))

  @Test(arguments: [Signal.interrupt, .terminate]) func aChangeByAnotherProcessIsALine(_ signal: Signal) async throws {
    let store = workspace.path("spots.sqlite")
    try await add("First", to: store)
    let result = try await Subprocess.run(
      program, arguments: ["watch", "--store", store], input: .none, output: .sequence, error: .discarded
    ) { execution in
      var lines = execution.standardOutput.strings().makeAsyncIterator()
      #expect(try await lines.next() == "Watching 1 spots.")
      try await add("New", ["--kind", "pier"], to: store)
      #expect(try await lines.next() == "+ New    1.0000     2.0000  GMT  pier")
      try await add("New", ["--kind", "pier", "--rating", "3"], to: store)
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
    let store = workspace.path("spots.sqlite")
    try await add("First", to: store)
    _ = try await Subprocess.run(
      program, arguments: ["watch", "--country", "fr", "--json", "--store", store], input: .none, output: .sequence, error: .discarded
    ) { execution in
      var lines = execution.standardOutput.strings().makeAsyncIterator()
      #expect(try await lines.next() == "{\"watching\":0}")
      try await add("Elsewhere", ["--country", "JP"], to: store)
      try await add("Here", ["--country", "FR"], to: store)
      let came = try #require(try await lines.next())
      #expect(came.hasPrefix("{\"change\":\"added\",\"spot\":{\"country\":\"FR\",\"id\":\"Here @1.0,2.0\""))
      try await add("Here", ["--country", "ES"], to: store)
      let went = try #require(try await lines.next())
      #expect(went.hasPrefix("{\"change\":\"removed\",\"spot\":{\"country\":\"FR\""))
      try execution.send(signal: .kill)
    }
  }

  @Test func onATerminalTheListIsDrawnAnew() async throws {
    let store = workspace.path("spots.sqlite")
    try await add("First", to: store)
    let terminal = try Terminal()
    let result = try await Subprocess.run(
      program, arguments: ["watch", "--store", store], input: .none,
      output: .fileDescriptor(terminal.programSide, closeAfterSpawningProcess: true), error: .discarded
    ) { execution in
      let first = try await terminal.read(until: "\u{1B}[J")
      #expect(
        first
          == "\u{1B}[H1 spots (Ctrl-C ends)\u{1B}[K\r\n\u{1B}[K\r\nName   Latitude  Longitude  Zone\u{1B}[K\r\n"
          + "First    1.0000     2.0000  GMT\u{1B}[K\r\n\u{1B}[J")
      try await add("Another", to: store)
      let second = try await terminal.read(until: "\u{1B}[J")
      #expect(second.hasPrefix("\u{1B}[H2 spots"))
      #expect(second.contains("\u{1B}[K\r\nAnother    1.0000     2.0000  GMT\u{1B}[K\r\nFirst"))
      try execution.send(signal: .interrupt)
    }
    #expect(result.terminationStatus == .exited(0))
  }

  @Test func aJSONStoreIsNotWatched() async throws {
    let store = workspace.path("spots.json")
    try await add("First", to: store)
    #expect(
      try await weatherSpots(["watch", "--store", store])
        == Run(
          output: "",
          errors:
            "weather-spots: `watch` needs a .sqlite store: a JSON store has one user at a time and cannot change meanwhile\n", code: 64))
  }
}
