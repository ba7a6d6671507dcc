internal import LarderSync
internal import Synchronization

/// The devices of one identity.
public struct DeviceOwner: Sendable, Hashable {
  /// The name of the identity.
  public var identity: String
  /// The number of its devices, counted once for each scope that they have pushed to.
  public var devices: Int
}

extension SQLSyncStore {
  /// Returns the identities that devices belong to, in the order of their names.
  ///
  /// - Throws: ``StoreError``.
  public func deviceOwners() async throws(StoreError) -> [DeviceOwner] {
    try await readers.perform { (connection) throws(StoreError) in
      try connection.rows("SELECT owner, COUNT(*) FROM larder_devices GROUP BY owner ORDER BY owner", []).map { row in
        DeviceOwner(identity: row.text(0), devices: row.integer(1))
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
      try connection.execute("UPDATE larder_devices SET owner = ? WHERE owner = ?", [.text(new), .text(old)])
      // Where the answer to COMMIT was lost, the next try finds none: what the one before has counted is known to be moved then.
      return most.withLock { most in
        most = max(most, count)
        return most
      }
    }
  }
}
