import Foundation
import Larder
import LarderToolKit
import Testing

/// Queries with fields that no record has, and commands that there are not: refused with the nearest.
@Suite struct MissingFieldTests {
  /// Makes a store with some values under numbers, and returns its path.
  private func store(_ values: [String], in workspace: Workspace) async throws -> String {
    try Data("[\(values.enumerated().map { "{\"id\":\($0),\"value\":\($1)}" }.joined(separator: ","))]".utf8).write(to: workspace.url("a"))
    let path = workspace.path("s.json")
    let run = try await larder("import", "array", workspace.path("a"), "--to", path, "--collection", "notes", "--id", "id")
    try #require(run.code == 0, "\(run)")
    return path
  }

  @Test(arguments: [
    (["--where", "contry = 'JP'"], "contry (did you mean country?)"), (["--sort", "nme:desc"], "nme (did you mean name?)"),
    (["--select", "id,cuntry"], "cuntry (did you mean country?)"),
    (["--where", "Rating > 3 or name = 'x'"], "Rating (did you mean rating?)"),
    (["--where", "not (zzz in (1, 2))"], "zzz (there are country, id, name, rating, tags)"), (["--where", "zzz = null"], "zzz"),
    (["--where", "name.first = 'x'"], "name.first"), (["--where", "name[0] = 'x'"], "name[0] (it is no array)"),
    (["--where", "`\u{1B}[31m` = 1"], "\\u{1B}[31m"),
    (["--where", "contry = 1", "--sort", "nme"], "contry (did you mean country?); nme (did"),
  ]) func `a field that no record has is refused`(arguments: [String], part: String) async throws {
    let workspace = try Workspace()
    let store = try await workspace.store(.jsonFile)
    let run = try await larder(["query", store, "spots"] + arguments)
    #expect(run.code == 2 && run.output.isEmpty && run.errors.contains(part) && run.errors.contains("--missing-ok"), "\(run)")
    #expect(try await larder(["query", store, "spots", "--missing-ok"] + arguments).code == 0)
  }

  @Test func `a field that some records have is a field`() async throws {
    let workspace = try Workspace()
    let path = try await store(
      [
        #"{"city":null,"tags":[],"places":[]}"#, #"{"city":{"name":"Ise"},"tags":["a"],"places":[{"lat":1},{"lon":2}],"rare":1}"#, "null",
        "3",
        "[]",
      ], in: workspace)
    for field in [
      "value.city.name", "value.tags[0]", "value.tags[7]", "value.places[0].lon", "value.places[5].lat", "value.rare", "value[3]", "$key",
      "$revision",
    ] {
      let run = try await larder("query", path, "notes", "--where", "\(field) != null", "--sort", field, "--select", field)
      #expect(run.code == 0, "\(field): \(run)")
    }
    for (field, nearest) in [
      ("value.city.nane", "value.city.name"), ("value.places[0].lan", "value.places[0].la"), ("value.raer", "value.rare"),
      ("valeu.city", "value.city"),
    ] {
      let run = try await larder("query", path, "notes", "--sort", field)
      #expect(run.code == 2 && run.errors.contains("(did you mean \(nearest)"), "\(field): \(run)")
    }
  }

  /// Nothing can be said of a field before there is a record, behind null, and in an empty array.
  @Test func `where no record could have it, nothing is refused`() async throws {
    let workspace = try Workspace()
    let path = try await store(["null", "[]"], in: workspace)
    #expect(try await larder("query", path, "notes", "--where", "value[0].name = 1").code == 0)
    let empty = try await workspace.store(.sqliteFile)
    let spots = try await LocalRepository<Spot>(backend: StoreFile(path: empty).backend, schema: .init("spots"))
    try await spots.deleteAll()
    try await spots.close()
    #expect(try await larder("query", empty, "spots", "--where", "contry = 1", "--sort", "x") == Run(output: ""))
  }

  @Test func `a command that there is not is named with the nearest`() async throws {
    for (name, nearest) in [("quary", "query"), ("Verify", "verify"), ("improt", "import"), ("bakcup", "backup")] {
      let run = try await larder(name, "s.json")
      #expect(run.code == 64 && run.errors.contains("expected a command, found \"\(name)\"; did you mean \(nearest)?"), "\(run)")
    }
    let run = try await larder("\u{1B}[31m")
    #expect(run.code == 64 && run.errors.contains(#"found "\u{1B}[31m""#) && !run.errors.contains("did you mean"))
    #expect(try await larder("help", "query").code == 0)
    #expect(try await larder("--version") == Run(output: "0.1.0\n"))
  }
}
