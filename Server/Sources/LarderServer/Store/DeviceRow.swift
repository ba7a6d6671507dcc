@_spi(Wire) internal import LarderWire

/// Row of a device in a scope: its owner, its newest receipt (the outcomes of its last push) and its usage.
struct DeviceRow {
  var owner: String
  /// Newest receipt of the device.
  ///
  /// Its conflicts only name their records.
  var receipt: SyncReceipt
  /// Newest time stamp of the device's records.
  var stamp: Int
  /// Records and tombstones whose newest revision the device wrote.
  var usage: StoredUsage
  /// Bytes of the receipt that count for the owner's quota.
  var receiptBytes: Int

  /// Reads the row of a device, or returns `nil` for a device that has not pushed.
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
    // An update keeps the owner: a device belongs to the identity that used it first.
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

/// Number of stored records, and number of bytes of their names and values.
struct StoredUsage: Equatable {
  var records = 0
  var bytes = 0

  static func += (sum: inout StoredUsage, more: StoredUsage) {
    (sum.records, sum.bytes) = (sum.records + more.records, sum.bytes + more.bytes)
  }
}

/// Limits on the data that one identity may store, in all scopes together.
struct IdentityQuota: Sendable {
  /// Maximum number of scopes in which the identity has devices.
  var scopes = Int.max
  /// Maximum number of devices, counted once for each scope.
  var devices = Int.max
  /// Maximum number of records and tombstones that its devices were the last to write.
  var records = Int.max
  /// Maximum number of bytes of the identity's records (names and values) and of the receipts that count.
  var bytes = Int.max

  /// Bytes of each receipt that count for no quota, so that an identity without room still learns of a few conflicts.
  static let freeReceiptBytes = 4 << 10

  /// Returns the bytes of a receipt that count for a quota: those of groups that were not accepted, whose names a client chooses.
  ///
  /// An accepted group has a few bytes, which do not count. So no accepted deletion exceeds a quota.
  static func countedBytes(of receipt: SyncReceipt) -> Int {
    var refused = receipt
    refused.outcomes.removeAll { if case .accepted = $0 { true } else { false } }
    return refused.outcomes.isEmpty ? 0 : max(0, refused.remembered.count - freeReceiptBytes)
  }
}
