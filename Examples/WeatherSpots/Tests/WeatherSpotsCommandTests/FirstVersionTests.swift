import Foundation
import Testing

/// Stores that the first version wrote open for ever; how they were made is in Fixtures/first-version/README.md.
@Suite(.timeLimit(.minutes(15))) struct FirstVersionTests {
  private let workspace: Workspace

  init() throws { workspace = try Workspace() }

  /// A copy of a store of the first version.
  private func store(_ name: String) throws -> String {
    let fixtures = try #require(Bundle.module.resourceURL).appending(path: "Fixtures/first-version")
    try FileManager.default.copyItem(at: fixtures.appending(path: name), to: workspace.directory.appending(path: name))
    return workspace.path(name)
  }

  private let list = """
    Brest          48.3903    -4.4863  Europe/Paris         FR  coast
    Cape Agulhas  -34.8300    20.0000  Africa/Johannesburg  ZA
    Santa Cruz     28.4682   -16.2546  Atlantic/Canary      ES
    Santa Cruz     36.9741  -122.0308  America/Los_Angeles  US  coast
    Zürich         47.3667     8.5500  Europe/Zurich        CH  lake

    """

  @Test(arguments: SpotCommandsTests.stores) func itOpensAndReadingDoesNotRewriteIt(_ name: String) async throws {
    let store = try store(name)
    #expect(try await weatherSpots(["list", "--store", store]) == Run(output: list))
    #expect(
      try await weatherSpots(["list", "--country", "fr", "--store", store])
        == Run(output: "Brest   48.3903    -4.4863  Europe/Paris  FR  coast\n"))
    #expect(try await weatherSpots(["verify", "--store", store]) == Run(output: "Sound: 6 records read back, newest commit 5.\n"))
    let trial = try await weatherSpots(["migrate", "--dry-run", "--json", "--store", store])
    #expect(trial.output.hasPrefix("{\"found\":[{\"failures\":0,\"spots\":5,\"version\":1}],\"milliseconds\":"))
    let spelling = name.hasSuffix("json") ? "\"country\":\"fr\"" : "fr"
    #expect(try Data(contentsOf: URL(filePath: store)).range(of: Data(spelling.utf8)) != nil)
  }

  @Test(arguments: SpotCommandsTests.stores) func itsForecastIsThere(_ name: String) async throws {
    let store = try store(name)
    // Twice: the first run takes it over into the caches. Nothing listens on port 1.
    for policy in ["cache-only", "cache-first"] {
      let run = try await weatherSpots([
        "forecast", "Brest", "--now", "2026-11-21T09:30:00Z", "--store", store, "--policy", policy, "--api", "http://127.0.0.1:1",
      ])
      #expect(run.code == 0)
      #expect(run.output.contains("  Sea    2.6 m every 10 s from WNW, water 14.3 °C\n"))
      #expect(run.output.contains("  Data   30 min old, from disk, recorded data\n"))
    }
    #expect(try await weatherSpots(["verify", "--store", store]).output.hasPrefix("Sound: "))
    #expect(try await weatherSpots(["list", "--store", store]) == Run(output: list))
  }

  @Test(arguments: SpotCommandsTests.stores) func itsForecastIsTheLastKnownOneOfTwoDays(_ name: String) async throws {
    let store = try store(name)
    func run(_ now: String) async throws -> Run {
      try await weatherSpots(["forecast", "Brest", "--day", "2026-11-21", "--now", now, "--store", store, "--api", "http://127.0.0.1:1"])
    }
    let late = try await run("2026-11-22T21:00:00Z")
    #expect(late.code == 4 && late.output.contains("36 h old") && late.errors.contains("connection refused"))
    let later = try await run("2026-11-23T09:00:01Z")
    #expect(later.code == 69 && later.output.isEmpty)
  }

  @Test(arguments: SpotCommandsTests.stores) func migratingRewritesEverySpotOnceAndKeepsACopy(_ name: String) async throws {
    let store = try store(name)
    let trial = try await weatherSpots(["migrate", "--dry-run", "--store", store])
    #expect(trial.code == 0 && trial.errors.isEmpty)
    #expect(trial.output.hasPrefix("Version 1: 5 spots would be rewritten as version 3\nTried in "))
    #expect(trial.output.hasSuffix(" ms; nothing was changed.\n"))
    let migrated = try await weatherSpots(["migrate", "--store", store])
    // A SQLite store may be migrated by two programs at a time: each names its copy by its process.
    let copy = try #require(migrated.output.firstMatch(of: /is in (.*)\.\n/)?.1).description
    #expect(copy.hasPrefix("\(store)-before-spots-v3"))
    #expect(migrated == Run(output: "Rewrote 5 spots as version 3.\nThe store as it was is in \(copy).\n"))
    #expect(try await weatherSpots(["list", "--store", store]) == Run(output: list))
    #expect(
      try await weatherSpots(["migrate", "--store", store]) == Run(output: "Nothing to do: all spots are of version 3.\n"))
    let again = try await weatherSpots(["migrate", "--dry-run", "--store", store])
    #expect(again.output.hasPrefix("Version 3: 5 spots stay as they are\n"))
    let old = workspace.path("copy-\(name)")
    try FileManager.default.moveItem(atPath: copy, toPath: old)
    #expect(try await weatherSpots(["list", "--store", old]) == Run(output: list))
    let trialOfCopy = try await weatherSpots(["migrate", "--dry-run", "--store", old])
    #expect(trialOfCopy.output.hasPrefix("Version 1: 5 spots"))
  }

  @Test(arguments: SpotCommandsTests.stores) func aStoreOfBothVersionsIsTriedVersionByVersion(_ name: String) async throws {
    let store = try store(name)
    #expect(try await weatherSpots(["add", "New", "1", "2", "--zone", "GMT", "--rating", "3", "--store", store]).code == 0)
    let trial = try await weatherSpots(["migrate", "--dry-run", "--json", "--store", store])
    #expect(trial.output.contains("{\"failures\":0,\"spots\":5,\"version\":1},{\"failures\":0,\"spots\":1,\"version\":3}"))
  }
}
