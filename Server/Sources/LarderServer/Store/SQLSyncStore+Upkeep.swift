internal import Foundation

extension SQLSyncStore {
  /// Forgets tombstones that are older than a number of days, and raises the horizon of each scope in the same transaction.
  ///
  /// A device that was away for longer reads everything again.
  ///
  /// - Parameter days: The age in days, from 0. An age before all recorded times, or NaN, forgets nothing.
  /// - Returns: The number of tombstones.
  /// - Throws: ``StoreError``.
  public func purge(olderThanDays days: Double, scope: String? = nil) async throws(StoreError) -> Int {
    let limit = SQLValue.integer(now() - Self.milliseconds(ofDays: days))
    let filter = scope == nil ? "" : " AND scope = ?"
    let parameters = [limit] + (scope.map { [SQLValue.text($0)] } ?? [])
    let scopes = try await readers.perform { (connection) throws(StoreError) in
      try connection.rows(
        "SELECT DISTINCT scope FROM larder_records WHERE deleted_at IS NOT NULL AND deleted_at <= ?\(filter) ORDER BY scope", parameters
      ).map { $0.text(0) }
    }
    var count = 0
    // One transaction for each scope, under the lock of its pushes, so that no push waits for the purge of another scope.
    for scope in scopes {
      count += try await writers.perform(key: scope) { (connection) throws(StoreError) in
        try Self.purge(.text(scope), limit, connection)
      }
    }
    return count
  }

  /// Largest age in milliseconds, which is before all recorded times.
  private static let longest = 1 << 53

  static func milliseconds(ofDays days: Double) -> Int {
    let milliseconds = days * 86_400_000
    // Written so that NaN gives the largest age, too.
    guard milliseconds < Double(longest) else { return longest }
    return milliseconds > 0 ? Int(milliseconds) : 0
  }

  private static func purge(_ scope: SQLValue, _ limit: SQLValue, _ connection: any SQLConnection) throws(StoreError) -> Int {
    // The lock that a push takes first, so that no record changes during the purge.
    _ = try connection.row("SELECT head FROM larder_scopes WHERE scope = ?" + connection.dialect.forUpdate, [scope])
    let found = try connection.row(
      "SELECT COUNT(*), MAX(revision) FROM larder_records WHERE scope = ? AND deleted_at IS NOT NULL AND deleted_at <= ?", [scope, limit])
    guard let found, found.integer(0) > 0 else { return 0 }
    // Read before the deletion, since purged records no longer count for their devices.
    let counted = try connection.rows(
      "SELECT writer, COUNT(*), CAST(SUM(size) AS BIGINT) FROM larder_records WHERE scope = ? AND deleted_at IS NOT NULL "
        + "AND deleted_at <= ? AND size > 0 GROUP BY writer ORDER BY writer", [scope, limit])
    for row in counted {
      try connection.execute(
        "UPDATE larder_devices SET records = records - ?, bytes = bytes - ? WHERE scope = ? AND device = ?",
        [.integer(row.integer(1)), .integer(row.integer(2)), scope, .text(row.text(0))])
    }
    try connection.execute("DELETE FROM larder_records WHERE scope = ? AND deleted_at IS NOT NULL AND deleted_at <= ?", [scope, limit])
    let newest = SQLValue.integer(found.integer(1))
    // Never lowered, because an earlier purge may have reached a later commit.
    try connection.execute("UPDATE larder_scopes SET horizon = ? WHERE scope = ? AND horizon < ?", [newest, scope, newest])
    return found.integer(0)
  }

  /// Writes a copy of the store, as it is now, to a file that does not exist yet.
  ///
  /// Pushes go on meanwhile.
  ///
  /// - Throws: ``StoreError``.
  public func backUp(to path: String) async throws(StoreError) {
    try await readers.perform { (connection) throws(StoreError) in try connection.copy(to: path) }
  }

  /// Gives the store another history, as after a restore.
  ///
  /// Devices then send back the records that the copy lacks.
  ///
  /// - Returns: The new history.
  /// - Throws: ``StoreError``.
  @discardableResult public func changeHistory() async throws(StoreError) -> String {
    try await writers.perform { (connection) throws(StoreError) in
      try connection.execute("UPDATE larder_meta SET history = ? WHERE one = 1", [.text(UUID().uuidString.lowercased())])
      return try SQLSchema.history(connection)
    }
  }

  /// Returns the name of the store's history.
  ///
  /// - Throws: ``StoreError``.
  public func history() async throws(StoreError) -> String {
    try await readers.perform { (connection) throws(StoreError) in try SQLSchema.history(connection) }
  }
}
