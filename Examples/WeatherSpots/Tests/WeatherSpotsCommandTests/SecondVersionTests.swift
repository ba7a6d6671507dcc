import Foundation
import Testing

/// Stores that the second version wrote open and show what they hold; how they were made is in Fixtures/second-version/README.md.
@Suite(.timeLimit(.minutes(10))) struct SecondVersionTests {
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
}
