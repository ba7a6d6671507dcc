internal import ArgumentParser
internal import Larder
internal import LarderToolKit

/// Command `repair`, which writes the whole records of a damaged store to a new one.
struct RepairCommand: OutputCommand {
  static let configuration = CommandConfiguration(
    commandName: "repair",
    abstract: "Save every record that can be read of a damaged store in a new store.",
    discussion: """
      Reads a JSON file and its journal, or a SQLite database and its log, whatever state they are in. A record counts where its own \
      checksum matches, and of each one the newest revision. The damaged files are not changed. What could not be saved is listed.

      The new store has an identity of its own. If something is lost, it says that earlier deletions are not known, so that whoever \
      follows its changes reads everything anew.

      Exit codes: 0 nothing is lost, 1 something is lost, 2 nothing can be saved, 3 saved, but the answer \
      cannot be written.
      """
  )

  @Argument(help: ArgumentHelp("The damaged JSON file or SQLite database.", valueName: "store"), completion: .file())
  var store: String

  @OptionGroup var target: TargetOptions

  // Off by default, because keys can be personal data and reports of damage are sent to others.
  @Flag(name: .long, help: "Show the keys of records, not only their hashes.")
  var showKeys = false

  @Flag(name: .long, help: "Take a journal, too, that does not continue the JSON file.")
  var anyJournal = false

  // A row's checksum covers the name of its collection. If the name is lost, only this option makes the rows verifiable.
  @Option(name: .long, help: "The name of a collection, in case the database has lost it.")
  var collection: [String] = []

  @Flag(name: .long, help: "Say what could be saved, and write nothing.")
  var dryRun = false

  @OptionGroup var output: OutputOptions

  func perform(_ console: Console) async throws(RepositoryError) -> ExitStatus {
    var options = Repair.Options()
    (options.takesAnyJournal, options.collections, options.showsKeys, options.isDry) = (anyJournal, collection, showKeys, dryRun)
    let source = try StoreFile(path: store)
    let repair = try ProgressLine.counting("writing") { advance throws(RepositoryError) in
      // Without `--kind` or a known ending, the new store is of the damaged one's kind.
      try Repair(of: source, to: try target.file(like: source), options, advance)
    }
    // A repair that saves nothing writes no file.
    try console.write(repair, hasChanged: !dryRun && repair.status != .refused)
    return repair.status
  }
}
