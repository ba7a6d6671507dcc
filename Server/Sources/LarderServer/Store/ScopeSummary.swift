/// Scope in a list of scopes.
public struct ScopeSummary: Sendable, Hashable {
  /// Name of the scope.
  public var scope: String
  /// Newest commit of the scope.
  public var head: Int
  /// Commit up to which tombstones may have been forgotten.
  public var horizon: Int
  /// Lowest schema version of records that the scope accepts.
  public var minimum: Int
}

extension SQLSyncStore {
  /// Returns scopes in the order of their names.
  ///
  /// To list all of them, pass the last name of each result as `after` in the next call.
  ///
  /// - Parameters:
  ///   - prefix: The beginning of the names.
  ///   - name: The name after which the list begins.
  ///   - limit: Maximum number of scopes in the result.
  /// - Throws: ``StoreError``.
  public func scopes(prefix: String = "", after name: String = "", limit: Int = 1_000) async throws(StoreError) -> [ScopeSummary] {
    try await readers.perform { (connection) throws(StoreError) in
      var found: [ScopeSummary] = []
      let start = max(prefix, name)
      try connection.execute(
        "SELECT scope, head, horizon, minimum FROM larder_scopes WHERE scope >= ? ORDER BY scope LIMIT ?",
        // One more than the limit, because the scope `name` itself is read and left out.
        [.text(start), .integer(limit == .max ? limit : limit + 1)]
      ) { (row) throws(StoreError) in
        let summary = ScopeSummary(scope: row.text(0), head: row.integer(1), horizon: row.integer(2), minimum: row.integer(3))
        // Names are sorted by their bytes, so the first one without the prefix ends the list.
        guard summary.scope.utf8.starts(with: prefix.utf8), found.count < limit else { return false }
        if summary.scope != name { found.append(summary) }
        return true
      }
      return found
    }
  }

  /// Sets the lowest schema version of records that a scope accepts from now on.
  ///
  /// A push with an older one gets 426.
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
