import Foundation
import LarderSync
import LarderTesting
import Testing

/// Two stores as two devices, over real HTTP.
@Suite(.timeLimit(.minutes(15))) struct SyncTests {
  private let workspace = Workspace()
  private let server: SyncStandIn
  private var here: String { workspace.path("here.sqlite") }
  private var there: String { workspace.path("there.json") }

  init() throws { server = try SyncStandIn() }

  private func add(_ rating: Int, _ notes: String, to store: String) async throws {
    let run = try await weatherSpots([
      "add", "Pier", "48.4", "-4.5", "--zone", "Europe/Paris", "--rating", "\(rating)", "--notes", notes, "--store", store,
    ])
    #expect(run.code == 0, "\(run.testDescription)")
  }

  private func sync(_ store: String, _ arguments: [String] = []) async throws -> Run {
    try await weatherSpots(["sync"] + arguments + ["--store", store])
  }

  private func exported(_ store: String) async throws -> String {
    try await weatherSpots(["export", "--format", "csv", "--store", store]).output
  }

  @Test func twoDevicesEndUpTheSame() async throws {
    let url = try await server.start()
    try await add(3, "old", to: here)
    for store in [here, there] { #expect(try await sync(store, [url, "--scope", "user/42"]).code == 0) }
    #expect(try await exported(here) == exported(there))
    try await add(4, "old", to: here)
    try await add(3, "windy", to: there)
    for store in [here, there, here] { #expect(try await sync(store).code == 0) }
    let text = try await exported(here)
    #expect(try await text == exported(there))
    #expect(text.contains("windy") && text.contains("4"), "each side had changed a field of its own")
    #expect(try await sync(here, ["conflicts"]).output == "No conflicts.\n")
    #expect(server.rules.records(of: "user/42").count == 1)
    await server.stop()
  }

  @Test func visitsAddUpAndTagsAreMergedOneByOne() async throws {
    let url = try await server.start()
    try await add(3, "old", to: here)
    for store in [here, there] { #expect(try await sync(store, [url]).code == 0) }
    let edits = [
      (here, ["visit", "Pier", "--count", "3"]), (there, ["visit", "Pier", "Pier"]), (here, ["tag", "Pier", "+quiet", "+high"]),
      (there, ["tag", "Pier", "+windy", "+high"]), (here, ["edit", "Pier", "--rating", "5"]), (there, ["edit", "Pier", "--notes", "new"]),
    ]
    for (store, edit) in edits { #expect(try await weatherSpots(edit + ["--store", store]).code == 0) }
    for store in [here, there, here] { #expect(try await sync(store).code == 0) }
    let end = try await exported(here)
    #expect(end.hasSuffix("\nPier,48.4,-4.5,Europe/Paris,,,,5,new,high quiet windy,5\n"))
    #expect(try await exported(there) == end)
    for store in [here, there] { #expect(try await sync(store, ["conflicts"]).output == "No conflicts.\n") }
    #expect(try await weatherSpots(["tag", "Pier", "-windy", "--store", there]).code == 0)
    for store in [there, here] { #expect(try await sync(store).code == 0) }
    #expect(try await weatherSpots(["tag", "Pier", "-quiet", "--store", here]).output == "Pier @48.4,-4.5: #high.\n")
    await server.stop()
  }

  /// A spot that is added or imported again is the same one.
  @Test func whatIsImportedAgainKeepsVisitsAndTags() async throws {
    let file = try workspace.file("a.csv", "name,latitude,longitude,timezone,tags,visits\nPier,48.4,-4.5,Europe/Paris,Old pier,7\n")
    for count in [7, 8] {
      #expect(try await weatherSpots(["import", file, "--store", here]).code == 0)
      try await add(4, "again", to: here)
      let text = try await exported(here)
      #expect(text.hasSuffix("\nPier,48.4,-4.5,Europe/Paris,,,,4,again,old pier,\(count)\n"), "\(text)")
      _ = try await weatherSpots(["visit", "pier", "--store", here])
    }
  }

  @Test func aTrueConflictIsListed() async throws {
    let url = try await server.start()
    try await add(3, "old", to: here)
    for store in [here, there] { #expect(try await sync(store, [url]).code == 0) }
    try await add(3, "calm", to: here)
    try await add(3, "windy", to: there)
    for store in [here, there, here] { #expect(try await sync(store).code == 0) }
    #expect(try await exported(here) == exported(there))
    let conflicts = try await sync(there, ["conflicts", "--clear"]).output
    #expect(conflicts.contains("Pier @48.4,-4.5: notes = \"") && conflicts.contains("lost"))
    #expect(try await sync(there, ["conflicts"]).output == "No conflicts.\n")
    await server.stop()
  }

  @Test func anUndoneDeletionIsListed() async throws {
    let url = try await server.start()
    try await add(3, "old", to: here)
    for store in [here, there] { #expect(try await sync(store, [url]).code == 0) }
    #expect(try await weatherSpots(["remove", "Pier", "--store", here]).code == 0)
    try await add(3, "windy", to: there)
    for store in [there, here] { #expect(try await sync(store).code == 0) }
    #expect(
      try await sync(here, ["conflicts"]).output == "Pier @48.4,-4.5: deleted, and kept, because another device had changed it.\n")
    #expect(try await exported(here) == exported(there))
    await server.stop()
  }

  @Test func whatIsRefusedIsListedAndCanBeGivenUp() async throws {
    let url = try await server.start()
    try await add(3, "good", to: here)
    #expect(try await sync(here, [url]).code == 0)
    server.rules.refuse { String(decoding: $0.value ?? Data(), as: UTF8.self).contains("bad") ? "profane" : nil }
    try await add(3, "bad", to: here)
    #expect(try await sync(here).output.contains("1 rejected"))
    #expect(try await sync(here, ["rejected", "--revert"]).output == "Pier @48.4,-4.5: profane \n")
    #expect(try await sync(here, ["rejected"]).output == "Nothing was rejected.\n")
    #expect(try await exported(here).contains("good"))
    await server.stop()
  }

  @Test func withoutANetworkEverythingIsKept() async throws {
    let url = try await server.start()
    #expect(try await sync(here, [url]).code == 0)
    await server.stop()
    try await add(3, "mine", to: here)
    let run = try await sync(here)
    #expect(run.code == 69 && run.errors.contains("what is unsent is kept"), "\(run.testDescription)")
    #expect(try await sync(here, ["status"]).output.contains("1 unsent"))
  }

  @Test func aWrongTokenAndAMissingServerAreNamed() async throws {
    let guarded = try SyncStandIn(token: "secret")
    let url = try await guarded.start()
    #expect(try await sync(here, [url]).code == 77)
    let environment = ["WEATHER_SPOTS_SYNC_TOKEN": "secret"]
    #expect(try await sync(here, ["status"]).code == 2, "a server that did not answer leaves no store behind")
    #expect(try await weatherSpots(["sync", url, "--store", here], environment: environment).code == 0)
    #expect(try await sync(here, [url, "--scope", "other"]).code == 64, "a store stays in its scope")
    #expect(try await sync(there, ["status"]).code == 2)
    #expect(try await sync(there).code == 64)
    for address in ["gopher://x", "http://ann:secret@127.0.0.1:1", "http://127.0.0.1:1/?a=b", "127.0.0.1:1"] {
      #expect(try await sync(there, [address]).code == 64)
    }
    #expect(try await sync(there, ["http://127.0.0.1:1", "--scope", "two words"]).code == 64)
    #expect(try await sync(there, ["http://127.0.0.1:1", "--timeout", "0"]).errors.contains("--timeout takes"))
    #expect(
      try await sync(there, ["http://127.0.0.1:1"])
        == Run.failure("no sync: the server cannot be reached: the connection was refused; what is unsent is kept", 69))
    #expect(try await sync(there, ["status"]).code == 2)
    try await add(3, "mine", to: there)
    #expect(try await sync(there, ["http://127.0.0.1:1"]).code == 69)
    #expect(try await sync(there, ["status"]).code == 64, "a server that did not answer is not kept")
    await guarded.stop()
  }
}
