/// The kinds of stores that the tool knows.
package enum StoreKind: String, Sendable, CaseIterable {
  /// A JSON document with a journal.
  case jsonFile = "json"
  /// A SQLite database.
  case sqliteFile = "sqlite"

  /// The kind in words.
  package var title: String {
    switch self {
    case .jsonFile: "JSON file"
    case .sqliteFile: "SQLite database"
    }
  }
}
