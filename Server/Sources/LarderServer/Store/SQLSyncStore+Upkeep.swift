internal import Foundation

extension SQLSyncStore {
  /// Forgets the tombstones that are older than a number of days, and raises the horizon of their scopes in the same transaction.
  ///
  /// - Returns: The number of tombstones.
  /// - Throws: ``StoreError``.
  public func purge(olderThanDays days: Double, scope: String? = nil) async throws(StoreError) -> Int {
    try await writers.perform { [now] (connection) throws(StoreError) in
      let limit = now() - Int(days * 86_400_000)
      let filter = scope == nil ? "" : " AND scope = ?"
      let parameters = [.integer(limit)] + (scope.map { [SQLValue.text($0)] } ?? [])
      var count = 0
      // One scope at a time, under its lock, as pushes come one at a time.
      for row in try connection.rows(
        "SELECT DISTINCT scope FROM larder_records WHERE deleted_at IS NOT NULL AND deleted_at <= ?\(filter) ORDER BY scope", parameters)
      {
        let name = SQLValue.text(row.text(0))
        _ = try connection.row("SELECT head FROM larder_scopes WHERE scope = ?" + connection.dialect.forUpdate, [name])
        let found = try connection.row(
          "SELECT COUNT(*), MAX(revision) FROM larder_records WHERE scope = ? AND deleted_at IS NOT NULL AND deleted_at <= ?",
          [name, .integer(limit)])
        guard let found, found.integer(0) > 0 else { continue }
        count += found.integer(0)
        try connection.execute(
          "DELETE FROM larder_records WHERE scope = ? AND deleted_at IS NOT NULL AND deleted_at <= ?", [name, .integer(limit)])
        try connection.execute(
          "UPDATE larder_scopes SET horizon = ? WHERE scope = ? AND horizon < ?",
          [.integer(found.integer(1)), name, .integer(found.integer(1))])
      }
      return count
    }
  }

  /// Writes a copy of everything, as it is now, to a file that does not exist; pushes go on meanwhile.
  ///
  /// - Throws: ``StoreError``.
  public func backUp(to path: String) async throws(StoreError) {
    try await readers.perform { (connection) throws(StoreError) in try connection.copy(to: path) }
  }

  /// Gives the store another history, as after a restore: devices then give back what the copy does not have.
  ///
  /// - Returns: The new history.
  /// - Throws: ``StoreError``.
  @discardableResult public func changeHistory() async throws(StoreError) -> String {
    try await writers.perform { (connection) throws(StoreError) in
      let history = UUID().uuidString.lowercased()
      try connection.execute("UPDATE larder_meta SET history = ? WHERE one = 1", [.text(history)])
      return history
    }
  }

  /// Returns the history of the store.
  ///
  /// - Throws: ``StoreError``.
  public func history() async throws(StoreError) -> String {
    try await readers.perform { (connection) throws(StoreError) in try SQLSchema.history(connection) }
  }
}
