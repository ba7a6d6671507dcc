import ArgumentParser
import BenchmarkReport
import Foundation

extension Engine: ExpressibleByArgument {}

struct Run: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Measures scenarios; all of them where none is named.", discussion: LarderBench.choices)

  @Argument(help: "The scenarios; `larder-bench list` shows them.") var scenarios: [String] = []
  @Option(help: "The number of records.") var records: Int?
  @Option(parsing: .upToNextOption, help: "The engines to measure; all where none is named.") var engine: [Engine] = []
  @Option(help: "A file to write the figures into.") var json: String?
  @Flag(help: "Few records (10,000) and rounds, for a try-out.") var quick = false

  func validate() throws {
    if CommandLine.arguments.count == 1 { throw CleanExit.helpRequest(LarderBench.self) }
    for name in scenarios where Scenario.named(name) == nil {
      throw ValidationError("There is no scenario “\(name)”.\n\n\(LarderBench.choices)")
    }
    if let records, records < 1_000 { throw ValidationError("Expected at least 1,000 records, found \(records).") }
  }

  func run() async throws {
    #if DEBUG
      Bench.tell("This is a debug build: its figures say nothing. Build with -c release.")
    #endif
    let chosen = scenarios.isEmpty ? Scenario.all : scenarios.compactMap(Scenario.named)
    let count = records ?? (quick ? 10_000 : 100_000)
    Bench.tell("Unpacking \(Figures.count(count)) records…")
    let sample = try Bench.places(count).prefix(10_000)
    let bytes = try sample.reduce(0) { try $0 + JSONEncoder().encode($1).count } / max(1, sample.count)
    var report = Report(machine: .current, date: Date(), records: count, recordBytes: bytes, isQuick: quick)
    say("Machine: \(report.machine.text)")
    if count != 100_000 { say("The goals are for 100,000 records; times and bytes of other numbers differ.") }
    say("Records: \(Figures.count(count)) of \(bytes) bytes; durability as each scenario says; load \(Figures.digits(Machine.load))")
    for scenario in chosen {
      let found = try await scenario.report(count, isQuick: quick, Set(engine))
      guard !found.series.isEmpty else {
        Bench.tell("\(scenario.name): none of the chosen engines takes part")
        continue
      }
      report.scenarios.append(found)
      say(
        "\n\(found.title) (\(found.name); \(found.series.map(\.rounds.count).max() ?? 0) rounds, load \(found.loads.map(Figures.digits).joined(separator: " to ")))\n"
      )
      say(found.table.plain)
      for verdict in found.verdicts { say("  " + verdict.text) }
      // Written after each scenario, so that a run that is broken off has not been for nothing.
      if let json { try keep(report, in: json) }
    }
    guard !report.scenarios.isEmpty else { throw ValidationError("No chosen engine takes part in a chosen scenario.") }
  }

  private func keep(_ report: Report, in path: String) throws {
    // Replaced in one step: a run that is broken off leaves the last whole file.
    try report.encoded().write(to: URL(fileURLWithPath: path), options: .atomic)
  }

  /// Prints a line at once, also where the output goes into a file.
  private func say(_ text: String) { FileHandle.standardOutput.write(Data("\(text)\n".utf8)) }
}
