internal import LarderSync
internal import Synchronization

/// The devices of one identity.
public struct DeviceOwner: Sendable, Hashable {
  /// The name of the identity.
  public var identity: String
  /// The number of its devices, counted once for each scope that they have pushed to.
  public var devices: Int
  /// The number of stored records and tombstones that its devices were the last to write.
  public var records = 0
  /// The bytes of the names and values of these records, and those of outcomes that count with them.
  public var bytes = 0
}

/// A choice of devices to forget: those that all members of this value fit.
public struct DeviceSelection: Sendable, Hashable {
  /// The identity that the devices belong to; `nil` for any.
  public var identity: String?
  /// The scope in which they have pushed; `nil` for any.
  public var scope: String?
  /// The name of the device; `nil` for any.
  public var device: String?
  /// The days since the newest push, and of a device that only reads since its newest question.
  ///
  /// 0 chooses a device of any age.
  public var olderThanDays: Double

  /// Makes a choice.
  public init(identity: String? = nil, scope: String? = nil, device: String? = nil, olderThanDays: Double = 0) {
    (self.identity, self.scope, self.device, self.olderThanDays) = (identity, scope, device, olderThanDays)
  }
}

extension SQLSyncStore {
  /// Returns the identities that devices belong to, in the order of their names.
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

  /// Gives the devices of one identity to another one, for whom a token of another name stands now.
  ///
  /// - Returns: The number of devices, counted once for each scope.
  /// - Throws: ``StoreError``.
  public func moveDevices(from old: String, to new: String) async throws(StoreError) -> Int {
    let most = Mutex(0)
    return try await writers.perform { (connection) throws(StoreError) in
      let count = try connection.row("SELECT COUNT(*) FROM larder_devices WHERE owner = ?", [.text(old)])?.integer(0) ?? 0
      for table in ["larder_devices", "larder_sightings"] {
        try connection.execute("UPDATE \(table) SET owner = ? WHERE owner = ?", [.text(new), .text(old)])
      }
      // Where the answer to COMMIT was lost, the next try finds none: what the one before has counted is known to be moved then.
      return most.withLock { most in
        most = max(most, count)
        return most
      }
    }
  }

  /// Forgets devices: their receipts, the count of the records that they were the last to write, and when they were seen.
  ///
  /// The records stay. A forgotten device that comes back goes on under a new name. A push of which it did not learn the outcome is sent
  /// again, and merged with its own first writing.
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
    // One scope at a time, under its lock, so that no push counts for a device while it is forgotten.
    for scope in scopes {
      // The larger count, as in `moveDevices`: a second run after a lost answer to COMMIT finds none.
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
        // One that has read since its last push is still seen.
        try connection.execute("DELETE FROM larder_sightings WHERE \(filter) AND scope = ?", values + [.text(scope)])
        let forgotten = found.count + (onlyReading?.integer(0) ?? 0)
        for list in InList.lists(of: found) {
          // A device of the same name begins at a count of 0.
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
