internal import LarderWire

extension PushTransaction {
  /// Throws if the identity may have no further device, or no further scope when it has no device in this one.
  func checkDevices() throws(StoreError) {
    if quota.scopes == .max, quota.devices == .max { return }
    let row = try connection.row("SELECT COUNT(*), COUNT(DISTINCT scope) FROM larder_devices WHERE owner = ?", [.text(owner)])
    let (devices, scopes) = (row?.integer(0) ?? 0, row?.integer(1) ?? 0)
    guard devices < quota.devices else {
      throw .problem(
        .overQuota("Expected at most \(quota.devices) devices of the identity, counted once for each scope, and this would be one more."))
    }
    if scopes < quota.scopes { return }
    let here = try connection.row("SELECT 1 FROM larder_devices WHERE owner = ? AND scope = ? LIMIT 1", [.text(owner), .text(scope)])
    guard here != nil else { throw .problem(.tooManyScopes(most: quota.scopes)) }
  }

  /// Updates the usage of devices whose records were overwritten, and checks the quota of the identity.
  ///
  /// A push is refused only if the store grows by it. So an identity beyond its quota can still delete, and overwrite with smaller values.
  func count(_ written: Written) throws(StoreError) {
    // Without the device of the push, whose row is written as a whole.
    for (device, change) in written.usage.filter({ !$0.key.elementsEqual(push.device.utf8) }).sorted(by: {
      $0.key.lexicographicallyPrecedes($1.key)
    }) {
      try connection.execute(
        "UPDATE larder_devices SET records = records + ?, bytes = bytes + ? WHERE scope = ? AND device = ?",
        [.integer(change.records), .integer(change.bytes), .text(scope), .text(String(decoding: device, as: UTF8.self))])
    }
    let growth = written.growth
    // Saves the sum over all devices of the identity for a push that adds nothing.
    guard growth.records > 0 && quota.records < .max || growth.bytes > 0 && quota.bytes < .max else { return }
    // PostgreSQL sums BIGINT to NUMERIC, which would not be read as an integer without the cast.
    let row = try connection.row(
      "SELECT CAST(SUM(records) AS BIGINT), CAST(SUM(bytes + receipt_bytes) AS BIGINT) FROM larder_devices WHERE owner = ?", [.text(owner)])
    let sum = StoredUsage(records: row?.integer(0) ?? 0, bytes: row?.integer(1) ?? 0)
    if sum.records > quota.records, growth.records > 0 {
      throw .problem(.overQuota("Expected at most \(quota.records) records of the identity, found \(sum.records) with this push."))
    }
    if sum.bytes > quota.bytes, growth.bytes > 0 {
      throw .problem(
        .overQuota("Expected at most \(quota.bytes) bytes of the identity's records and outcomes, found \(sum.bytes) with this push."))
    }
  }
}
