import Foundation
import Testing

/// Stores that the first version wrote open for ever; how they were made is in Fixtures/first-version/README.md.
@Suite(.timeLimit(.minutes(10))) struct FirstVersionTests {
  private let workspace: Workspace

  init() throws { workspace = try Workspace() }

  /// A copy of a store of the first version.
  private func store(_ name: String) throws -> String {
    let fixtures = try #require(Bundle.module.resourceURL).appending(path: "Fixtures/first-version")
    try FileManager.default.copyItem(at: fixtures.appending(path: name), to: workspace.directory.appending(path: name))
    return workspace.path(name)
  }

  private let list = """
    Brest          48.3903    -4.4863  Europe/Paris  FR  coast
    Cape Agulhas  -34.8300    20.0000  Africa/Johannesburg  ZA
    Santa Cruz     28.4682   -16.2546  Atlantic/Canary  ES
    Santa Cruz     36.9741  -122.0308  America/Los_Angeles  US  coast
    Zürich         47.3667     8.5500  Europe/Zurich  CH  lake

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
    let run = try await weatherSpots(["forecast", "Brest", "--now", "2026-11-21T09:30:00Z", "--store", store])
    #expect(run.code == 0)
    #expect(run.output.contains("  Source    disk, recorded data from the stand-in server, 30 min old\n"))
  }

  @Test(arguments: SpotCommandsTests.stores) func migratingRewritesEverySpotOnceAndKeepsACopy(_ name: String) async throws {
    let store = try store(name)
    let trial = try await weatherSpots(["migrate", "--dry-run", "--store", store])
    #expect(trial.code == 0 && trial.errors.isEmpty)
    #expect(trial.output.hasPrefix("Version 1: 5 spots would be rewritten as version 2\nTried in "))
    #expect(trial.output.hasSuffix(" ms; nothing was changed.\n"))
    let expected = "Rewrote 5 spots as version 2.\nThe store as it was is in \(store)-before-spots-v2"
    let run = try await weatherSpots(["migrate", "--store", store])
    #expect(run.output.hasPrefix(expected) && run.output.hasSuffix(".\n") && run.errors.isEmpty && run.code == 0)
    // Behind the name a process of a shared store puts its number, so that two that migrate do not take the same.
    let copy = String(run.output.dropLast(2).drop { $0 != "/" })
    #expect(name.hasSuffix("json") ? copy.hasSuffix("-v2") : copy.contains(/-v2-[0-9]+$/))
    #expect(try await weatherSpots(["list", "--store", store]) == Run(output: list))
    #expect(
      try await weatherSpots(["migrate", "--store", store]) == Run(output: "Nothing to do: all spots are of version 2.\n"))
    let again = try await weatherSpots(["migrate", "--dry-run", "--store", store])
    #expect(again.output.hasPrefix("Version 2: 5 spots stay as they are\n"))
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
    #expect(trial.output.contains("{\"failures\":0,\"spots\":5,\"version\":1},{\"failures\":0,\"spots\":1,\"version\":2}"))
  }
}
