import Foundation
import Testing

/// A store of schema version 1, which an earlier commit of the program wrote; how it was made is in Fixtures/old-store/README.md.
@Suite(.timeLimit(.minutes(15))) struct OldStoreTests {
  private let workspace = Workspace()
  private var store: String { workspace.path("spots.sqlite") }

  init() throws {
    let fixture = try #require(Bundle.module.resourceURL).appending(path: "Fixtures/old-store/spots.sqlite")
    try FileManager.default.copyItem(at: fixture, to: URL(filePath: store))
  }

  private let list = """
    Brest          48.3903    -4.4863  Europe/Paris         FR  coast
    Cape Agulhas  -34.8300    20.0000  Africa/Johannesburg  ZA
    Santa Cruz     28.4682   -16.2546  Atlantic/Canary      ES
    Santa Cruz     36.9741  -122.0308  America/Los_Angeles  US  coast
    Zürich         47.3667     8.5500  Europe/Zurich        CH  lake

    """

  @Test func itOpensAndReadingDoesNotRewriteIt() async throws {
    #expect(try await weatherSpots(["list", "--store", store]) == Run(output: list))
    #expect(
      try await weatherSpots(["list", "--country", "fr", "--store", store])
        == Run(output: "Brest   48.3903    -4.4863  Europe/Paris  FR  coast\n"))
    let shown = try await weatherSpots(["show", "Cape Agulhas", "--json", "--store", store])
    #expect(shown.output.contains(#""rating":0"#) && shown.output.contains(#""tags":[]"#))
    #expect(try await weatherSpots(["verify", "--store", store]) == Run(output: "Sound: 6 records read back, newest commit 5.\n"))
    let trial = try await weatherSpots(["migrate", "--dry-run", "--json", "--store", store])
    #expect(trial.output.hasPrefix("{\"found\":[{\"failures\":0,\"spots\":5,\"version\":1}],\"milliseconds\":"))
  }

  @Test func migratingRewritesEverySpotOnceAndKeepsACopy() async throws {
    let trial = try await weatherSpots(["migrate", "--dry-run", "--store", store])
    #expect(trial.code == 0 && trial.errors.isEmpty)
    #expect(trial.output.hasPrefix("Version 1: 5 spots would be rewritten as version 2\nTried in "))
    #expect(trial.output.hasSuffix(" ms; nothing was changed.\n"))
    let migrated = try await weatherSpots(["migrate", "--store", store])
    // A SQLite store may be migrated by two programs at a time: each names its copy by its process.
    let copy = try #require(migrated.output.firstMatch(of: /is in (.*)\.\n/)?.1).description
    #expect(copy.hasPrefix("\(store)-before-spots-v2"))
    #expect(migrated == Run(output: "Rewrote 5 spots as version 2.\nThe store as it was is in \(copy).\n"))
    #expect(try await weatherSpots(["list", "--store", store]) == Run(output: list))
    #expect(try await weatherSpots(["migrate", "--store", store]) == Run(output: "Nothing to do: all spots are of version 2.\n"))
    let again = try await weatherSpots(["migrate", "--dry-run", "--store", store])
    #expect(again.output.hasPrefix("Version 2: 5 spots stay as they are\n"))
    let old = workspace.path("copy.sqlite")
    try FileManager.default.moveItem(atPath: copy, toPath: old)
    #expect(try await weatherSpots(["list", "--store", old]) == Run(output: list))
  }

  @Test func aStoreOfBothVersionsIsTriedVersionByVersion() async throws {
    #expect(try await weatherSpots(["add", "New", "1", "2", "--zone", "GMT", "--rating", "3", "--store", store]).code == 0)
    let trial = try await weatherSpots(["migrate", "--dry-run", "--json", "--store", store])
    #expect(trial.output.contains("{\"failures\":0,\"spots\":5,\"version\":1},{\"failures\":0,\"spots\":1,\"version\":2}"))
  }
}
