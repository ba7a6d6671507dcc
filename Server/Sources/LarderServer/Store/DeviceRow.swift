@_spi(Wire) internal import LarderSync

/// The row of a device in a scope: its identity, its newest receipt, and the records that it was the last to write.
struct DeviceRow {
  var owner: String
  /// The newest receipt, whose conflicts only name their records.
  var receipt: SyncReceipt
  /// The newest stamp of its records.
  var stamp: Int
  /// The records, tombstones included, whose newest revision is of this device.
  var usage: StoredUsage

  /// Returns the row of a device; `nil` for one that has not pushed.
  static func read(_ connection: any SQLConnection, scope: String, device: String) throws(StoreError) -> DeviceRow? {
    let row = try connection.row(
      "SELECT owner, outcome, stamp, records, bytes FROM larder_devices WHERE scope = ? AND device = ?", [.text(scope), .text(device)])
    guard let row, let outcome = row.utf8(1) else { return nil }
    let receipt: SyncReceipt
    do throws(SyncProblem) { receipt = try SyncReceipt(remembered: outcome) } catch {
      throw .database(code: "damage", message: "the outcome of a push cannot be read: run larder-server doctor")
    }
    return DeviceRow(
      owner: row.text(0), receipt: receipt, stamp: row.integer(2), usage: StoredUsage(records: row.integer(3), bytes: row.integer(4)))
  }

  /// Writes the row of a device.
  func write(_ connection: any SQLConnection, scope: String, device: String, now: Int) throws(StoreError) {
    try connection.execute(
      "INSERT INTO larder_devices (scope, device, owner, last_seq, last_token, outcome, stamp, seen_at, records, bytes) "
        + "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        + "ON CONFLICT (scope, device) DO UPDATE SET last_seq = excluded.last_seq, last_token = excluded.last_token, "
        + "outcome = excluded.outcome, stamp = excluded.stamp, seen_at = excluded.seen_at, records = excluded.records, "
        + "bytes = excluded.bytes",
      [
        .text(scope), .text(device), .text(owner), .integer(receipt.seq), .text(receipt.token), .utf8(receipt.remembered),
        .integer(stamp), .integer(now), .integer(usage.records), .integer(usage.bytes),
      ])
  }
}

/// A number of stored records, and the bytes of their names and values.
struct StoredUsage: Equatable {
  var records = 0
  var bytes = 0

  static func += (sum: inout StoredUsage, more: StoredUsage) {
    (sum.records, sum.bytes) = (sum.records + more.records, sum.bytes + more.bytes)
  }
}

/// The limits of what one identity may store, in all scopes together.
struct IdentityQuota: Sendable {
  /// The number of scopes with devices.
  var scopes = Int.max
  /// The number of devices, counted once for each scope.
  var devices = Int.max
  /// The number of records and tombstones that its devices were the last to write.
  var records = Int.max
  /// The bytes of the names and values of these records.
  var bytes = Int.max
}
