import Foundation
import Larder
import Testing

@testable import LarderToolKit

@Suite struct ResealingTests {
  /// A store, a copy of it, and an edit of its text.
  private func edited(_ workspace: Workspace, _ edit: (inout String) -> Void) async throws -> (store: String, copy: String) {
    let store = try await workspace.store(.jsonFile)
    try FileManager.default.copyItem(atPath: store, toPath: workspace.path("copy.json"))
    var text = try String(contentsOfFile: store, encoding: .utf8)
    edit(&text)
    try Data(text.utf8).write(to: URL(filePath: store))
    return (store, workspace.path("copy.json"))
  }

  @Test func `a changed, an added and a removed record are shown, and taken over where that is accepted`() async throws {
    let workspace = try Workspace()
    let (store, copy) = try await edited(workspace) { text in
      text = text.replacing(#""rating":5"#, with: #""rating":4"#)
      let line = text.split(separator: "\n").first { $0.contains("\"brest\"") } ?? ""
      text = text.replacing(line, with: #"{"in":"spots","id":"new","value":{"id":"new","name":"New","rating":1,"tags":[]}},"#)
    }
    let before = try Data(contentsOf: URL(filePath: store))
    let plain = try await larder("reseal", store)
    #expect(plain.code == 1)
    #expect(plain.output.contains("changed spots jogashima\nadded spots new\nremoved 1 record:"), "\(plain.output)")
    let shown = try await larder("reseal", store, "--original", copy)
    #expect(shown.code == 1)
    #expect(shown.output.hasPrefix("removed spots brest\nchanged spots jogashima: rating\nadded spots new\n"), "\(shown.output)")
    #expect(try Data(contentsOf: URL(filePath: store)) == before)

    let run = try await larder("reseal", store, "--original", copy, "--accept")
    #expect(run.code == 0, "\(run)")
    let reading = try StoreReading(path: store)
    #expect(reading.report.storeID == (try StoreReading(path: copy)).report.storeID)
    #expect(reading.report.commit.number == 5 && reading.report.tombstoneHorizon == .zero)
    #expect(
      reading.records.map { "\($0.key.text) \($0.revision) \($0.value == nil ? "deleted" : "")" } == [
        "brest 5 deleted", "gone 4 deleted", "jogashima 5 ", "new 5 ",
      ])
    let names = try FileManager.default.contentsOfDirectory(atPath: workspace.directory.path)
    let kept = try #require(names.first { $0.contains("-edited-") })
    #expect(try Data(contentsOf: workspace.url(kept)) == before)
    #expect(try await larder("reseal", store).code == 0)
    let app = try await Store.open(JSONFileBackend(file: URL(filePath: store)))
    let spots = try await app.repository(RepositorySchema<Spot>("spots"))
    #expect(try await spots.find(by: "jogashima")?.rating == 4)
    try await app.close()
  }

  @Test func `a file that an editor has only formatted keeps its revisions`() async throws {
    let workspace = try Workspace()
    let (store, copy) = try await edited(workspace) {
      $0 = $0.replacing("\n", with: "\n\n  ").replacing(#","value":"#, with: ",\n \"value\": ")
    }
    #expect(try await larder("verify", store).code == 1)
    #expect(try await larder("reseal", store).code == 1)
    #expect(try await larder("reseal", store, "--accept").code == 0)
    let (now, before) = (try StoreReading(path: store), try StoreReading(path: copy))
    #expect(zip(now.records, before.records).allSatisfy { $0.equals($1) } && now.records.count == before.records.count)
  }

  @Test func `a record that vanished without a name ends what is known of deletions`() async throws {
    let workspace = try Workspace()
    let (store, _) = try await edited(workspace) { text in
      let line = text.split(separator: "\n").first { $0.contains("\"brest\"") } ?? ""
      text = text.replacing(line + "\n", with: "")
    }
    #expect(try await larder("reseal", store, "--accept").code == 0)
    #expect(try StoreReading(path: store).report.tombstoneHorizon.number == 5)
  }

  @Test func `what cannot be taken over is refused, and left as it was`() async throws {
    let workspace = try Workspace()
    let (store, _) = try await edited(workspace) { $0 = $0.replacing(#""rating":5"#, with: #""rating":"#) }
    let before = try Data(contentsOf: URL(filePath: store))
    let run = try await larder("reseal", store, "--accept")
    #expect(run.code == 2 && run.errors.contains("line 4: "), "\(run)")
    try Data().write(to: workspace.url("spots.json-journal"))
    #expect(try await larder("reseal", store, "--accept").errors.contains("expected no journal"))
    #expect(try Data(contentsOf: URL(filePath: store)) == before)
    let database = try await workspace.store(.sqliteFile)
    #expect(try await larder("reseal", database).errors.contains("unsupported"))
  }

  @Test(arguments: Interruption.allCases) func `a resealing that is killed is repeated`(end: Interruption) async throws {
    let workspace = try Workspace()
    let (store, _) = try await edited(workspace) { $0 = $0.replacing(#""rating":5"#, with: #""rating":4"#) }
    let before = try Data(contentsOf: URL(filePath: store))
    _ = try await end.run(["reseal", store, "--accept"])
    let now = try Data(contentsOf: URL(filePath: store))
    if now != before { #expect(try await larder("verify", store).code == 0) }
    #expect(try await larder("reseal", store, "--accept").code == 0)
    #expect(try StoreReading(path: store).report.commit.number == 5)
  }

  @Test func `a file that an app has open is refused`() async throws {
    let workspace = try Workspace()
    let store = try await workspace.store(.jsonFile)
    let app = try await Store.open(JSONFileBackend(file: URL(filePath: store)))
    #expect(try await larder("reseal", store, "--accept").errors.contains("locked"))
    try await app.close()
  }
}
