import Foundation
import Larder
import LarderToolKit
import Testing

@Suite(.timeLimit(.minutes(15))) struct DumpTests {
  @Test(arguments: StoreKind.allCases) func `a dump has a header and a line for each record`(kind: StoreKind) async throws {
    let workspace = try Workspace()
    let store = try await workspace.store(kind)
    let lines = try await larder("dump", "--tombstones", store).output.split(separator: "\n")
    #expect(lines.count == 4)
    #expect(lines[0].hasPrefix(#"{"dump":"larder","dumpVersion":1,"collections":[],"commit":4,"lines":3,"storeID":""#))
    let brest = #"{"country":"FR","id":"brest","name":"Brest","rating":3,"tags":[]}"#
    #expect(lines[1] == #"{"collection":"spots","key":"brest","revision":2,"value":\#(brest),"version":1}"#)
    #expect(lines[2] == #"{"collection":"spots","deleted":true,"key":"gone","revision":4,"version":1}"#)
    #expect(try await larder("dump", store, "--after", "spots:brest").output.split(separator: "\n").count == 2)
  }

  @Test(arguments: StoreKind.allCases) func `an interrupted dump is continued to the same bytes`(kind: StoreKind) async throws {
    let workspace = try Workspace()
    let store = try await workspace.store(kind)
    #expect(try await larder("dump", store, "--output", workspace.path("whole")).code == 0)
    let whole = try Data(contentsOf: workspace.url("whole"))
    let header = try #require(whole.firstIndex(of: UInt8(ascii: "\n"))) + 1
    for end in stride(from: header, through: whole.count, by: 7) {
      try whole[..<end].write(to: workspace.url("part"))
      #expect(try await larder("dump", store, "--output", workspace.path("part"), "--resume").code == 0)
      #expect(try Data(contentsOf: workspace.url("part")) == whole)
    }
    #expect(try await larder("dump", store, "--output", workspace.path("part")).errors.contains("alreadyExists"))
    let other = try await larder("dump", store, "--output", workspace.path("part"), "--resume", "--tombstones")
    #expect(other.code == 2 && other.errors.contains("asked for something else"))
  }

  @Test func `a store and its dump are equal, and a dump that was cut is refused`() async throws {
    let workspace = try Workspace()
    let (json, sqlite) = (try await workspace.store(.jsonFile), try await workspace.store(.sqliteFile))
    #expect(try await larder("dump", json, "--output", workspace.path("dump")).code == 0)
    #expect(try await larder("diff", workspace.path("dump"), sqlite) == Run(output: ""))
    let whole = try Data(contentsOf: workspace.url("dump"))
    try whole.dropLast(9).write(to: workspace.url("dump"))
    #expect(try await larder("diff", workspace.path("dump"), sqlite).code == 2)
  }

  @Test func `diff shows added, removed and changed records with their fields`() async throws {
    let workspace = try Workspace()
    let old = try await workspace.store(.jsonFile)
    let new = try await workspace.store(.sqliteFile)
    let store = try await Store.open(StoreFile(path: new).backend)
    let spots = try await store.repository(RepositorySchema<Spot>("spots"))
    try await spots.update("brest") { ($0.rating, $0.country) = (4, nil) }
    try await spots.delete("jogashima")
    try await spots.save(Spot(id: "ny", name: "NY", rating: 2, tags: []))
    try await store.close()
    #expect(
      try await larder("diff", old, new)
        == Run(output: "~ spots brest: country, rating\n- spots jogashima\n+ spots ny\n", code: 1))
    let values = try await larder("diff", "--values", old, new).output
    #expect(values.hasPrefix("~ spots brest\n    country: \"FR\" → nothing\n    rating: 3 → 4\n"))
    #expect(try await larder("diff", "--json", old, new).output.contains(#"{"collection":"spots","difference":"added","key":"ny"}"#))
    #expect(try await larder("diff", "--revisions", old, old).code == 0)
  }
}
