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
  /// The bytes of the receipt that count for the owner.
  var receiptBytes: Int

  /// Returns the row of a device; `nil` for one that has not pushed.
  static func read(_ connection: any SQLConnection, scope: String, device: String) throws(StoreError) -> DeviceRow? {
    let row = try connection.row(
      "SELECT owner, outcome, stamp, records, bytes, receipt_bytes FROM larder_devices WHERE scope = ? AND device = ?",
      [.text(scope), .text(device)])
    guard let row, let outcome = row.utf8(1) else { return nil }
    let receipt: SyncReceipt
    do throws(SyncProblem) { receipt = try SyncReceipt(remembered: outcome) } catch {
      throw .database(code: "damage", message: "the outcome of a push cannot be read: run larder-server doctor")
    }
    return DeviceRow(
      owner: row.text(0), receipt: receipt, stamp: row.integer(2), usage: StoredUsage(records: row.integer(3), bytes: row.integer(4)),
      receiptBytes: row.integer(5))
  }

  /// Writes the row of a device.
  func write(_ connection: any SQLConnection, scope: String, device: String, now: Int) throws(StoreError) {
    try connection.execute(
      "INSERT INTO larder_devices (scope, device, owner, last_seq, last_token, outcome, stamp, seen_at, records, bytes, receipt_bytes) "
        + "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        + "ON CONFLICT (scope, device) DO UPDATE SET last_seq = excluded.last_seq, last_token = excluded.last_token, "
        + "outcome = excluded.outcome, stamp = excluded.stamp, seen_at = excluded.seen_at, records = excluded.records, "
        + "bytes = excluded.bytes, receipt_bytes = excluded.receipt_bytes",
      [
        .text(scope), .text(device), .text(owner), .integer(receipt.seq), .text(receipt.token), .utf8(receipt.remembered),
        .integer(stamp), .integer(now), .integer(usage.records), .integer(usage.bytes), .integer(receiptBytes),
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
  /// The bytes of the names and values of these records, and of the receipts that count.
  var bytes = Int.max

  /// The bytes of a receipt that count for nobody, so that a full identity still learns of a few conflicts.
  static let freeReceiptBytes = 4 << 10

  /// Returns the bytes of a receipt that count: those of the groups that were not accepted, since a client chooses the names in them.
  ///
  /// An accepted group has a few bytes, which do not count. So a deletion that is accepted is always taken.
  static func countedBytes(of receipt: SyncReceipt) -> Int {
    var refused = receipt
    refused.outcomes.removeAll { if case .accepted = $0 { true } else { false } }
    return refused.outcomes.isEmpty ? 0 : max(0, refused.remembered.count - freeReceiptBytes)
  }
}
