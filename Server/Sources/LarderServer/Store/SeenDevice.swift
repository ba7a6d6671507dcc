/// A device in a scope, as an operator sees it.
public struct SeenDevice: Sendable, Hashable {
  /// The identity that the device belongs to.
  public var identity: String
  /// The scope.
  public var scope: String
  /// The name of the device.
  public var device: String
  /// The time of its newest push or question for changes, in milliseconds since 1970.
  public var seenAt: Int
  /// The commit up to which it has read, 0 where that was of another history; `nil` for one that has not asked for changes.
  public var position: Int?
  /// The newest commit of the scope.
  public var head: Int
  /// The number of records with edits that wait on the device, those that the server has refused included; `nil` where it does not say.
  public var pending: Int?
  /// The version of its app; `nil` where it does not say.
  public var app: String?

  /// The number of commits that the device has not read; `nil` where ``position`` is.
  public var behind: Int? { position.map { max(0, head - $0) } }
}

extension SQLSyncStore {
  /// Returns the devices that have pushed or asked for changes, in the order of identities, scopes and names.
  ///
  /// A running server stores what it has seen every 30 seconds, and when it ends.
  /// - Parameters:
  ///   - identity: The identity that they belong to; `nil` for any.
  ///   - scope: The scope; `nil` for any.
  /// - Throws: ``StoreError``.
  public func devices(identity: String? = nil, scope: String? = nil) async throws(StoreError) -> [SeenDevice] {
    func filter(_ table: String) -> String {
      (identity == nil ? "" : " AND \(table).owner = ?") + (scope == nil ? "" : " AND \(table).scope = ?")
    }
    let (pushing, reading) = (filter("d"), filter("v"))
    let columns = "v.seen_at, v.position, s.head, v.pending, v.app, v.history"
    let sql =
      "SELECT d.owner AS owner, d.scope AS scope, d.device AS device, d.seen_at, \(columns) FROM larder_devices d "
      + "JOIN larder_scopes s ON d.scope = s.scope LEFT JOIN larder_sightings v ON d.scope = v.scope AND d.device = v.device "
      + "WHERE s.head >= 0\(pushing) "
      // A device that only reads has no row of pushes.
      + "UNION ALL SELECT v.owner, v.scope, v.device, v.seen_at, \(columns) FROM larder_sightings v "
      + "JOIN larder_scopes s ON v.scope = s.scope LEFT JOIN larder_devices d ON d.scope = v.scope AND d.device = v.device "
      + "WHERE d.scope IS NULL\(reading) ORDER BY owner, scope, device"
    let values = [identity, scope].compactMap { $0.map(SQLValue.text) }
    return try await readers.perform { (connection) throws(StoreError) in
      let history = try SQLSchema.history(connection)
      return try connection.rows(sql, values + values).map { row in
        let position = row.optionalInteger(5).map { row.text(9) == history ? $0 : 0 }
        return SeenDevice(
          identity: row.text(0), scope: row.text(1), device: row.text(2), seenAt: max(row.integer(3), row.integer(4)),
          position: position, head: row.integer(6), pending: row.optionalInteger(7),
          app: row.values[8] == .null ? nil : row.text(8))
      }
    }
  }
}
