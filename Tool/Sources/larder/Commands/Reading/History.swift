internal import ArgumentParser
internal import Larder
internal import LarderToolKit

/// Command `history`, which lists the changes that a store's files still record.
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
    // A negative number would trap in `prefix`.
    guard (limit ?? 0) >= 0 else { throw ValidationError("expected a limit of at least 0") }
  }

  func perform(_ console: Console) async throws(RepositoryError) -> ExitStatus {
    let history = try StoreHistory(StoreFile(path: store), limit: limit)
    // One object for each line, so that a program can read a long history without holding all of it.
    if console.format == .json {
      for line in history.jsonLines { try console.write(line: line) }
      return .success
    }
    // A table without rows would be a line of titles.
    if !history.changes.isEmpty {
      for line in history.table.lines(width: console.width) { try console.write(line: line) }
    }
    // The remark goes to the standard error, and belongs after the list if both are shown on one terminal.
    try console.flush()
    console.note(history.remark)
    return .success
  }
}
