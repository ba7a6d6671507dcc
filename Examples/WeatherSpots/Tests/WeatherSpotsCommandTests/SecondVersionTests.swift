import Foundation
import Testing

/// Stores that the second version wrote open and show what they hold; how they were made is in Fixtures/second-version/README.md.
@Suite(.timeLimit(.minutes(15))) struct SecondVersionTests {
  private let workspace: Workspace

  init() throws { workspace = try Workspace() }

  @Test(arguments: SpotCommandsTests.stores, ["Brest", "Zürich"]) func itsForecastsAreShown(_ name: String, _ spot: String) async throws {
    let fixtures = try #require(Bundle.module.resourceURL).appending(path: "Fixtures/second-version")
    try FileManager.default.copyItem(at: fixtures.appending(path: name), to: workspace.directory.appending(path: name))
    let store = workspace.path(name)
    let run = try await weatherSpots(["forecast", spot, "--now", "2026-11-21T09:30:00Z", "--store", store, "--policy", "cache-only"])
    #expect(run.code == 0)
    #expect(run.output.contains("  Sea    2.6 m every 10 s from WNW, water 14.3 °C\n"))
    #expect(run.output.contains("  Data   30 min old, from disk, recorded data\n"))
    #expect(try await weatherSpots(["verify", "--store", store]).output.hasPrefix("Sound: "))
  }

  /// It kept what it fetched under the provider's name, whatever server was asked; now that belongs to the server.
  @Test(arguments: SpotCommandsTests.stores) func itsForecastsBelongToTheServerThatWasAsked(_ name: String) async throws {
    let fixtures = try #require(Bundle.module.resourceURL).appending(path: "Fixtures/second-version")
    try FileManager.default.copyItem(at: fixtures.appending(path: name), to: workspace.directory.appending(path: name))
    let store = workspace.path(name)
    func run(_ api: String) async throws -> Run {
      try await weatherSpots(["forecast", "Brest", "--now", "2026-11-21T09:30:00Z", "--store", store, "--api", api])
    }
    // Nothing listens on port 1; of another server nothing is stored.
    #expect(try await run("http://localhost:1").code == 69)
    // Twice: the first run moves them.
    for _ in 0..<2 {
      let found = try await run("http://127.0.0.1:1")
      #expect(found.code == 0 && found.errors.isEmpty, "\(found.testDescription)")
      #expect(found.output.contains("  Sea    2.6 m every 10 s from WNW, water 14.3 °C\n"))
      #expect(found.output.contains("  Data   30 min old, from disk, recorded data\n"))
    }
    #expect(try await run("http://localhost:1").code == 69)
    #expect(try await weatherSpots(["verify", "--store", store]).output.hasPrefix("Sound: "))
  }
}
