import Foundation
import Larder
import LarderToolKit
import Testing

/// The output of the reading commands on a small store of each kind.
@Suite(.timeLimit(.minutes(15))) struct ReadingTests {
  @Test(arguments: StoreKind.allCases) func `get writes the value as it is stored`(kind: StoreKind) async throws {
    let workspace = try Workspace()
    let store = try await workspace.store(kind)
    let value = #"{"country":"FR","id":"brest","name":"Brest","rating":3,"tags":[]}"#
    #expect(try await larder("get", store, "spots", "brest") == Run(output: value + "\n"))
    let json = try await larder("get", "--json", store, "spots", "brest").output
    #expect(json.hasPrefix(#"{"byteCount":65,"checksum":""#) && json.contains(#""revision":2,"value":\#(value),"version":1}"#))
  }

  @Test(arguments: StoreKind.allCases) func `get tells absent from deleted, and names the collections`(kind: StoreKind) async throws {
    let workspace = try Workspace()
    let store = try await workspace.store(kind)
    let run = try await larder("get", store, "spots", "nowhere", "gone")
    let errors = "larder: there is no record \"nowhere\"\nlarder: the record \"gone\" was deleted by commit 4\n"
    #expect(run == Run(output: "", errors: errors, code: 1))
    let other = try await larder("get", store, "spot", "brest")
    #expect(other.code == 1 && other.errors.contains("it has spots"))
  }

  @Test(arguments: StoreKind.allCases) func `query writes a table`(kind: StoreKind) async throws {
    let workspace = try Workspace()
    let store = try await workspace.store(kind)
    let run = try await larder("query", store, "spots", "--sort", "rating", "--select", "$key,rating,tags[0]")
    #expect(run == Run(output: "$key       rating  tags[0]\nbrest           3\njogashima       5  pier\n"))
  }

  @Test(arguments: StoreKind.allCases) func `query writes lines or an array of JSON`(kind: StoreKind) async throws {
    let workspace = try Workspace()
    let store = try await workspace.store(kind)
    let condition = #"tags contains "pier" and not (rating < 5)"#
    let line = #"{"key":"jogashima","revision":1,"value":{"name":"Jogashima pier"},"version":1}"#
    let arguments = ["query", store, "spots", "--where", condition, "--select", "name"]
    #expect(try await larder(arguments + ["--json"]) == Run(output: line + "\n"))
    #expect(try await larder(arguments + ["--array"]) == Run(output: "[\(line)]\n"))
  }

  @Test func `query shows where a condition is wrong`() async throws {
    let run = try await larder("query", "spots.json", "spots", "--where", "rating >= 4 and country = JP")
    #expect(run.code == 64)
    #expect(
      run.errors.hasPrefix(
        """
        Error: expected a value, found "JP"; a text stands in quotation marks: "JP"
          rating >= 4 and country = JP
                                    ^
        """))
  }

  @Test(arguments: ["or", "and"]) func `a condition of very many terms is answered`(word: String) async throws {
    let workspace = try Workspace()
    let store = try await workspace.store(.jsonFile)
    let terms = Array(repeating: word == "or" ? "rating=9" : "rating=5", count: 9_000).joined(separator: " \(word) ")
    let run = try await larder("query", store, "spots", "--select", "name", "--where", "\(terms) \(word) rating = 5")
    #expect(run == Run(output: "name\nJogashima pier\n"), "\(run.code) \(run.errors.suffix(200))")
  }

  @Test func `history lists the journal of a JSON file`() async throws {
    let workspace = try Workspace()
    let store = try await Store.open(JSONFileBackend(file: workspace.url("spots.json")), options: StoreOptions(checkpoint: .manual))
    let spots = try await store.repository(RepositorySchema<Spot>("spots"))
    try await spots.save(Spot(id: "brest", name: "Brest", rating: 3, tags: []))
    try await spots.delete("brest")
    // Read beside the app, which holds the lock.
    let run = try await larder("history", workspace.path("spots.json"))
    let lines = run.output.split(separator: "\n")
    #expect(lines.count == 3 && lines[1].contains("delete") && lines[2].contains("save"))
    #expect(try await larder("history", "--json", "--limit", "1", workspace.path("spots.json")).output.contains(#""change":"delete""#))
    let inspected = try await larder("inspect", workspace.path("spots.json"))
    #expect(inspected.output.contains("2 frames with commits 1 to 2"))
    #if os(Linux)
      #expect(inspected.output.contains("held by process \(ProcessInfo.processInfo.processIdentifier)\n"))
    #endif
    try await store.close()
    #expect(try await larder("inspect", workspace.path("spots.json")).output.contains("lock             nobody\n"))
  }

  #if os(Linux)
    @Test(
      arguments: [(.jsonFile, .exclusive), (.sqliteFile, .exclusive), (.sqliteFile, .shared)] as [(StoreKind, StoreOptions.Access)])
    func `inspect names the process that has a store open once`(kind: StoreKind, access: StoreOptions.Access) async throws {
      let workspace = try Workspace()
      let path = try await workspace.store(kind)
      let store = try await Store.open(StoreFile(path: path).backend, options: StoreOptions(access: access))
      let process = ProcessInfo.processInfo.processIdentifier
      let run = try await larder("inspect", path)
      #expect(run.output.contains("held by process \(process)\n"), "\(run)")
      #expect(try await larder("inspect", path, "--json").output.contains(#""processes":[\#(process)]"#))
      try await store.close()
      #expect(try await larder("inspect", path, "--json").output.contains(#""processes":[]"#))
    }
  #endif

  @Test func `inspect shows files and locks of a store that cannot be read`() async throws {
    let workspace = try Workspace()
    let store = try await workspace.store(.jsonFile)
    try Data(contentsOf: URL(filePath: store)).prefix(100).write(to: URL(filePath: store))
    try Data("aside".utf8).write(to: workspace.url("spots.json-quarantine-1-64"))
    let run = try await larder("inspect", store)
    #expect(run.code == 2 && run.output.contains("quarantine") && !run.errors.isEmpty)
  }

  @Test func `inspect tells what the log of a killed process holds`() async throws {
    let workspace = try Workspace()
    for name in ["crashed.sqlite", "torn.sqlite"] {
      let store = try Fixtures.copy(#require(Fixtures.mainFiles.first { $0.lastPathComponent == name }), to: workspace)
      let run = try await larder("inspect", store)
      #expect(run.output.contains(" transactions that are not folded"))
      #expect(run.output.contains("the last write is not whole") == (name == "torn.sqlite"))
    }
  }

  @Test func `every failure names code, file and advice`() async throws {
    let workspace = try Workspace()
    try Data("some text".utf8).write(to: workspace.url("notes.txt"))
    let run = try await larder("inspect", workspace.path("notes.txt"))
    #expect(run.code == 2 && run.output.isEmpty)
    #expect(run.errors.hasPrefix("larder: notOurStore: ") && run.errors.contains(workspace.path("notes.txt")))
    #expect(try await larder("inspect", "--json", workspace.path("notes.txt")).errors.contains(#""code":"notOurStore""#))
    #expect(try await larder("inspect", workspace.directory.path).errors.contains("found a directory"))
    #expect(mkfifo(workspace.path("pipe.json"), 0o600) == 0)
    for command in [["verify"], ["diff", workspace.path("notes.txt")]] {
      let run = try await larder(command + [workspace.path("pipe.json")])
      #expect(run.code == 2 && !(run.output + run.errors).isEmpty)
    }
    try FileManager.default.createSymbolicLink(at: workspace.url("link.json"), withDestinationURL: workspace.url("notes.txt"))
    #expect(try await larder("inspect", workspace.path("link.json")).errors.contains("a symbolic link"))
  }
}
