internal import ArgumentParser
internal import Larder
internal import LarderToolKit

/// Command `load`, which writes the records of a dump to a new or an existing store.
struct LoadCommand: OutputCommand {
  static let configuration = CommandConfiguration(
    commandName: "load",
    abstract: "Load a dump into a new or an existing store.",
    discussion: """
      Reads the lines that `dump` writes, checks all of them, and only then writes.

      A new store gets the records with the revisions and schema versions of the dump, and its name when it is complete. Where there is a \
      store, each record that differs is written with a new revision, in batches; what is there already is left alone. So a run that was cut \
      short is repeated, and changes nothing twice.

      Exit codes: 0 loaded, 2 refused: a bad line is named, and nothing was written, 3 loaded in part, with the number of records that are \
      committed, or loaded, but the answer cannot be written.
      """
  )

  @Argument(help: ArgumentHelp("The dump.", valueName: "dump"), completion: .file())
  var dump: String

  @OptionGroup var target: TargetOptions

  @Flag(name: .long, help: "Say what would be done, and change nothing.")
  var dryRun = false

  @OptionGroup var output: OutputOptions

  func perform(_ console: Console) async throws(RepositoryError) -> ExitStatus {
    let answer = try ProgressLine.counting("loading") { advance throws(RepositoryError) in
      // An existing store is recognised by its bytes, and `--kind` is only for a new one.
      try RecordLoading(dump: dump, to: try target.fileOfLoading(), isDry: dryRun, advance)
    }
    try console.write(answer, hasChanged: !dryRun)
    // `.incomplete` after a failure in the middle. The same command continues it.
    return answer.status
  }
}
