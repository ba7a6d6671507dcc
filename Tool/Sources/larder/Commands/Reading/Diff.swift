internal import ArgumentParser
internal import Larder
internal import LarderToolKit

/// Command `diff`, which compares two stores, or a store and a dump.
struct Diff: OutputCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the records that differ between two stores, or a store and a dump.",
    discussion: """
      Of each record that differs a line is written: + for one that only the second has, - for one that only the first has, ~ for one that \
      is not alike, with its fields. Values are compared, and not their text: stores of different kinds that hold the same are equal.

      Exit codes: 0 they are equal, 1 they differ, 2 one of them cannot be read, or neither has a collection of that name.
      """
  )

  @Argument(help: "A store, or a dump.", completion: .file())
  var first: String
  @Argument(help: "Another store, or a dump.", completion: .file())
  var second: String
  @Argument(help: ArgumentHelp("The names of collections; all without.", valueName: "collection"))
  var collections: [String] = []
  @Flag(help: "Show what was and what is, too.")
  var values = false
  @Flag(help: "Compare revisions and schema versions, too.")
  var revisions = false
  @OptionGroup var output: OutputOptions

  func perform(_ console: Console) async throws(RepositoryError) -> ExitStatus {
    let (old, new) = (try ComparedRecords(path: first), try ComparedRecords(path: second))
    // A mistyped collection would select no record on either side, and the two would count as equal.
    try ComparedRecords.check(collections, old, new)
    let differences = RecordDifference.all(between: old, and: new, collections: Set(collections), includesRevisions: revisions)
    for difference in differences { try console.write(DifferenceAnswer(difference, hasValues: values)) }
    // The exit code is that of diff(1), so that a script can test for equality.
    return differences.isEmpty ? .success : .negative
  }
}
