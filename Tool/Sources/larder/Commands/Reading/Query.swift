internal import ArgumentParser
internal import Foundation
internal import Larder
internal import LarderToolKit

/// Command `query`, which selects records by their fields.
struct Query: OutputCommand {
  static let configuration = CommandConfiguration(
    abstract: "Find records of a collection by their fields.",
    discussion: """
      A condition compares a field with a value: rating >= 4, country = "JP", name contains "pier", address.city = null, \
      tags contains "pier", tags[0] = "rock", country in ("JP", "FR"). The comparisons are =, !=, <, <=, >, >=, contains, startswith, \
      endswith and in; and, or, not and parentheses join conditions. A text stands in quotation marks, the name of a field with spaces in \
      backticks. $key, $revision and $version are those of the record. A missing field is null; values of different kinds are unequal, and \
      neither is less. A field that no record of the collection has is refused, with the nearest one, unless --missing-ok says otherwise.

      Exit codes: 0 done, 1 there is no such collection, 2 the store cannot be read or no record has a field, 64 a condition is not understood.
      """
  )

  @Argument(help: "The JSON file or SQLite database.", completion: .file())
  var store: String
  @Argument(help: "The name of the collection.")
  var collection: String
  // `where` is a keyword of Swift, so the property has another name than its option.
  @Option(name: .customLong("where"), help: ArgumentHelp("A condition; of several, all must be met.", valueName: "condition"))
  var conditions: [String] = []
  @Option(help: ArgumentHelp("A field to sort by, the largest first with :desc; the first one given counts most.", valueName: "field"))
  var sort: [String] = []
  @Option(help: "The most records to show.")
  var limit: Int?
  @Option(help: "The number of records to pass over first.")
  var offset = 0
  @Option(help: ArgumentHelp("The fields to show, separated by commas.", valueName: "fields"))
  var select: String?
  @Flag(help: "Take fields that no record has for null.")
  var missingOk = false
  @Flag(help: "Write one JSON array in place of a JSON line for each record.")
  var array = false
  @OptionGroup var output: OutputOptions

  func validate() throws {
    // Negative numbers would trap in `prefix` and `dropFirst`.
    guard (limit ?? 0) >= 0, offset >= 0 else { throw ValidationError("expected a limit and an offset of at least 0") }
    do {
      // Conditions are parsed here too, so that a mistake ends with exit code 64 before the store is read.
      _ = try query()
    } catch {
      throw ValidationError(error.description)
    }
  }

  private func query() throws(QuerySyntaxError) -> RecordQuery {
    var query = RecordQuery()
    for condition in conditions { query.conditions.append(try QueryParser.condition(condition)) }
    for field in sort { query.orders.append(try QueryParser.order(field)) }
    if let select { query.fields = try QueryParser.fields(select) }
    (query.limit, query.offset) = (limit, offset)
    return query
  }

  func perform(_ console: Console) async throws(RepositoryError) -> ExitStatus {
    let query: RecordQuery
    do throws(QuerySyntaxError) {
      query = try self.query()
    } catch {
      // Not reached, because `validate` has parsed the same texts.
      throw RepositoryError(.unsupported, error.description)
    }
    let records = try StoreReading(path: store).records(of: collection)
    // A mistyped field would be null in every record, and the result would be empty without an error.
    if !missingOk { try query.checkFields(in: records, of: collection) }
    let result = query.run(records)
    if array {
      // `write(bytes:)` does not escape control characters, unlike `write(line:)`.
      let lines = result.jsonLines.map(TerminalText.escapedJSON)
      try console.write(bytes: Data("[\(lines.joined(separator: ",\n"))]\n".utf8))
    } else if console.format == .json {
      for line in result.jsonLines { try console.write(line: line) }
    } else if result.count > 0 {
      for line in result.table.lines(width: console.width) { try console.write(line: line) }
    }
    // Only for people. A script gets an empty output.
    if result.count == 0, console.isTerminal { console.note("no records") }
    // Records that count as null may be missing from the result, which must not go unnoticed.
    if result.unreadable > 0 {
      console.note("larder: \(counted(result.unreadable, "value")) of the collection cannot be read as JSON, and counted as null")
    }
    return .success
  }
}
