/// Device in a scope, with the state that an operator sees.
public struct SeenDevice: Sendable, Hashable {
  /// Identity that the device belongs to.
  public var identity: String
  /// Scope that the device has pushed to or read.
  public var scope: String
  /// Name of the device.
  public var device: String
  /// Time of its newest push or request for changes, in milliseconds since 1970.
  public var seenAt: Int
  /// Commit up to which the device has read.
  ///
  /// 0 if it has read another history, and `nil` if it has not asked for changes.
  public var position: Int?
  /// Newest commit of the scope.
  public var head: Int
  /// Number of records with edits that wait on the device, refused ones included, or `nil` if it does not report them.
  public var pending: Int?
  /// Version of its app, or `nil` if the device does not report it.
  public var app: String?

  /// Number of commits that the device has not read, or `nil` if ``position`` is `nil`.
  public var behind: Int? { position.map { max(0, head - $0) } }
}

extension SQLSyncStore {
  /// Returns the devices that have pushed or asked for changes, in the order of identities, scopes and names.
  ///
  /// A running server stores the requests of devices every 30 seconds, and when it ends.
  ///
  /// - Parameters:
  ///   - identity: The identity that the devices belong to, or `nil` for any.
  ///   - scope: The scope, or `nil` for any.
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
      // A device that only reads has no row in `larder_devices`.
      + "UNION ALL SELECT v.owner, v.scope, v.device, v.seen_at, \(columns) FROM larder_sightings v "
      + "JOIN larder_scopes s ON v.scope = s.scope LEFT JOIN larder_devices d ON d.scope = v.scope AND d.device = v.device "
      + "WHERE d.scope IS NULL\(reading) ORDER BY owner, scope, device"
    let values = [identity, scope].compactMap { $0.map(SQLValue.text) }
    return try await readers.perform { (connection) throws(StoreError) in
      let history = try SQLSchema.history(connection)
      return try connection.rows(sql, values + values).map { row in
        // A position in another history says nothing of this one.
        let position = row.optionalInteger(5).map { row.text(9) == history ? $0 : 0 }
        return SeenDevice(
          identity: row.text(0), scope: row.text(1), device: row.text(2), seenAt: max(row.integer(3), row.integer(4)),
          position: position, head: row.integer(6), pending: row.optionalInteger(7),
          app: row.values[8] == .null ? nil : row.text(8))
      }
    }
  }
}
