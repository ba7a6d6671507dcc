import Foundation
import Testing

/// Changing single values of a spot: `edit`, `tag` and `visit`, and the lists that show them.
@Suite(.timeLimit(.minutes(15))) struct EditingTests {
  private let workspace = Workspace()

  private func store(_ name: String) async throws -> String {
    let store = workspace.path(name)
    for spot in [["Pier", "1", "2", "--tag", "High", "--tag", "#windy"], ["Bay", "3", "4", "--kind", "bay"]] {
      #expect(try await weatherSpots(["add"] + spot + ["--zone", "GMT", "--store", store]).code == 0)
    }
    return store
  }

  @Test(arguments: SpotCommandsTests.stores) func aTagComesAndGoesAndListsAreFilteredByIt(_ name: String) async throws {
    let store = try await store(name)
    func run(_ arguments: String...) async throws -> Run { try await weatherSpots(arguments + ["--store", store]) }
    #expect(try await run("tag", "pier", "+quiet", "-windy", "high") == Run(output: "Pier @1.0,2.0: #high #quiet.\n"))
    #expect(try await run("tag", "bay", "+quiet", "-none") == Run(output: "Bay @3.0,4.0: #quiet.\n"))
    #expect(try await run("list", "--tag", "quiet", "--tag", "HIGH").output == "Pier    1.0000     2.0000  GMT  #high #quiet\n")
    #expect(try await run("near", "1,2", "--tag", "quiet", "--json").output.components(separatedBy: "\"id\"").count == 3)
    #expect(try await run("search", "bay", "--tag", "high").output == "No spots.\n")
    #expect(try await run("tag", "bay", "-quiet") == Run(output: "Bay @3.0,4.0: no tags.\n"))
    // Options may come first, and what is found may have the name of a command.
    #expect(try await weatherSpots(["--json", "--store", store, "tag", "pier", "-quiet"]).code == 0)
    #expect(try await run("show", "pier").output.contains("  tags      high\n"))
    #expect(try await run("search", "tag", "-x").errors.contains("Unknown option '-x'"))
    for tag in ["two words", "", "a,b", "+", "--x", String(repeating: "x", count: 51)] {
      #expect(try await run("tag", "bay", tag).code == 64, "\(tag)")
    }
    #expect(try await run("tag", "bay").code == 64)
    #expect(try await run("tag", "nowhere", "+a").code == 2)
  }

  @Test func tagsThatAreTooManyWithThoseOfTheStoreNameTheirSpot() async throws {
    let store = try await store("spots.sqlite")
    let tags = (0..<50).map { "t\($0)" }.joined(separator: " ")
    let file = try workspace.file("a.csv", "name,latitude,longitude,timezone,tags\nBay,3,4,GMT,x\nPier,1,2,GMT,\(tags)\n")
    let run = try await weatherSpots(["import", file, "--store", store])
    #expect(run.code != 0 && run.errors == "weather-spots: Pier @1.0,2.0: there are more than 50 tags, with those that it has\n")
    #expect(try await weatherSpots(["list", "--tag", "x", "--store", store]).output == "No spots.\n")
  }

  @Test(arguments: SpotCommandsTests.stores) func visitsAreCounted(_ name: String) async throws {
    let store = try await store(name)
    func run(_ arguments: String...) async throws -> Run { try await weatherSpots(arguments + ["--store", store]) }
    #expect(try await run("visit", "pier") == Run(output: "Pier @1.0,2.0: 1 visit.\n"))
    #expect(try await run("visit", "pier", "bay", "pier", "--count", "2").output == "Pier @1.0,2.0: 5 visits.\nBay @3.0,4.0: 2 visits.\n")
    #expect(try await run("visit", "pier", "nowhere").code == 2)
    #expect(try await run("show", "pier").output.hasSuffix("  tags      high windy\n  visits    5\n"))
    #expect(try await run("visit", "pier", "--count", "0").code == 64)
    let full = try workspace.file("full.csv", "name,latitude,longitude,timezone,visits\nFull,5,6,GMT,1000000000\n")
    #expect(try await run("import", full).code == 0)
    #expect(try await run("visit", "pier", "full") == Run.failure("visits would be above 1000000000", 64))
    #expect(try await run("show", "pier").output.hasSuffix("  visits    5\n"))
  }

  @Test(arguments: SpotCommandsTests.stores) func anEditChangesOneValueAlone(_ name: String) async throws {
    let store = try await store(name)
    func run(_ arguments: String...) async throws -> Run { try await weatherSpots(arguments + ["--store", store]) }
    _ = try await run("visit", "pier")
    #expect(try await run("edit", "pier", "--rating", "4", "--notes", "of stone") == Run(output: "Changed Pier @1.0,2.0.\n"))
    #expect(
      try await run("edit", "pier", "--kind", "Harbour", "--json").output == """
        {"country":"","id":"Pier @1.0,2.0","kind":"harbour","latitude":1,"longitude":2,"name":"Pier","notes":"of stone","rating":4,\
        "source":"","tags":["high","windy"],"timezone":"GMT","visits":1}

        """)
    #expect(try await run("edit", "pier").code == 64)
    #expect(try await run("edit", "pier", "--rating", "6") == Run.failure("rating is outside 0 to 5", 64))
    #expect(try await run("edit", "pier", "--zone", "Nowhere").code == 64)
  }

  /// Nothing that another process has counted is overwritten.
  @Test func visitsOfSeveralProcessesAtOnceAllCount() async throws {
    let store = try await store("spots.sqlite")
    try await withThrowingTaskGroup(of: Int32.self) { group in
      for _ in 0..<4 {
        group.addTask {
          var worst: Int32 = 0
          for _ in 0..<5 { worst = max(worst, try await weatherSpots(["visit", "pier", "--store", store]).code) }
          return worst
        }
      }
      for try await code in group { #expect(code == 0) }
    }
    #expect(try await weatherSpots(["visit", "pier", "--store", store]).output == "Pier @1.0,2.0: 21 visits.\n")
  }
}
