internal import ArgumentParser
internal import Foundation
internal import Larder
internal import LarderToolKit

/// Command `dump`, which writes the records of a store as lines of JSON.
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
  // `OutputCommand` requires options of this name. That is why the command conforms to `StoreCommand` alone.
  @Option(name: .shortAndLong, help: ArgumentHelp("The file to make; without it the standard output.", valueName: "file"))
  var output: String?
  @Flag(help: "Continue the file of an interrupted run.")
  var resume = false
  @Flag(help: "Write deleted records, too, where the store still knows them.")
  var tombstones = false
  @Option(help: ArgumentHelp("Begin behind this record.", valueName: "collection:key"))
  var after: String?
  // Every command accepts --json, so that a script can read the errors of all of them alike.
  @Flag(name: .customLong("json"), help: "Write errors as JSON; a dump is JSON in any case.")
  var json = false

  var console: Console { Console(format: json ? .json : .text) }

  func validate() throws {
    // Checked by the parser, so that wrong arguments end with exit code 64 before the store is read.
    if resume, output == nil { throw ValidationError("expected --output with --resume: the file to continue") }
    if let after, !after.contains(":") { throw ValidationError("expected --after COLLECTION:KEY with a colon, found none") }
  }

  func perform(_ console: Console) async throws(RepositoryError) -> ExitStatus {
    let reading = try StoreReading(path: store)
    // The store is read before the file is created. A wrong collection leaves no empty file behind.
    let dump = try StoreDump(reading, collections: collections, hasTombstones: tombstones, after: after)
    // Records that go to the terminal show the progress themselves, and would be mixed with the line.
    let progress = ProgressLine("dumping", isWanted: output != nil || !console.isTerminal)
    guard let output else {
      // The console adds the line feed itself, which it must not escape on a terminal.
      try dump.write(progress) { line throws(RepositoryError) in try console.write(storedLine: line.dropLast()) }
      return .success
    }
    // `--resume` also begins a new file, so that a script can repeat one command until it succeeds.
    let isThere = FileManager.default.fileExists(atPath: output)
    let file = try resume && isThere ? DumpFile(resuming: output, dump) : DumpFile(newAt: output)
    try dump.write(passingOver: file.lineCount, progress) { bytes throws(RepositoryError) in try file.write(bytes) }
    // Syncs the file. Success must not be reported for a dump that a power cut can still shorten.
    try file.close()
    return .success
  }
}
