import ArgumentParser
import BenchmarkReport
import Foundation

struct MakePage: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "page", abstract: "Writes a page, its pictures and the page of the goals from files that `run --json` has written.",
    discussion: "Where several files have a scenario, the last one counts.")

  @Argument(help: "The files of the runs.") var files: [String]
  @Option(help: "The page; its pictures and goals.md go into a folder of the same name beside it.") var output = "Docs/Benchmarks.md"

  func validate() throws {
    if files.isEmpty { throw ValidationError("Expected a file of a run, found none.") }
  }

  func run() throws {
    let reports = try files.map { try Report(contentsOf: URL(fileURLWithPath: $0)) }
    guard let first = reports.first else { return }
    let report = reports.dropFirst().reduce(first) { $0.replacing($1) }
    let page = URL(fileURLWithPath: output)
    let folder = page.deletingPathExtension()
    let made = Page(report, folder: folder.lastPathComponent)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let left = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".svg") && made.pictures[$0] == nil }
    for name in left { try FileManager.default.removeItem(at: folder.appendingPathComponent(name)) }
    for (name, picture) in made.pictures { try write(picture, folder.appendingPathComponent(name)) }
    try write(GoalPage(report).markdown, folder.appendingPathComponent("goals.md"))
    try write(made.markdown, page)
    print("\(page.path), with \(made.pictures.count) pictures and the goals in \(folder.path)")
  }

  private func write(_ text: String, _ file: URL) throws {
    // Made from a report that stays, so it can be made again.
    try Data(text.utf8).write(to: file, options: .atomic)
  }
}
