internal import LarderWire
internal import Synchronization

/// Identity that owns devices, with their number and usage.
public struct DeviceOwner: Sendable, Hashable {
  /// Name of the identity.
  public var identity: String
  /// Number of its devices, counted once for each scope that they have pushed to.
  public var devices: Int
  /// Number of stored records and tombstones that its devices were the last to write.
  public var records = 0
  /// Number of bytes that count for the identity's quota: names and values of its records, and parts of its receipts.
  public var bytes = 0
}

/// Selection of devices to forget: the devices that match all members.
public struct DeviceSelection: Sendable, Hashable {
  /// Identity that owns the devices, or `nil` for any.
  public var identity: String?
  /// Scope in which the devices have pushed or asked for changes, or `nil` for any.
  public var scope: String?
  /// Name of the device, or `nil` for any.
  public var device: String?
  /// Minimum number of days since the newest push, or since the newest request of a device that only reads.
  ///
  /// 0 selects devices of any age.
  public var olderThanDays: Double

  /// Creates a selection.
  public init(identity: String? = nil, scope: String? = nil, device: String? = nil, olderThanDays: Double = 0) {
    (self.identity, self.scope, self.device, self.olderThanDays) = (identity, scope, device, olderThanDays)
  }
}

extension SQLSyncStore {
  /// Returns the identities that own devices, in the order of their names.
  ///
  /// - Throws: ``StoreError``.
  public func deviceOwners() async throws(StoreError) -> [DeviceOwner] {
    try await readers.perform { (connection) throws(StoreError) in
      try connection.rows(
        "SELECT owner, COUNT(*), CAST(SUM(records) AS BIGINT), CAST(SUM(bytes + receipt_bytes) AS BIGINT) FROM larder_devices "
          + "GROUP BY owner ORDER BY owner", []
      ).map { row in
        DeviceOwner(identity: row.text(0), devices: row.integer(1), records: row.integer(2), bytes: row.integer(3))
      }
    }
  }

  /// Gives the devices of one identity to another one.
  ///
  /// Call it when the tokens of a user have got another name.
  ///
  /// - Returns: The number of devices, counted once for each scope.
  /// - Throws: ``StoreError``.
  public func moveDevices(from old: String, to new: String) async throws(StoreError) -> Int {
    // Outside of the work, which may run several times.
    let most = Mutex(0)
    return try await writers.perform { (connection) throws(StoreError) in
      let count = try connection.row("SELECT COUNT(*) FROM larder_devices WHERE owner = ?", [.text(old)])?.integer(0) ?? 0
      for table in ["larder_devices", "larder_sightings"] {
        try connection.execute("UPDATE \(table) SET owner = ? WHERE owner = ?", [.text(new), .text(old)])
      }
      // If the answer to COMMIT was lost, the second run finds no device. The first run's count is right then.
      return most.withLock { most in
        most = max(most, count)
        return most
      }
    }
  }

  /// Forgets devices: their receipts, their sightings, and the count of the records that they were the last to write.
  ///
  /// The records stay. A forgotten device that comes back goes on under a new name. If it did not learn the outcome of its last push, it
  /// sends the push again and merges it with its own first writes.
  ///
  /// - Returns: The number of devices, counted once for each scope.
  /// - Throws: ``StoreError``.
  public func forgetDevices(_ selection: DeviceSelection) async throws(StoreError) -> Int {
    let limit = now() - Self.milliseconds(ofDays: selection.olderThanDays)
    var conditions = "seen_at <= ?"
    var parameters = [SQLValue.integer(limit)]
    for (value, condition) in [
      (selection.identity, " AND owner = ?"), (selection.scope, " AND scope = ?"), (selection.device, " AND device = ?"),
    ] {
      guard let value else { continue }
      conditions += condition
      parameters.append(.text(value))
    }
    let (filter, values) = (conditions, parameters)
    let scopes = try await readers.perform { (connection) throws(StoreError) in
      try connection.rows(
        "SELECT DISTINCT scope FROM larder_devices WHERE \(filter) UNION SELECT DISTINCT scope FROM larder_sightings WHERE \(filter) "
          + "ORDER BY scope", values + values
      ).map { $0.text(0) }
    }
    var count = 0
    // One scope at a time, under the lock of its pushes, so that no push counts for a device that is being forgotten.
    for scope in scopes {
      // The larger count, as in `moveDevices`: a second run after a lost answer to COMMIT finds no device.
      let most = Mutex(0)
      count += try await writers.perform(key: scope) { (connection) throws(StoreError) in
        _ = try connection.row("SELECT head FROM larder_scopes WHERE scope = ?" + connection.dialect.forUpdate, [.text(scope)])
        let found = try connection.rows(
          "SELECT device FROM larder_devices WHERE \(filter) AND scope = ?", values + [.text(scope)]
        ).map { $0.values[0] }
        let onlyReading = try connection.row(
          "SELECT COUNT(*) FROM larder_sightings v LEFT JOIN larder_devices d ON d.scope = v.scope AND d.device = v.device "
            + "WHERE v.scope = ? AND d.scope IS NULL AND v.device IN (SELECT device FROM larder_sightings WHERE \(filter) AND scope = ?)",
          [.text(scope)] + values + [.text(scope)])
        // A device that has read since its last push keeps its sighting.
        try connection.execute("DELETE FROM larder_sightings WHERE \(filter) AND scope = ?", values + [.text(scope)])
        let forgotten = found.count + (onlyReading?.integer(0) ?? 0)
        for list in InList.lists(of: found) {
          // A new device of the same name must begin at a count of 0.
          try connection.execute(
            "UPDATE larder_records SET size = 0 WHERE scope = ? AND size > 0 AND writer IN (\(list.marks))", [.text(scope)] + list.values)
          try connection.execute(
            "DELETE FROM larder_devices WHERE scope = ? AND device IN (\(list.marks))", [.text(scope)] + list.values)
        }
        return most.withLock { most in
          most = max(most, forgotten)
          return most
        }
      }
    }
    return count
  }
}
