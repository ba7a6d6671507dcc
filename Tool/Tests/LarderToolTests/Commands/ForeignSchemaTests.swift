import Foundation
import LarderToolKit
import Testing

/// Stores in a database with tables of other programs that SQLite reads in trusted files only, or not without those programs.
@Suite(.timeLimit(.minutes(15))) struct ForeignSchemaTests {
  /// Django's JSONField makes such a table.
  ///
  /// Later versions of SQLite take JSON_VALID for harmless.
  @Test func `a check over a function of JSON is named where it keeps a store from being written`() async throws {
    let workspace = try Workspace()
    let store = try await workspace.store(.sqliteFile)
    do {
      try ForeignDatabase(URL(filePath: store)).run(
        "CREATE TABLE app_m (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, data text NOT NULL "
          + "CHECK ((JSON_VALID(\"data\") OR \"data\" IS NULL))); INSERT INTO app_m (data) VALUES ('{}')")
    }
    try Data("[]".utf8).write(to: workspace.url("source"))
    for arguments in [
      ["import", "array", workspace.path("source"), "--to", store, "--collection", "x", "--id", "id"],
      ["backup", store, "--to", workspace.path("b.sqlite")],
    ] {
      let run = try await larder(arguments)
      if run.code == 0 { continue }
      #expect(run.code == 2 && run.errors.contains("unsupported") && run.errors.contains("CHECK"), "\(run)")
      #expect(!run.errors.contains("Check the disk"), "\(run)")
    }
    for arguments in [["verify", store], ["convert", store, "--to", workspace.path("c.json")]] {
      #expect(try await larder(arguments).code == 0)
    }
  }

  @Test(arguments: ["x COLLATE theirs", "theirs(x)"]) func `a backup names what only another program can sort`(term: String) async throws {
    let workspace = try Workspace()
    let store = try await workspace.store(.sqliteFile)
    do {
      let foreign = try ForeignDatabase(URL(filePath: store))
      foreign.addCollationAndFunction(named: "theirs")
      try foreign.run("CREATE TABLE t (x); CREATE INDEX i ON t (\(term)); INSERT INTO t VALUES ('a'), ('b')")
    }
    let run = try await larder("backup", store, "--to", workspace.path("b.sqlite"))
    #expect(run.code == 2 && run.errors.contains("unsupported") && run.errors.contains("collation or function"), "\(run)")
    #expect(run.errors.contains("larder convert") && !run.errors.contains("Check the disk"), "\(run)")
    #expect(try await larder("convert", store, "--to", workspace.path("c.sqlite")).code == 0)
  }
}
