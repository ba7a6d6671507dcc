internal import ArgumentParser
internal import Larder
internal import LarderToolKit

/// Command `inspect`, which describes a store without showing a record.
struct Inspect: OutputCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show a store's identity, counts, sizes, files, journal and locks.",
    discussion: """
      No key and no value is shown, so the output can be sent to somebody else. Files and locks are shown also of a store that cannot be \
      read. The processes that hold a lock are known on Linux only.

      Exit codes: 0 done, 2 the store cannot be read.
      """
  )

  @Argument(help: "The JSON file or SQLite database.", completion: .file())
  var store: String
  @OptionGroup var output: OutputOptions

  func perform(_ console: Console) async throws(RepositoryError) -> ExitStatus {
    let summary = try StoreSummary(path: store)
    try console.write(SummaryAnswer(summary))
    // Files and locks were shown all the same. The exit code says that the rest is missing.
    return summary.failure == nil ? .success : .refused
  }
}
