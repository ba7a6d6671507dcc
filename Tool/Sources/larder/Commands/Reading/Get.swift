internal import ArgumentParser
internal import Foundation
internal import Larder
internal import LarderToolKit

/// Command `get`, which shows records by key.
struct Get: OutputCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the JSON of records by their keys.",
    discussion: """
      A value is written over several lines on a terminal, and on one line elsewhere. A key that does not exist, or was deleted, is named \
      on the standard error.

      Exit codes: 0 all keys exist, 1 one does not, 2 the store cannot be read.
      """
  )

  @Argument(help: "The JSON file or SQLite database.", completion: .file())
  var store: String
  @Argument(help: "The name of the collection.")
  var collection: String
  @Argument(help: ArgumentHelp("The keys; that of a UUID in any case.", valueName: "key"))
  var keys: [String]
  @Flag(help: "Write the bytes as they are stored, on one line each; on a terminal with control characters escaped.")
  var raw = false
  @Flag(help: "Write revision, schema version, checksum and size before each value.")
  var revision = false
  @OptionGroup var output: OutputOptions

  func perform(_ console: Console) async throws(RepositoryError) -> ExitStatus {
    let lookup = try RecordLookup(StoreReading(path: store), collection: collection)
    var status = ExitStatus.success
    for key in keys {
      // A missing key is reported and does not end the command, so that the other keys are still shown.
      guard let record = lookup.record(key), record.value != nil else {
        console.note(Self.absence(key, lookup.record(key)))
        status = .negative
        continue
      }
      try console.write(record: RecordAnswer(record, isRaw: raw, hasRevision: revision, isPretty: console.isTerminal))
    }
    return status
  }

  private static func absence(_ key: String, _ tombstone: StoredRecord?) -> String {
    let key = TerminalText.escaped(key)
    // A tombstone has the commit of the deletion, which helps to find the cause in `history`.
    guard let tombstone else { return "larder: there is no record \"\(key)\"" }
    return "larder: the record \"\(key)\" was deleted by commit \(tombstone.revision)"
  }
}
