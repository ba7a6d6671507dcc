import Foundation
import LarderToolKit
import Testing

/// Names that nothing has.
@Suite(.timeLimit(.minutes(15))) struct UnknownNameTests {
  @Test(arguments: StoreKind.allCases) func `a collection that neither side has is no equality`(kind: StoreKind) async throws {
    let workspace = try Workspace()
    let store = try await workspace.store(kind)
    let run = try await larder("diff", store, store, "spts")
    #expect(run.code == 2 && run.errors.contains("\"spts\"") && run.errors.contains("did you mean spots?"), "\(run)")
    #expect(try await larder("diff", store, store, "spots") == Run(output: ""))
    // One side without the collection is a difference.
    let empty = workspace.path("empty.json")
    try Data("[]".utf8).write(to: workspace.url("source"))
    #expect(try await larder("import", "array", workspace.path("source"), "--to", empty, "--collection", "x", "--id", "id").code == 0)
    #expect(try await larder("diff", store, empty, "spots").code == 1)
  }

  @Test func `a dump does not begin behind a record of no collection`() async throws {
    let workspace = try Workspace()
    let store = try await workspace.store(.jsonFile)
    let run = try await larder("dump", store, "--after", "spts:zz")
    #expect(run.code == 1 && run.output.isEmpty && run.errors.contains("no \"spts\""), "\(run)")
    #expect(try await larder("dump", store, "--after", "spots:zz").code == 0)
  }

  @Test func `help on no command is refused with the nearest`() async throws {
    let run = try await larder("help", "quary")
    #expect(run.code == 64 && run.errors.contains("did you mean query?"), "\(run)")
    #expect(try await larder("help", "query").code == 0)
    #expect(try await larder("help").code == 0)
  }
}
