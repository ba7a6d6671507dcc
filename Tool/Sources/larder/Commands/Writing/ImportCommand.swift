internal import ArgumentParser
internal import Larder
internal import LarderToolKit

/// Command `import`, which writes another program's data to a collection.
struct ImportCommand: OutputCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Import an array of JSON, a CSV file, or a Bodega store into a collection.",
    discussion: """
      array   a JSON file with an array of objects
      csv     comma-separated values (RFC 4180, UTF-8) with a header line; lines end with LF, CR LF or CR. A column of numbers, or of true \
      and false, becomes such values, and empty fields are left out; with --text everything is text
      bodega  a store of Bodega or Boutique: its directory with a file for each object, or its SQLite database

      The key of a record is the one under which an app with ids of that type finds it: text for String, integer for Int and the like, uuid \
      for UUID, whose key is in upper case. All ids must be of one type. UUIDs in lower case are refused without --id-type, because an app \
      with String finds them under other keys than an app with UUID.

      The whole source is checked before anything is written. Records that the collection has already in the same bytes are left alone, \
      others of the same id are replaced.

      Exit codes: 0 imported, 2 refused: the line is named, and nothing was written, 3 imported in part, with the number of records that are \
      committed, or imported, but the answer cannot be written.
      """
  )

  @Argument(help: "The kind of source: array, csv or bodega.")
  var kind: ImportKind

  @Argument(help: ArgumentHelp("The file or directory.", valueName: "source"), completion: .file())
  var source: String

  @Option(name: .long, help: ArgumentHelp("The store, new or existing.", valueName: "store"), completion: .file())
  var to: String

  @Option(name: .long, help: "The collection.")
  var collection: String

  @Option(name: .long, help: ArgumentHelp("The member, or column, that is the id.", valueName: "field"))
  var id: String

  @Option(name: .long, help: "The type of the ids: text, integer or uuid; by default the one that all ids have.")
  var idType: IDType?

  // `--version` prints the version of the tool.
  @Option(name: .customLong("schema-version"), help: "The schema version that the values have.")
  var version = 1

  @Flag(name: .long, help: "Take all columns of CSV for text.")
  var text = false

  @Option(name: .long, help: "The record that counts where several have one id: refuse, first or last.")
  var duplicates = RecordImport.Duplicates.refuse

  @Flag(name: .long, help: "Say what would be done, and change nothing.")
  var dryRun = false

  @OptionGroup var output: OutputOptions

  func perform(_ console: Console) async throws(RepositoryError) -> ExitStatus {
    var options = RecordImport.Options(collection: collection, member: id)
    (options.idType, options.version, options.isText) = (idType, version, text)
    (options.duplicates, options.isDry) = (duplicates, dryRun)
    let answer = try ProgressLine.counting("importing") { advance throws(RepositoryError) in
      // An existing store is recognised by its bytes, so the ending of its name does not matter.
      try RecordImport(kind, source, to: StoreFile.existingOrNew(at: to, kind: nil), options, advance)
    }
    // A part may have been committed, so an output that fails must not look like a refusal.
    try console.write(answer, hasChanged: !dryRun)
    return answer.status
  }
}

extension ImportKind: ExpressibleByArgument {}
extension IDType: ExpressibleByArgument {}
extension RecordImport.Duplicates: ExpressibleByArgument {}
