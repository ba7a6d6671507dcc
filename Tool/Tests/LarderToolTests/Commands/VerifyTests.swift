import Foundation
import LarderToolKit
import Testing

@Suite struct VerifyTests {
  @Test(arguments: StoreKind.allCases) func `a sound store is sound`(kind: StoreKind) async throws {
    let workspace = try Workspace()
    let path = try await workspace.store(kind)
    let run = try await larder("verify", path)
    #expect(run == Run(output: "\(path): sound: 2 records and 1 tombstone at commit 4\n"))
  }

  @Test(arguments: StoreKind.allCases) func `a flipped byte is damage`(kind: StoreKind) async throws {
    let workspace = try Workspace()
    let path = try await workspace.store(kind)
    var bytes = try Data(contentsOf: URL(filePath: path))
    let at = try #require(bytes.range(of: Data("Jogashima pier".utf8))).lowerBound
    bytes[at] = UInt8(ascii: "Y")
    try bytes.write(to: URL(filePath: path))
    let run = try await larder("verify", "--json", path)
    #expect(run.code == 1)
    #expect(run.output.contains(#""verdict":"damaged""#))
  }

  @Test func `tables of another program are no damage`() async throws {
    let workspace = try Workspace()
    let path = try await workspace.store(.sqliteFile)
    do {
      try ForeignDatabase(URL(filePath: path)).run(
        "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER); INSERT INTO _litestream_seq VALUES (1, 1); "
          + "CREATE TABLE larder_notes (id TEXT PRIMARY KEY, x) WITHOUT ROWID; INSERT INTO larder_notes VALUES ('brest', 1); "
          + "CREATE VIRTUAL TABLE words USING fts5(text); INSERT INTO words VALUES ('a b c'); CREATE VIEW v AS SELECT * FROM spots")
    }
    #expect(try await larder("verify", path) == Run(output: "\(path): sound: 2 records and 1 tombstone at commit 4\n"))
    for arguments in [
      ["inspect", path], ["get", path, "spots", "brest"], ["backup", path, "--to", workspace.path("copy.sqlite")],
      ["convert", path, "--to", workspace.path("copy.json")], ["repair", path, "--to", workspace.path("saved.json")],
      ["diff", path, workspace.path("copy.json")], ["diff", path, workspace.path("saved.json")],
      ["diff", path, workspace.path("copy.sqlite")], ["verify", workspace.path("copy.sqlite")],
    ] {
      let run = try await larder(arguments)
      #expect(run.code == 0, "\(arguments): \(run)")
    }
  }

  @Test func `no file and no argument have codes of their own`() async throws {
    #expect(try await larder("verify", "/nonexistent/spots.json").code == 2)
    #expect(try await larder("verify").code == 64)
  }
}
