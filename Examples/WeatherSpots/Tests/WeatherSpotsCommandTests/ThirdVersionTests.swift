import Foundation
import LarderTesting
import Testing

/// Stores that the third version wrote, which synced spots without tags and visits; how they were made is in Fixtures/third-version/README.md.
@Suite(.timeLimit(.minutes(15))) struct ThirdVersionTests {
  private let workspace: Workspace

  init() throws { workspace = try Workspace() }

  private func store(_ name: String) throws -> String {
    let fixtures = try #require(Bundle.module.resourceURL).appending(path: "Fixtures/third-version")
    try FileManager.default.copyItem(at: fixtures.appending(path: name), to: workspace.directory.appending(path: name))
    return workspace.path(name)
  }

  @Test(arguments: SpotCommandsTests.stores) func itsSpotsAreShownWithoutTagsAndVisits(_ name: String) async throws {
    let store = try store(name)
    let shown = try await weatherSpots(["show", "Cape Agulhas", "--json", "--store", store])
    #expect(shown.output.contains(#""notes":"calm today","rating":4,"source":"","tags":[],"#) && shown.output.hasSuffix(#""visits":0}\#n"#))
    #expect(try await weatherSpots(["sync", "status", "--store", store]).output.contains(": 2 unsent, 0 conflicts, 0 rejected."))
    #expect(try await weatherSpots(["verify", "--store", store]).output.hasPrefix("Sound: "))
  }

  /// What it had not sent is sent, and visits are counted on top of what has none.
  @Test(arguments: SpotCommandsTests.stores) func itsUnsentEditsAreSent(_ name: String) async throws {
    let server = try SyncStandIn()
    let url = try await server.start()
    let store = try store(name)
    let other = workspace.path("other.sqlite")
    #expect(try await weatherSpots(["visit", "Cape Agulhas", "--store", store]).code == 0)
    #expect(try await weatherSpots(["tag", "Cape Agulhas", "+cape", "--store", store]).code == 0)
    for store in [store, other, store] {
      let run = try await weatherSpots(["sync", url, "--store", store])
      #expect(run.code == 0, "\(run.testDescription)")
    }
    let text = try await weatherSpots(["export", "--format", "csv", "--store", store]).output
    #expect(text.contains("Cape Agulhas,-34.83,20.0,Africa/Johannesburg,,,,4,calm today,cape,1\n"))
    #expect(try await weatherSpots(["export", "--format", "csv", "--store", other]).output == text)
    #expect(try await weatherSpots(["sync", "status", "--store", store]).output.contains(": 0 unsent, 0 conflicts, 0 rejected."))
    await server.stop()
  }
}
