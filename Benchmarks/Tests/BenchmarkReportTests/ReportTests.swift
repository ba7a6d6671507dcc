import Foundation
import Testing

@testable import BenchmarkReport

@Suite struct ReportTests {
  @Test func aMedianLiesInTheMiddleAndQuartilesAroundIt() throws {
    let odd = try #require(Statistics([5, 1, 3, 2, 4]))
    #expect(odd.median == 3)
    #expect(odd.lowerQuartile == 2)
    #expect(odd.upperQuartile == 4)
    #expect(Statistics([1, 2])?.median == 1.5)
    #expect(Statistics([]) == nil)
  }

  @Test func aRatioIsTakenRoundByRound() throws {
    // The machine was three times slower in the second round: the medians' ratio would be 1, each round's is 2.
    let ratio = try #require(Statistics([2, 6, 2], over: [1, 3, 1]))
    #expect(ratio == Statistics([2, 2, 2]))
  }

  @Test func figuresHaveThreeDigitsAndAFittingUnit() {
    #expect(Figures.text(0.0345, .microseconds) == "34.5 ns")
    #expect(Figures.text(112.4, .microseconds) == "112 µs")
    #expect(Figures.text(3_900, .microseconds) == "3.90 ms")
    #expect(Figures.text(1_234_567, .bytes) == "1.23 MB")
    #expect(Figures.text(.nan, .ratio) == "–")
    #expect(Figures.count(1_234_567) == "1,234,567")
    #expect(Figures.count(-1_000) == "-1,000")
  }

  @Test func aVerdictSaysWhatWasFoundAndWhatWasAskedFor() throws {
    let series = [Series("store", .larder, [13, 13]), Series("limit", .limit, [10, 10]), Series("peer", .peer, [26, 26])]
    let missed = try #require(Goal("store", .atMostTimes(1.15, of: "limit")).verdict(on: series))
    #expect(missed.text == "store: 1.30 times limit (quartiles 1.30 to 1.30); goal: at most 1.15 times: missed")
    #expect(try #require(Goal("store", .timesFaster(2, than: "peer")).verdict(on: series)).isReached)
    #expect(try #require(Goal("peer", .timesFaster(1, than: "store")).verdict(on: series)).found == "2.00 times slower than store")
    #expect(try #require(Goal("store", .atMost(13)).verdict(on: series)).isReached)
    #expect(try !#require(Goal("store", .adds(2.9, over: "limit")).verdict(on: series)).isReached)
  }

  @Test func aGoalWithoutItsContendersHasNoVerdict() {
    let series = [Series("store", .larder, [1])]
    #expect(Goal("store", .atMostTimes(1, of: "limit")).verdict(on: series) == nil)
    #expect(Goal("another", .atMost(1)).verdict(on: series) == nil)
    #expect(Goal("store", .grows(1.2)).verdict(on: series) == nil)
  }

  @Test func growthIsTheLargestSizeOverTheSmallest() throws {
    let series = [10, 1_000, 100].map { Series("find", .larder, size: $0, [$0 == 1_000 ? 3 : 2]) }
    let verdict = try #require(Goal("find", .grows(1.2)).verdict(on: series))
    #expect(verdict.found == "at 1,000 1.50 times as much as at 10")
    #expect(!verdict.isReached)
    let beside = series + [10, 1_000].map { Series("dictionary", .limit, size: $0, [$0 == 1_000 ? 3 : 2]) }
    #expect(try #require(Goal("find", .growsBeside(1.2, of: "dictionary")).verdict(on: beside)).isReached)
  }

  @Test func aComparisonLeavesTheMachineOutWhereItCan() throws {
    let old = report([Series("store", .larder, [20]), Series("limit", .limit, [10])])
    let new = report([Series("store", .larder, [20]), Series("limit", .limit, [20])])
    let rows = Comparison(old, new).rows
    #expect(rows.map(\.words) == ["2.00 times better, beside the base", "2.00 times worse"])
    var other = new
    other.scenarios[0].name = "another"
    #expect(Comparison(old, other).rows.isEmpty)
    #expect(Comparison(old, other).unmatched == ["another", "save"])
  }

  @Test func aReportIsReadAsItWasWritten() throws {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("larder-report-\(UUID().uuidString).json")
    defer { try? FileManager.default.removeItem(at: file) }
    let written = report([Series("store", .larder, size: 3, unit: .bytes, [1, 2])])
    try written.encoded().write(to: file)
    #expect(try Report(contentsOf: file).scenarios[0].series == written.scenarios[0].series)
    try Data("{}".utf8).write(to: file)
    #expect(throws: ReportError.self) { try Report(contentsOf: file) }
  }

  @Test func peersThatAreAheadAreNamed() {
    let one = report([Series("store", .larder, [5]), Series("GRDB", .peer, [1]), Series("limit", .limit, [0.5])]).scenarios[0]
    #expect(one.peersAhead.map(\.peer.name) == ["GRDB"])
    #expect(Page(report(one.series)).markdown.contains("**Save**: GRDB (1.00 µs) before store (5.00 µs)."))
    let page = [Series("store, first", .larder, [1]), Series("store, last", .larder, [9]), Series("GRDB, last", .peer, [2])]
    #expect(report(page).scenarios[0].peersAhead.map(\.larder.name) == ["store, last"])
    #expect(report(page + [Series("GRDB, first", .peer, [2])]).scenarios[0].peersAhead.count == 1)
  }

  @Test func aPeerIsComparedWithTheSlowestFormOfEachStoreAtTheSameWork() throws {
    let series = [
      Series("Larder JSON, main", .larder, [4]), Series("Larder JSON, task", .larder, [2]), Series("Larder SQLite, task", .larder, [20]),
      Series("GRDB, task", .peer, [10]), Series("GRDB, blocking", .peer, [8]), Series("limit", .limit, [1]),
    ]
    let rows = report(series).scenarios[0].peerRows
    #expect(rows.map(\.work) == ["Save, task", "Save, blocking"])
    #expect(rows.map { $0.forms.map(\.series.name) }[0] == ["Larder JSON, task", "Larder SQLite, task"])
    #expect(rows[0].forms.map(\.ratio) == [5, 0.5])
    #expect(rows[1].forms.map(\.series.name) == ["Larder JSON, main", "Larder SQLite, task"])
    let page = Page(report(series)).markdown
    #expect(page.contains("| Save, task | GRDB: 10.0 µs | 2.00 µs (5.00 ×) | **20.0 µs (0.50 ×)** |  |"))
    let svg = try #require(Page(report(series)).pictures["beside-peers.svg"])
    #expect(svg.components(separatedBy: "<title>Larder").count - 1 == 1 + 4)
  }

  @Test func aPageBeginsWithPeersAndNamesNoGoal() throws {
    var all = report([Series("store", .larder, [13]), Series("GRDB", .peer, [10]), Series("limit", .limit, [10])])
    all.scenarios[0].goals = [Goal("store", .atMostTimes(1.15, of: "limit")), Goal("store", .atMost(13))]
    let page = Page(all).markdown
    let headings = ["## Larder beside its peers", "## Where a peer is ahead", "## Saving"]
    let places = try headings.map { try #require(page.range(of: $0)?.lowerBound) }
    #expect(places == places.sorted())
    #expect(!page.contains("missed**") && !page.contains("goal:"))
    #expect(page.contains("(Benchmarks/goals.md)"))
    let goals = GoalPage(all).markdown
    #expect(goals.contains("1 of 2 goals are reached."))
    #expect(goals.contains("| Save | store | 1.30 times limit | 1.30 – 1.30 | at most 1.15 times |"))
    let sections = try ["## Missed", "## Reached"].map { try #require(goals.range(of: $0)?.lowerBound) }
    #expect(sections == sections.sorted())
  }

  @Test func aReasonWithoutAMeasuredPeerIsNamedToo() {
    var all = report([Series("store", .larder, [1])])
    all.scenarios[0].reason = "A database has it."
    #expect(Page(all).markdown.contains("- **Save**: no peer was measured. A database has it."))
  }

  @Test func theNameOfAWorkFitsBesideAPicture() {
    let peer = Series("GRDB, longest save beside", .peer, [1])
    let long = String(repeating: "long ", count: 20)
    for title in [long, "First, " + long, "Short"] {
      let row = PeerRow(title: title, peer: peer, forms: [])
      #expect(row.shortWork.count <= 52)
      #expect(row.shortWork.hasSuffix(", longest save beside"))
    }
    #expect(PeerRow(title: "First, " + long, peer: peer, forms: []).shortWork == "First, longest save beside")
  }

  @Test func picturesEscapeTheirTexts() {
    let scenario = report([Series("a < b & \"c\"", .larder, [1])]).scenarios[0]
    let svg = BarChart(title: "<title>", [scenario]).svg
    #expect(svg.contains("a &lt; b &amp; &quot;c&quot;"))
    #expect(svg.contains("<title>&lt;title&gt;</title>"))
    #expect(!svg.contains("NaN") && !svg.contains("nan"))
    let row = PeerRow(title: "a < b", peer: Series("x & y", .peer, [0]), forms: [.init(series: scenario.series[0], ratio: 0)])
    let chart = PeerChart(peer: "x & y", [row]).svg
    #expect(chart.contains("a &lt; b") && chart.contains("x &amp; y takes less"))
    #expect(!chart.contains("inf") && !chart.contains("nan"))
  }

  @Test func aGrowthChartShowsASizeOfNoneBesideTheOthers() {
    let series = [0, 10_000].map { Series("save", .larder, size: $0, [Double($0 + 1)]) }
    let svg = GrowthChart(report(series).scenarios[0]).svg
    #expect(svg.contains(">10,000<"))
    #expect(svg.components(separatedBy: "<circle").count == 3)
    #expect(!svg.contains("inf") && !svg.contains("nan"))
  }

  @Test func everyPictureOfThePageIsThere() {
    var growth = report([Series("save", .larder, size: 1, [1]), Series("save", .larder, size: 10, [1])]).scenarios[0]
    growth.name = "growth"
    var all = report([Series("store", .larder, [1])])
    all.scenarios.append(growth)
    let page = Page(all)
    for name in page.pictures.keys { #expect(page.markdown.contains("](Benchmarks/\(name))")) }
    #expect(page.pictures.keys.sorted() == ["growth.svg", "saving.svg"])
  }

  private func report(_ series: [Series]) -> Report {
    let machine = Machine(processor: "one", cores: 2, memory: 1 << 30, system: "some", swift: "Swift 6.3")
    let scenario = ScenarioReport(
      name: "save", group: "Saving", title: "Save", operation: "save", base: series.count > 1 ? "limit" : nil, series: series)
    return Report(
      machine: machine, date: Date(timeIntervalSince1970: 0), records: 10, recordBytes: 266, isQuick: false, scenarios: [scenario])
  }
}
