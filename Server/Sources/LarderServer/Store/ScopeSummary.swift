/// A scope, as lists show it.
public struct ScopeSummary: Sendable, Hashable {
  /// The name.
  public var scope: String
  /// The newest commit.
  public var head: Int
  /// The commit up to which tombstones may have been forgotten.
  public var horizon: Int
  /// The lowest schema version of records that it takes.
  public var minimum: Int
}

extension SQLSyncStore {
  /// Returns the scopes, in the order of their names, after one of them.
  ///
  /// - Parameters:
  ///   - prefix: The beginning of their names.
  ///   - limit: Their greatest number.
  /// - Throws: ``StoreError``.
  public func scopes(prefix: String = "", after name: String = "", limit: Int = 1_000) async throws(StoreError) -> [ScopeSummary] {
    try await readers.perform { (connection) throws(StoreError) in
      var found: [ScopeSummary] = []
      let start = max(prefix, name)
      try connection.execute(
        "SELECT scope, head, horizon, minimum FROM larder_scopes WHERE scope >= ? ORDER BY scope LIMIT ?",
        [.text(start), .integer(limit == .max ? limit : limit + 1)]
      ) { (row) throws(StoreError) in
        let summary = ScopeSummary(scope: row.text(0), head: row.integer(1), horizon: row.integer(2), minimum: row.integer(3))
        guard summary.scope.utf8.starts(with: prefix.utf8), found.count < limit else { return false }
        if summary.scope != name { found.append(summary) }
        return true
      }
      return found
    }
  }

  /// Sets the lowest schema version of records that a scope takes from now on; devices with an older one are told to upgrade.
  ///
  /// - Throws: ``StoreError``.
  public func setMinimum(_ version: Int, of scope: String) async throws(StoreError) {
    try await writers.perform { (connection) throws(StoreError) in
      try connection.execute(
        "INSERT INTO larder_scopes (scope, head, horizon, minimum, token) VALUES (?, 0, 0, ?, '') "
          + "ON CONFLICT (scope) DO UPDATE SET minimum = excluded.minimum", [.text(scope), .integer(version)])
    }
  }
}
