import Foundation
import Larder
import Subprocess
import Testing
import WeatherSpotsKit

/// Lists as people read them, and what they type after having read one: the next page, a country, an id.
@Suite(.timeLimit(.minutes(15))) struct ListingTests {
  private let workspace = Workspace()

  private let seven = """
    name,latitude,longitude,timezone,country,kind,rating,notes,tags
    Brest,48.39029,-4.48628,Europe/Paris,fr,coast,3,,pier
    Cape Town,-33.93,18.42,Africa/Johannesburg,ZA,coast,5,the lee of the mountain,
    Santa Cruz,36.97412,-122.0308,America/Los_Angeles,US,coast,5,,
    Santa Cruz,28.46824,-16.25462,Atlantic/Canary,ES,,,,
    Suva,-18.14161,178.44149,Pacific/Fiji,FJ,Harbour,4,,
    Table Mountain,-33.9575,18.4031,Africa/Johannesburg,,mountain,4,,
    The cable car,-33.957,18.403,Africa/Johannesburg,,,,,

    """

  private func store(_ name: String = "spots.sqlite") async throws -> String {
    #expect(try await weatherSpots(["import", workspace.file("seven.csv", seven), "--store", workspace.path(name)]).code == 0)
    return workspace.path(name)
  }

  @Test(arguments: [40, 80, 120]) func aListHasAHeaderAndAlignedColumns(_ width: Int) async throws {
    let store = workspace.path("shipped.sqlite")
    #expect(try await weatherSpots(["import", shippedSpots, "--store", store]).code == 0)
    #expect(try await weatherSpots(["edit", "Brest", "--rating", "4", "--store", store]).code == 0)
    for arguments in [["list"], ["near", "48,-4"], ["search", "bar harb"], ["list", "--country", "Japan"]] {
      let run = try await weatherSpots(arguments + ["--store", store], environment: ["COLUMNS": "\(width)"])
      let lines = run.output.split(separator: "\n").map(Array.init)
      let header = try #require(lines.first)
      #expect(run.code == 0 && lines.count > 1 && lines.allSatisfy { $0.count <= width }, "\(run)")
      let words = String(header).split(separator: " ").map { $0.replacing("…", with: "") }.filter { !$0.isEmpty }
      #expect(words.starts(with: arguments[0] == "near" ? ["Name", "Distance"] : ["Name"]) && words.count > 2, "\(run)")
      #expect(String(header).hasSuffix("…") != (words.contains("Zone") && words.contains("Latitude")), "\(run)")
      #expect(words.contains("Zone") || width < 120, "\(run)")
      let known = ["Name", "Distance", "Latitude", "Longitude", "Zone", "Country", "Kind", "Rating", "Tags", "Visits"]
      #expect(words.allSatisfy { known.contains(String($0)) }, "a header is cut: \(run)")
      // A column of text begins where its word in the header does, behind two blanks; one of numbers ends there.
      for word in words where word != "Name" {
        let start = try #require(String(header).range(of: word)).lowerBound.utf16Offset(in: String(header))
        let isNumber = ["Distance", "Latitude", "Longitude"].contains(word)
        for line in lines.dropFirst() where line.count > start {
          let end = start + word.count
          #expect(
            isNumber ? line[end - 1].isNumber || line[end - 1] == "m" : line[start - 2..<start].allSatisfy { $0 == " " },
            "\(word): \(String(line))")
          #expect(!isNumber || end == line.count || line[end] == " ", "\(word): \(String(line))")
        }
      }
    }
    let pipe = try await weatherSpots(["list", "--store", store], environment: ["COLUMNS": ""])
    #expect(pipe.output.split(separator: "\n").count == 100 && !pipe.output.contains("…"))
  }

  @Test(arguments: ["spots.json", "it's here, $HOME.sqlite"]) func theNextPageIsACommandToPaste(_ name: String) async throws {
    let store = try await store(name)
    let order = ["--near=-33.9,18.4", "--limit", "2"]
    let all = try await weatherSpots(["list", "--near=-33.9,18.4", "--json", "--store", store])
    var pages: [String] = []
    var run = try await weatherSpots(["list"] + order + ["--store", store, "--json"])
    while true {
      pages.append(run.output)
      guard !run.errors.isEmpty, pages.count < 9 else { break }
      let lines = run.errors.split(separator: "\n")
      try #require(lines.count == 2 && lines[0] == "weather-spots: there are more; this shows the next page:", "\(run)")
      let pasted = try await Subprocess.run(
        .shell, arguments: ["-c", String(lines[1])], output: .string(limit: 1 << 20), error: .string(limit: 1 << 20))
      run = Run(output: pasted.standardOutput, errors: pasted.standardError)
    }
    #expect(pages.count == 4)
    #expect(pages.map { $0.dropFirst().dropLast(2) }.joined(separator: ",") == all.output.dropFirst().dropLast(2))
  }

  @Test(arguments: SpotCommandsTests.stores) func aCountryIsFoundByItsNameOrSaidToBeNone(_ name: String) async throws {
    let store = try await store(name)
    for (country, expected) in [
      ("France", ["Brest"]), ("france", ["Brest"]), ("FRA", ["Brest"]), ("fr", ["Brest"]), ("USA", ["Santa Cruz"]),
      ("United States", ["Santa Cruz"]), ("fiji", ["Suva"]), ("Spain", ["Santa Cruz"]), ("south africa", ["Cape Town"]),
    ] {
      let run = try await weatherSpots(["list", "--country", country, "--store", store])
      #expect(run.names == expected && run.errors.isEmpty, "\(country): \(run)")
    }
    for (arguments, problem) in [
      (["list", "--country", "Germany"], "no spot is in Germany (DE)"),
      (["list", "--country", "de", "--json"], "no spot is in Germany (DE)"),
      (["near", "1,2", "--country", "Frnace"], "no spot is in \"FRNACE\"; did you mean France (FR)?"),
      (["search", "bay", "--country", "qqq"], "no spot is in \"QQQ\""),
      (["list", "--kind", "harbor"], "no spot has the kind \"harbor\"; similar: \"harbour\""),
      (["list", "--tag", "peir"], "no spot has the tag \"peir\"; similar: \"pier\""),
      (["list", "--country", "fr", "--kind", "harbour"], ""),
    ] {
      let run = try await weatherSpots(arguments + ["--store", store])
      let output = arguments.last == "--json" ? "[]\n" : "No spots.\n"
      #expect(run == Run(output: output, errors: problem.isEmpty ? "" : "weather-spots: \(problem)\n"))
    }
    #expect(
      try await weatherSpots(["add", "Nice", "43.7", "7.27", "--zone", "Europe/Paris", "--country", "France", "--store", store]).code == 0)
    #expect(try await weatherSpots(["edit", "Suva", "--country", "united kingdom", "--store", store]).code == 0)
    #expect(try await weatherSpots(["list", "--country", "FR", "--store", store]).names == ["Brest", "Nice"])
    #expect(try await weatherSpots(["list", "--country", "UK", "--store", store]).names == ["Suva"])
    let recorded = ["--provider", "recorded", "--store", store]
    #expect(try await weatherSpots(["geocode", "Hollywood", "--country", "United States"] + recorded).output.contains("United States"))
    let refused = try await weatherSpots(["geocode", "Hollywood", "--country", "Untied States"] + recorded)
    #expect(refused.code == 64 && refused.errors.contains("Did you mean United States (US)?"), "\(refused)")
    for arguments in [["add", "A", "1", "2", "--zone", "GMT", "--country", "Frnace"], ["edit", "Suva", "--country", "Frnace"]] {
      let refused = try await weatherSpots(arguments + ["--store", store])
      #expect(refused.code == 64 && refused.errors.contains("Did you mean France (FR)?"), "\(refused)")
    }
  }

  /// Versions before this one have taken any text for a country.
  @Test(arguments: SpotCommandsTests.stores) func aCountryThatIsNoneIsFoundAsItIsStored(_ name: String) async throws {
    let store = workspace.path(name)
    let storage = try await SpotStore(file: URL(filePath: store))
    _ = try await storage.add([Spot(name: "Poseidonis", latitude: 1, longitude: 2, timezone: "GMT", country: "Atlantis")])
    try await storage.store.close()
    #expect(try await weatherSpots(["list", "--country", "atlantis", "--store", store]).names == ["Poseidonis"])
    #expect(try await weatherSpots(["edit", "Poseidonis", "--rating", "3", "--store", store]).code == 0)
  }

  /// One spelling would otherwise hide the spots of another.
  @Test func aCountryHasOneFormHoweverItWasWritten() async throws {
    let rows = ["France", "FRA", "fr", "UK"].enumerated().map { "P\($0),\(40 + $0),1,Europe/Paris,\($1)" }
    let file = try workspace.file("c.csv", (["name,latitude,longitude,timezone,country"] + rows).joined(separator: "\n"))
    let store = workspace.path("countries.sqlite")
    #expect(try await weatherSpots(["import", file, "--store", store]).code == 0)
    for country in ["France", "FR"] {
      #expect(try await weatherSpots(["list", "--country", country, "--store", store]).names == ["P0", "P1", "P2"])
    }
    #expect(try await weatherSpots(["list", "--country", "gb", "--store", store]).names == ["P3"])
  }

  @Test(arguments: SpotCommandsTests.stores) func anIdCanBeTyped(_ name: String) async throws {
    let store = try await store(name)
    for (text, id) in [
      ("brest@48.39,-4.49", "Brest @48.39029,-4.48628"), ("@48.3903,-4.4863", "Brest @48.39029,-4.48628"),
      ("Brest @48, -4", "Brest @48.39029,-4.48628"), ("sânta cruz @28.5,-16.3", "Santa Cruz @28.46824,-16.25462"),
      ("SANTA CRUZ@36.974,-122.030", "Santa Cruz @36.97412,-122.0308"), ("suva@-18.1,178.4", "Suva @-18.14161,178.44149"),
      ("suva@-18,179", "Suva @-18.14161,178.44149"), ("@-18.14,178.44", "Suva @-18.14161,178.44149"),
    ] {
      let run = try await weatherSpots(["show", text, "--store", store])
      #expect(run.code == 0 && run.output.contains("  id        \(id)\n"), "\(text): \(run)")
    }
    let two = try await weatherSpots(["show", "@-33.957,18.403", "--store", store])
    #expect(
      two.code == 3 && two.errors.hasSuffix("these ids:\n  The cable car @-33.957,18.403\n  Table Mountain @-33.9575,18.4031\n"), "\(two)")
    for text in [
      "brest@50,3", "brest@48.39", "@-18,179", "@48.4,-4.49", "brest@91,0", "brest@48.392,-4.486", "@48.38,-4.49", "@-33.94,18.42", "@",
      "brest@x,y", "brest@nan,0",
    ] {
      let run = try await weatherSpots(["remove", text, "--store", store])
      #expect(run.code == 2 && run.errors.hasPrefix("weather-spots: no spot named \"\(text)\""), "\(text): \(run)")
    }
    #expect(try await weatherSpots(["show", "brest@50,3", "--store", store]).errors.hasSuffix("; similar names: \"Brest\"\n"))
  }
}
