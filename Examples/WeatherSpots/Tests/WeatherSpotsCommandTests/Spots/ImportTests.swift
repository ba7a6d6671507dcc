import Foundation
import Testing

@Suite(.timeLimit(.minutes(15))) struct ImportTests {
  private let workspace = Workspace()
  private let bad = """
    name,latitude,longitude,timezone
    Good,1,2,GMT
    Bad,north,2,GMT
    "Open
    """

  @Test func aBadRowIsReportedAndNothingIsImported() async throws {
    let (file, store) = (try workspace.file("bad.csv", bad), workspace.path("spots.json"))
    #expect(
      try await weatherSpots(["import", file, "--store", store])
        == Run(
          output: "",
          errors: """
            \(file):3:5: latitude is not a number
            \(file):4:1: quotation mark without an end
            weather-spots: nothing was imported: 2 of 3 rows are bad (--skip-invalid imports the rest)

            """, code: 65))
    #expect(!FileManager.default.fileExists(atPath: store))
  }

  @Test func aBadRowLeavesAStoreAsItWas() async throws {
    let store = workspace.path("spots.json")
    _ = try await weatherSpots(["add", "A", "1", "2", "--zone", "GMT", "--store", store])
    let before = try workspace.text("spots.json")
    let run = try await weatherSpots(["import", workspace.file("bad.csv", bad), "--json", "--store", store])
    #expect(run.code == 65)
    #expect(
      run.output == """
        {"imported":0,"new":0,"problems":[{"column":5,"line":3,"reason":"latitude is not a number"},\
        {"column":1,"line":4,"reason":"quotation mark without an end"}],"skipped":0}

        """)
    #expect(try workspace.text("spots.json") == before)
  }

  @Test func skippingInvalidRowsImportsTheRestAndCounts() async throws {
    let file = try workspace.file("bad.csv", bad)
    #expect(
      try await weatherSpots(["import", file, "--skip-invalid", "--store", workspace.path("spots.json")])
        == Run(
          output: "Imported 1 spots (1 new), skipped 2 bad rows.\n",
          errors: "\(file):3:5: latitude is not a number\n\(file):4:1: quotation mark without an end\n"))
  }

  /// Without its columns no row can be read, so that there is nothing to skip.
  @Test(arguments: [
    "name;latitude;longitude;timezone\nA;1;2;GMT\n", "sep=,\nname,latitude\n", "", "My spots\n", "name, latitude,longitude,timezone\n",
  ])
  func aFirstRowWithoutTheColumnsIsNeverSkipped(_ text: String) async throws {
    let (file, store) = (try workspace.file("header.csv", text), workspace.path("spots.json"))
    for options in [[], ["--skip-invalid"], ["--skip-invalid", "--json"]] {
      let run = try await weatherSpots(["import", file, "--store", store] + options)
      #expect(run.code == 65)
      #expect(run.errors.hasPrefix("\(file):1:1: ") && !run.errors.contains("--skip-invalid"), "\(run)")
      #expect(run.errors.hasSuffix("the first row must name the columns, such as name,latitude,longitude,timezone\n"), "\(run)")
      #expect(run.output.isEmpty != options.contains("--json"))
    }
    #expect(!FileManager.default.fileExists(atPath: store))
  }

  @Test func atMostAHundredBadRowsAreListed() async throws {
    let file = try workspace.file("bad.csv", "name,latitude,longitude,timezone\n" + String(repeating: "A,x,1,GMT\n", count: 250))
    let run = try await weatherSpots(["import", file, "--store", workspace.path("spots.json")])
    let lines = run.errors.split(separator: "\n")
    #expect(lines.count == 102)
    #expect(lines[100] == "\(file): and 150 more bad rows")
  }

  @Test func standardInputIsImported() async throws {
    let run = try await weatherSpots(
      ["import", "-", "--store", workspace.path("spots.json")], input: "name,latitude,longitude,timezone\nA,1,2,GMT\n")
    #expect(run == Run(output: "Imported 1 spots (1 new).\n"))
  }

  @Test func batchesAreAcknowledgedOneByOne() async throws {
    let rows = (1...5).map { "Spot \($0),\($0),2,GMT\n" }.joined()
    let file = try workspace.file("five.csv", "name,latitude,longitude,timezone\n" + rows)
    #expect(
      try await weatherSpots(["import", file, "--batch", "2", "--store", workspace.path("spots.sqlite")])
        == Run(output: "Stored 2 of 5 spots.\nStored 4 of 5 spots.\nStored 5 of 5 spots.\nImported 5 spots (5 new).\n"))
    #expect(
      try await weatherSpots(["import", file, "--batch", "4", "--json", "--store", workspace.path("spots.sqlite")])
        == Run(output: "{\"acknowledged\":4}\n{\"acknowledged\":5}\n{\"imported\":5,\"new\":0,\"problems\":[],\"skipped\":0}\n"))
  }

  @Test func aFileThatIsNotThereHasItsOwnExitCode() async throws {
    #expect(
      try await weatherSpots(["import", "/nowhere.csv", "--store", workspace.path("spots.json")])
        == Run.failure("/nowhere.csv cannot be read: no such file", 66))
  }
}
