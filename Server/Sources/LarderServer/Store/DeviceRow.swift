internal import LarderSync

/// The row of a device in a scope: whose it is, and its newest push with the outcomes.
struct DeviceRow {
  var owner: String
  var receipt: SyncReceipt
  /// The newest stamp of its records.
  var stamp: Int

  /// Returns the row of a device; `nil` for one that has not pushed.
  static func read(_ connection: any SQLConnection, scope: String, device: String) throws(StoreError) -> DeviceRow? {
    let row = try connection.row(
      "SELECT owner, outcome, stamp FROM larder_devices WHERE scope = ? AND device = ?", [.text(scope), .text(device)])
    guard let row, let outcome = row.utf8(1) else { return nil }
    do throws(SyncProblem) { return DeviceRow(owner: row.text(0), receipt: try SyncReceipt(json: outcome), stamp: row.integer(2)) } catch {
      throw .database(code: "damage", message: "the outcome of a push cannot be read: run larder-server doctor")
    }
  }

  /// Writes the row of a device.
  func write(_ connection: any SQLConnection, scope: String, device: String, now: Int) throws(StoreError) {
    try connection.execute(
      "INSERT INTO larder_devices (scope, device, owner, last_seq, last_token, outcome, stamp, seen_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
        + "ON CONFLICT (scope, device) DO UPDATE SET last_seq = excluded.last_seq, last_token = excluded.last_token, "
        + "outcome = excluded.outcome, stamp = excluded.stamp, seen_at = excluded.seen_at",
      [
        .text(scope), .text(device), .text(owner), .integer(receipt.seq), .text(receipt.token), .utf8(receipt.json), .integer(stamp),
        .integer(now),
      ])
  }
}
