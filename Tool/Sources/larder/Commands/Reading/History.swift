internal import ArgumentParser
internal import Larder
internal import LarderToolKit

/// The command that lists the commits that a store still knows.
struct History: OutputCommand {
  static let configuration = CommandConfiguration(
    abstract: "List the changes that a store still knows, the newest first.",
    discussion: """
      Of a JSON file these are the commits in its journal, with the offset of their frames; a checkpoint folds them into the main file. A \
      SQLite database keeps no history: the newest change of each record is listed, and the deletions that it still knows.

      Exit codes: 0 done, 2 the store cannot be read.
      """
  )

  @Argument(help: "The JSON file or SQLite database.", completion: .file())
  var store: String
  @Option(help: "The most changes to list.")
  var limit: Int?
  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard (limit ?? 0) >= 0 else { throw ValidationError("expected a limit of at least 0") }
  }

  func perform(_ console: Console) async throws(RepositoryError) -> ExitStatus {
    let history = try StoreHistory(StoreFile(path: store), limit: limit)
    if console.format == .json {
      for line in history.jsonLines { try console.write(line: line) }
      return .success
    }
    if !history.changes.isEmpty {
      for line in history.table.lines(width: console.width) { try console.write(line: line) }
    }
    try console.flush()
    console.note(history.remark)
    return .success
  }
}
