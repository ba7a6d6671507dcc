/// Kinds of stores that the tool reads and writes.
package enum StoreKind: String, Sendable, CaseIterable {
  /// A JSON main file with a journal.
  case jsonFile = "json"
  /// A SQLite database.
  case sqliteFile = "sqlite"

  /// Name of the kind, for output.
  package var title: String {
    switch self {
    case .jsonFile: "JSON file"
    case .sqliteFile: "SQLite database"
    }
  }
}
