import Foundation
import Larder
import LarderToolKit
import Testing

/// Every reading command on every store that the repository keeps.
@Suite(.timeLimit(.minutes(15))) struct FixtureTests {
  @Test(arguments: Fixtures.mainFiles) func `every command reads every fixture and leaves it as it was`(fixture: URL) async throws {
    let workspace = try Workspace()
    let store = try Fixtures.copy(fixture, to: workspace)
    let reading = try StoreReading(path: store)
    let record = try #require(reading.records.first { $0.value != nil })
    let before = try DirectoryState(workspace)
    for arguments in [
      ["verify", store], ["inspect", store], ["get", store, record.collection, record.key.text, "--revision"],
      ["query", store, record.collection, "--where", "$revision > 0", "--limit", "2"], ["dump", store, "--tombstones"], ["history", store],
      ["diff", store, store],
    ] {
      for json in [[], ["--json"]] {
        let run = try await larder(arguments + json)
        #expect(run.code == 0, "\(arguments) says \(run.errors)")
        // Equal stores have no differences, and a folded journal is no history.
        if !["diff", "history"].contains(arguments[0]) { #expect(!run.output.isEmpty) }
      }
    }
    #expect(try DirectoryState(workspace) == before)
    try ToolTrial(store, in: workspace).run(TriedCommand.writing, fixture.lastPathComponent) { command, answer in
      // A file with a journal cannot be resealed, and neither can a database; a torn log may have lost a commit.
      let isTorn = command == .repair && answer.status == .negative
      #expect(answer.status == .success || isTorn || command == .reseal, "\(command): \(answer.text)")
    }
  }

  @Test func `all fixtures are found`() { #expect(Fixtures.mainFiles.count >= 13) }
}
