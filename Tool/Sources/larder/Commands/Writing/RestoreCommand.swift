internal import ArgumentParser
internal import Foundation
internal import Larder
internal import LarderToolKit

/// Command `restore`, which puts a backup in the place of a store.
struct RestoreCommand: OutputCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Put a backup in the place of a store.",
    discussion: """
      Checks the backup, copies it beside the store, and gives the copy the name of the store in one step. With --replace a store that is \
      there is kept beside it, as `STORE-replaced-DATE`. A backup of the other kind is refused. While an app has the store open, nothing is done.

      Exit codes: 0 restored, 2 refused: nothing was changed, 3 restored, but the answer cannot be written.
      """
  )

  @Argument(help: ArgumentHelp("The backup.", valueName: "backup"), completion: .file())
  var backup: String

  @Option(name: .long, help: ArgumentHelp("The store.", valueName: "store"), completion: .file())
  var to: String

  // Required to replace a store, so that a wrong path does not exchange another one.
  @Flag(name: .long, help: "Keep the store that is there under another name.")
  var replace = false

  @Flag(name: .long, help: "Say what would be done, and change nothing.")
  var dryRun = false

  @OptionGroup var output: OutputOptions

  func perform(_ console: Console) async throws(RepositoryError) -> ExitStatus {
    let source = try StoreFile(path: backup)
    // The store to replace may be damaged or missing, which is a usual reason for a restore.
    let target = try StoreFile.replaced(at: to, by: source)
    let answer = try StoreRestoration(of: source, to: target, replaces: replace, isDry: dryRun, now: Date())
    // Exit code 3 instead of 2 if the output fails now, because the store was replaced.
    try console.write(answer, hasChanged: !dryRun)
    return .success
  }
}
