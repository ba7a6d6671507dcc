import Foundation
import Subprocess
import Testing

/// near, search, list with filters and pages, and how they are answered, on both kinds of store.
@Suite(.timeLimit(.minutes(15))) struct QuestionTests {
  private let workspace = Workspace()

  private let five = """
    name,latitude,longitude,timezone,country,kind,rating,notes
    Brest,48.39029,-4.48628,Europe/Paris,fr,coast,3,
    Cape Town,-33.93,18.42,Africa/Johannesburg,ZA,coast,5,the lee of the mountain
    Santa Cruz,36.97412,-122.0308,America/Los_Angeles,US,coast,5,
    Santa Cruz,28.46824,-16.25462,Atlantic/Canary,ES,,,
    Suva,-18.14161,178.44149,Pacific/Fiji,FJ,Harbour,4,
    Table Mountain,-33.9575,18.4031,Africa/Johannesburg,ZA,mountain,4,

    """

  private func store(_ name: String) async throws -> String {
    #expect(try await weatherSpots(["import", workspace.file("five.csv", five), "--store", workspace.path(name)]).code == 0)
    return workspace.path(name)
  }

  @Test(arguments: SpotCommandsTests.stores) func nearListsWhatIsAroundAlsoInTheSouthAndAcrossTheDateLine(_ name: String) async throws {
    let store = try await store(name)
    #expect(
      try await weatherSpots(["near", "-33.9,18.4", "--within", "50", "--store", store])
        == Run(
          output: """
            Cape Town       3.8 km  -33.9300    18.4200  Africa/Johannesburg  ZA  coast     *****
            Table Mountain  6.4 km  -33.9575    18.4031  Africa/Johannesburg  ZA  mountain  ****

            """))
    #expect(try await weatherSpots(["near", "-18,-179", "--limit", "1", "--store", store]).names == ["Suva"])
    let coasts = try await weatherSpots(["near", "-33.9,18.4", "--kind", "COAST", "--limit", "2", "--store", store])
    #expect(coasts.names == ["Cape Town", "Brest"])
    #expect(try await weatherSpots(["near", "0,0", "--within", "1", "--store", store]) == Run(output: "No spots.\n"))
    let json = try await weatherSpots(["near", "-33.93,18.42", "--limit", "1", "--json", "--store", store])
    #expect(json.output.hasPrefix("[{\"country\":\"ZA\",\"distance_km\":0,\"id\":\"Cape Town @-33.93,18.42\""))
  }

  @Test(arguments: SpotCommandsTests.stores) func aSearchRanksAndShowsWhatItHasFound(_ name: String) async throws {
    let store = try await store(name)
    #expect(
      try await weatherSpots(["search", "mountain", "--store", store])
        == Run(
          output: """
            Table Mountain  -33.9575    18.4031  Africa/Johannesburg  ZA  mountain  ****
            Cape Town       -33.9300    18.4200  Africa/Johannesburg  ZA  coast     *****
                the lee of the mountain

            """))
    #expect(try await weatherSpots(["search", "cruz", "SÁNT", "--country", "us", "--store", store]).names == ["Santa Cruz"])
    #expect(try await weatherSpots(["search", "cruz town", "--store", store]) == Run(output: "No spots.\n"))
    let json = try await weatherSpots(["search", "lee", "--json", "--store", store])
    #expect(json.output.contains("\"extract\":\"the lee of the mountain\",\"highlights\":[[4,7]],"))
  }

  @Test(arguments: ["", "1"])
  func whatWasFoundStandsOutOnATerminalUnlessPlainTextIsAskedFor(_ noColor: String) async throws {
    let store = try await store("spots.sqlite")
    let text = try await onATerminal(["search", "lee", "--store", store], ["NO_COLOR": noColor], until: "mountain\r\n")
    let lee = noColor == "1" ? "lee" : "\u{1B}[1;33mlee\u{1B}[0m"
    #expect(text.hasSuffix("*****\r\n    the \(lee) of the mountain\r\n"))
  }

  @Test(arguments: SpotCommandsTests.stores) func aListIsFilteredAndSorted(_ name: String) async throws {
    let store = try await store(name)
    for (arguments, expected) in [
      (["--country", "za"], ["Cape Town", "Table Mountain"]), (["--kind", "harbour"], ["Suva"]),
      (["--min-rating", "5"], ["Cape Town", "Santa Cruz"]), (["--country", "ZA", "--min-rating", "5"], ["Cape Town"]),
      (["--sort", "rating", "--min-rating", "4"], ["Cape Town", "Santa Cruz", "Suva", "Table Mountain"]),
      (["--sort", "country"], ["Santa Cruz", "Suva", "Brest", "Santa Cruz", "Cape Town", "Table Mountain"]),
      (["--country", "XX"], ["No spots."]),
    ] {
      let run = try await weatherSpots(["list", "--store", store] + arguments)
      #expect(run.names == expected)
    }
  }

  @Test(arguments: SpotCommandsTests.stores, [["--sort", "rating"], ["--near", "-33.9,18.4"], ["--sort", "kind"], []])
  func pagesMakeTheWholeListAlsoWhenSpotsComeAndGo(_ name: String, _ order: [String]) async throws {
    let store = try await store(name)
    let all = try await weatherSpots(["list", "--store", store] + order)
    var (lines, more): (String, [String]) = ("", [])
    for _ in 1...3 {
      let page = try await weatherSpots(["list", "--limit", "2", "--store", store] + order + more)
      lines += page.output
      let token = page.errors.split(separator: " ").last.map { String($0).trimmingCharacters(in: .newlines) }
      guard let token else { more = []; break }
      if more.isEmpty { #expect(page.errors.hasSuffix(" --page \(token)\n")) }
      more = ["--page", token]
      // What comes before the place of the token does not move it.
      if order.isEmpty { _ = try await weatherSpots(["add", "Aa", "1", "2", "--zone", "GMT", "--store", store]) }
    }
    #expect(Self.squeezed(lines) == Self.squeezed(all.output))
    #expect(more.isEmpty, "the last page has no token")
  }

  /// The columns of a page are as wide as its own spots need.
  private static func squeezed(_ text: String) -> String { text.replacing(#/\ +/#, with: " ") }

  @Test func aTokenOfAnotherOrderOrOfNothingIsRefused() async throws {
    let store = try await store("spots.sqlite")
    let page = try await weatherSpots(["list", "--limit", "1", "--store", store])
    let token = try #require(page.errors.split(separator: " ").last).trimmingCharacters(in: .newlines)
    #expect(
      try await weatherSpots(["list", "--sort", "rating", "--page", token, "--store", store])
        == Run.failure("the page token belongs to a list in another order; start again without --page", 64))
    for text in ["x", String(token.dropLast(5))] {
      #expect(
        try await weatherSpots(["list", "--page", text, "--store", store])
          == Run.failure("expected a page token that `list` wrote; start again without --page", 64))
    }
  }

  @Test(arguments: SpotCommandsTests.stores) func everyQuestionSaysWhichIndexAnswersIt(_ name: String) async throws {
    let store = try await store(name)
    for (arguments, plan) in [
      (["list"], "ordered(name), order from the index, 6 rows estimated, 6 examined"),
      (["list", "--country", "za"], "ordered(country, name) [country =], order from the index, 2 rows estimated, 2 examined"),
      (["list", "--kind", "coast"], "ordered(kind, name) [kind =], order from the index, 3 rows estimated, 3 examined"),
      (["list", "--sort", "rating", "--limit", "2"], "ordered(rating desc, name), order from the index, 2 rows estimated, 2 examined"),
      (
        ["near", "-33.9,18.4", "--limit", "2"],
        "geo(latitude, longitude) [nearest first], order from the index, 2 rows estimated, 2 examined"
      ),
      (["search", "suva"], "fullText(name, notes, kind) [matching words], order from the index, 1 rows estimated, 1 examined"),
    ] {
      #expect(try await weatherSpots(arguments + ["--explain", "--store", store]) == Run(output: plan + "\n"))
    }
    #expect(
      try await weatherSpots(["search", "suva", "--explain", "--json", "--store", store])
        == Run(
          output: """
            {"index":"fullText(name, notes, kind)","plan":"fullText(name, notes, kind) [matching words], order from the index, \
            1 rows estimated, 1 examined"}

            """))
  }
}
