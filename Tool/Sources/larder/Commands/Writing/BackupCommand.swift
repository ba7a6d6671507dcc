internal import ArgumentParser
internal import Larder
internal import LarderToolKit

/// Command `backup`, which copies a store to a file of the same kind.
struct BackupCommand: OutputCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Copy a store to a file of the same kind.",
    discussion: """
      Writes one file of the store's own kind, with everything that the store holds at one commit, and compares the two. The copy keeps the identity of the store. An app \
      may have the store open meanwhile.

      Exit codes: 0 copied, 2 refused: nothing was written, 3 copied, but the answer cannot be written.
      """
  )

  @Argument(help: ArgumentHelp("The JSON file or SQLite database.", valueName: "store"), completion: .file())
  var store: String

  @Option(name: .long, help: ArgumentHelp("The file to write.", valueName: "file"), completion: .file())
  var to: String

  @Flag(name: .long, help: "Say what would be done, and change nothing.")
  var dryRun = false

  @OptionGroup var output: OutputOptions

  func perform(_ console: Console) async throws(RepositoryError) -> ExitStatus {
    let source = try StoreFile(path: store)
    // A name without a known ending gets the kind of the source, because a backup never changes the kind.
    let answer = try StoreBackup(of: source, to: StoreFile(newAt: to, like: source), isDry: dryRun)
    // A failure of the output after this point must not look like a backup that was refused.
    try console.write(answer, hasChanged: !dryRun)
    return .success
  }
}
