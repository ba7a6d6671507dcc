internal import ArgumentParser
internal import Larder
internal import LarderToolKit

/// Command `verify`, which checks stores.
struct Verify: OutputCommand {
  static let configuration = CommandConfiguration(
    abstract: "Check everything in stores, and say of each whether it is sound.",
    discussion: """
      Reads every record and compares its checksum, the order of the keys, the journal or log, and what SQLite's own check finds. \
      Nothing is changed.

      Exit codes: 0 all stores are sound, 1 one is damaged, 2 one cannot be read.
      """
  )

  @Argument(help: ArgumentHelp("The JSON files or SQLite databases.", valueName: "store"), completion: .file())
  var stores: [String]

  @OptionGroup var output: OutputOptions

  func perform(_ console: Console) async throws(RepositoryError) -> ExitStatus {
    var status = ExitStatus.success
    // A damaged store does not end the command. The exit code is that of the worst store.
    for store in stores {
      let verdict = StoreVerdict(ofStoreAt: store)
      try console.write(verdict)
      status = max(status, verdict.status)
    }
    return status
  }
}
