internal import CSQLite
internal import Larder

extension SQLiteConnection {
  /// An integrity check of SQLite, named after its pragma.
  enum IntegrityCheck: String {
    /// Checks the structure of all pages.
    case quick = "quick_check"
    /// Checks all pages, and the indexes against their tables.
    case full = "integrity_check"
  }

  /// Returns the number of problems that SQLite's integrity check finds, up to a limit.
  ///
  /// The result lines of a check may quote the file, so only their number is returned. A table of another program may need a collation or a
  /// function that only that program has. SQLite then refuses to check the file as a whole, and each table of the store is checked alone.
  func problemCount(_ check: IntegrityCheck, limit: Int) throws(RepositoryError) -> Int {
    do throws(RepositoryError) {
      return try problemCount("PRAGMA \(check.rawValue)(\(limit))")
    } catch {
      guard sqlite3_errcode(handle) & 0xFF == SQLITE_ERROR else { throw error }
    }
    var count = 0
    // SQLite takes a name that begins with a digit for the limit of a check of the whole file. The scan of records reads these tables.
    let named = try SQLiteLayout.collections(on: self).filter { name in name.utf8.first.map { !(0x30...0x39).contains($0) } ?? false }
    for table in [SQLiteLayout.store, SQLiteLayout.tombstones] + named {
      count += try problemCount("PRAGMA \(check.rawValue)(\(SQLiteLayout.quoted(table)))")
    }
    return count
  }

  private func problemCount(_ pragma: String) throws(RepositoryError) -> Int {
    let statement = try prepare(pragma)
    var count = 0
    // A sound file gives the one row "ok".
    while try statement.step() { if try statement.text(0) != "ok" { count += 1 } }
    return count
  }
}
