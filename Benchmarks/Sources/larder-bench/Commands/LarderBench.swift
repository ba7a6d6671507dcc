import ArgumentParser
import BenchmarkReport

@main
struct LarderBench: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "larder-bench",
    abstract: "Measures Larder beside other stores and the machine's limits, on the same records and durability.",
    discussion: "Build it in release: swift run -c release larder-bench …\n\n" + choices,
    subcommands: [List.self, Run.self, Compare.self, MakePage.self, Resident.self],
    // So that an unknown word is taken for a scenario, and answered with their list.
    defaultSubcommand: Run.self
  )

  /// The scenarios and engines by name.
  static var choices: String {
    let width = Scenario.all.map(\.name.count).max() ?? 0
    let scenarios = Scenario.all.map { "  \($0.name.padded(to: width))  \($0.title)" }
    let engines = Engine.allCases.map { "  \($0.rawValue.padded(to: width))  \($0.title): \($0.summary)" }
    return "Scenarios:\n\(scenarios.joined(separator: "\n"))\n\nEngines:\n\(engines.joined(separator: "\n"))"
  }
}

extension String {
  func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}

struct List: ParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Lists the scenarios and the engines.")

  func run() { print(LarderBench.choices) }
}

struct Compare: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Compares two files that `run --json` has written.",
    discussion:
      "Where both runs measured the contender that ratios are given to, the ratios are compared, so that the machine's mood drops out.")

  @Argument(help: "The file of the older run.") var old: String
  @Argument(help: "The file of the newer run.") var new: String

  func run() throws {
    let comparison = Comparison(try Report(contentsOf: .init(fileURLWithPath: old)), try Report(contentsOf: .init(fileURLWithPath: new)))
    guard !comparison.rows.isEmpty else { throw ReportError("expected scenarios that both files have, found none") }
    var table = TextTable(["scenario, contender", "old", "new", "the new one is"])
    for row in comparison.rows {
      table.add(["\(row.scenario), \(row.series)", Figures.text(row.old, row.unit), Figures.text(row.new, row.unit), row.words])
    }
    print(table.plain)
    if !comparison.unmatched.isEmpty { print("\nIn one of both files only: \(comparison.unmatched.joined(separator: ", "))") }
  }
}
