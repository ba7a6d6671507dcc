internal import ArgumentParser
internal import Foundation
internal import Larder
internal import LarderToolKit

/// The command that writes a store as lines of JSON.
struct Dump: StoreCommand {
  static let configuration = CommandConfiguration(
    abstract: "Write the records of a store as lines of JSON.",
    discussion: """
      The first line is a header with the store, the commit and the number of lines; each other line is a record with collection, key, \
      revision, version and value. The dump is of one moment. With --output the file is made for its owner only, and --resume continues \
      one that was interrupted, if the store has not changed since.

      Exit codes: 0 done, 1 there is no such collection, 2 the store cannot be read or the file cannot be written.
      """
  )

  @Argument(help: "The JSON file or SQLite database.", completion: .file())
  var store: String
  @Argument(help: ArgumentHelp("The names of collections; all without.", valueName: "collection"))
  var collections: [String] = []
  @Option(name: .shortAndLong, help: ArgumentHelp("The file to make; without it the standard output.", valueName: "file"))
  var output: String?
  @Flag(help: "Continue the file of an interrupted run.")
  var resume = false
  @Flag(help: "Write deleted records, too, where the store still knows them.")
  var tombstones = false
  @Option(help: ArgumentHelp("Begin behind this record.", valueName: "collection:key"))
  var after: String?
  @Flag(name: .customLong("json"), help: "Write errors as JSON; a dump is JSON in any case.")
  var json = false

  var console: Console { Console(format: json ? .json : .text) }

  func validate() throws {
    if resume, output == nil { throw ValidationError("expected --output with --resume: the file to continue") }
    if let after, !after.contains(":") { throw ValidationError("expected --after COLLECTION:KEY with a colon, found none") }
  }

  func perform(_ console: Console) async throws(RepositoryError) -> ExitStatus {
    let reading = try StoreReading(path: store)
    let dump = try StoreDump(reading, collections: collections, hasTombstones: tombstones, after: after)
    let progress = ProgressLine("dumping", isWanted: output != nil || !console.isTerminal)
    guard let output else {
      try dump.write(progress) { bytes throws(RepositoryError) in try console.write(bytes: bytes) }
      return .success
    }
    let isThere = FileManager.default.fileExists(atPath: output)
    let file = try resume && isThere ? DumpFile(resuming: output, dump) : DumpFile(newAt: output)
    try dump.write(passingOver: file.lineCount, progress) { bytes throws(RepositoryError) in try file.write(bytes) }
    try file.close()
    return .success
  }
}
