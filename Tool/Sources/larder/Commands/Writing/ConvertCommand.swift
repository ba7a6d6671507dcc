internal import ArgumentParser
internal import Larder
internal import LarderToolKit

/// Command `convert`, which copies a store to a new one of either kind.
struct ConvertCommand: OutputCommand {
  static let configuration = CommandConfiguration(
    commandName: "convert",
    abstract: "Copy a store to a new one of the other kind.",
    discussion: """
      Copies every record of every collection as it is stored, with its revision and schema version, and the tombstones. Then both stores \
      are read and compared. The new store has an identity of its own. The old one is not changed; an app may have it open.

      Exit codes: 0 copied, 2 refused: nothing was written, 3 copied, but the answer cannot be written.
      """
  )

  @Argument(help: ArgumentHelp("The JSON file or SQLite database.", valueName: "store"), completion: .file())
  var store: String

  @OptionGroup var target: TargetOptions

  @Flag(name: .long, help: "Say what would be done, and change nothing.")
  var dryRun = false

  @OptionGroup var output: OutputOptions

  func perform(_ console: Console) async throws(RepositoryError) -> ExitStatus {
    let answer = try ProgressLine.counting("writing") { advance throws(RepositoryError) in
      // The kind of the target is never taken from the source. It must be in the name or in `--kind`.
      try Conversion(of: StoreFile(path: store), to: target.file(), isDry: dryRun, advance)
    }
    try console.write(answer, hasChanged: !dryRun)
    return .success
  }
}
