internal import CSQLite
internal import Larder

extension SQLiteConnection {
  /// An integrity check of SQLite, named after its pragma.
  enum IntegrityCheck: String {
    /// Checks the structure of all pages of the database file.
    case quick = "quick_check"
    /// Checks all pages of the database file, and compares the indexes with their tables.
    case full = "integrity_check"
  }

  /// Returns the number of problems that SQLite's integrity check finds, up to a limit.
  ///
  /// `problemCount` returns no text of the check, because SQLite's result lines may quote records of the file. A table of another program
  /// may need a collation or a function that only that program registers. If SQLite refuses to check the whole file because of a table of
  /// another program, `problemCount` checks each table of the store by a separate call of the pragma.
  func problemCount(_ check: IntegrityCheck, limit: Int) throws(RepositoryError) -> Int {
    do throws(RepositoryError) {
      return try problemCount("PRAGMA \(check.rawValue)(\(limit))")
    } catch {
      guard sqlite3_errcode(handle) & 0xFF == SQLITE_ERROR else { throw error }
    }
    var count = 0
    // SQLite reads an argument that begins with a digit as the limit of a check of the whole file. Collections whose name begins with a
    // digit are therefore left out of the checks of single tables. The scan of all records (`SQLiteScan`) still compares the checksums of
    // the rows of these collections.
    let named = try SQLiteLayout.collections(on: self).filter { name in name.utf8.first.map { !(0x30...0x39).contains($0) } ?? false }
    for table in [SQLiteLayout.store, SQLiteLayout.tombstones] + named {
      count += try problemCount("PRAGMA \(check.rawValue)(\(SQLiteLayout.quoted(table)))")
    }
    return count
  }

  private func problemCount(_ pragma: String) throws(RepositoryError) -> Int {
    let statement = try prepare(pragma)
    var count = 0
    // For an undamaged file the check returns one row with the text "ok". Every other row of the check's result reports a problem.
    while try statement.step() { if try statement.text(0) != "ok" { count += 1 } }
    return count
  }
}
