internal import LarderSync

extension PushTransaction {
  /// Checks that the identity may have one more device, and one more scope if it has no device in this one.
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

  /// Counts written records for their devices, and checks what the identity stores then.
  ///
  /// - Parameter changes: The changes by device. Those of the pushing device are in its row already.
  func count(_ changes: [String: StoredUsage]) throws(StoreError) {
    let others = changes.filter { $0.key != push.device }.sorted { $0.key < $1.key }
    for (device, change) in others {
      try connection.execute(
        "UPDATE larder_devices SET records = records + ?, bytes = bytes + ? WHERE scope = ? AND device = ?",
        [.integer(change.records), .integer(change.bytes), .text(scope), .text(device)])
    }
    let own = changes[push.device] ?? StoredUsage()
    // A push that stores no more needs no look at the whole.
    guard own.records > 0 && quota.records < .max || own.bytes > 0 && quota.bytes < .max else { return }
    let row = try connection.row(
      "SELECT CAST(SUM(records) AS BIGINT), CAST(SUM(bytes) AS BIGINT) FROM larder_devices WHERE owner = ?", [.text(owner)])
    let sum = StoredUsage(records: row?.integer(0) ?? 0, bytes: row?.integer(1) ?? 0)
    guard sum.records > quota.records || sum.bytes > quota.bytes else { return }
    // An identity above its quota may still overwrite its own records, and delete.
    var growth = own
    for list in InList.lists(of: others.map { .text($0.key) }) {
      let rows = try connection.rows(
        "SELECT device FROM larder_devices WHERE scope = ? AND owner = ? AND device IN (\(list.marks))",
        [.text(scope), .text(owner)] + list.values)
      for row in rows { growth += changes[row.text(0)] ?? StoredUsage() }
    }
    if sum.records > quota.records, growth.records > 0 {
      throw .problem(.overQuota("Expected at most \(quota.records) records of the identity, found \(sum.records) with this push."))
    }
    if sum.bytes > quota.bytes, growth.bytes > 0 {
      throw .problem(.overQuota("Expected at most \(quota.bytes) bytes of the identity's records, found \(sum.bytes) with this push."))
    }
  }
}
