internal import LarderSync

/// One push, within its transaction.
struct PushTransaction {
  let connection: any SQLConnection
  let push: SyncPush
  let scope: String
  let owner: String
  let rejections: [SyncRejectionReason?]
  let quota: IdentityQuota
  let now: Int

  func run() throws(StoreError) -> PushResult {
    let (head, minimum) = try lockHead()
    let history = try SQLSchema.history(connection)
    if let known = push.history, known != history { throw .problem(.history(history)) }
    let device = try DeviceRow.read(connection, scope: scope, device: push.device)
    if let device, device.owner != owner { throw .problem(.forbidden) }
    if let last = device?.receipt, push.seq <= last.seq {
      guard push.seq == last.seq, push.token == last.token else { throw .problem(.gap(last: last.seq)) }
      return PushResult(reply: try reply(last, history), head: head)
    }
    let last = device?.receipt.seq ?? 0
    guard push.seq == last + 1 else { throw .problem(.gap(last: last)) }
    // A deletion has no value in an old form, and apps before this one send every deletion as version 1.
    if push.groups.joined().contains(where: { $0.value != nil && $0.version < minimum }) {
      throw .problem(.upgradeRequired(minimum: minimum))
    }
    if device == nil { try checkDevices() }
    var written = try write(from: head, stamp: device?.stamp ?? 0)
    if written.head > head {
      try connection.execute(
        "UPDATE larder_scopes SET head = ?, token = ? WHERE scope = ?", [.integer(written.head), .text(push.token), .text(scope)])
    }
    let receipt = SyncReceipt(seq: push.seq, token: push.token, outcomes: written.outcomes)
    var row = DeviceRow(
      owner: owner, receipt: receipt, stamp: written.stamp, usage: device?.usage ?? StoredUsage(),
      receiptBytes: IdentityQuota.countedBytes(of: receipt))
    written.growth.bytes += row.receiptBytes - (device?.receiptBytes ?? 0)
    row.usage += written.usage[Array(push.device.utf8)] ?? StoredUsage()
    try row.write(connection, scope: scope, device: push.device, now: now)
    try count(written)
    return PushResult(reply: try reply(receipt, history), head: written.head)
  }

  /// Returns the answer with a remembered receipt.
  private func reply(_ receipt: SyncReceipt, _ history: String) throws(StoreError) -> SyncPushReply {
    SyncPushReply(history: history, now: now, receipt: try RecordRow.filled(receipt, connection, scope: scope))
  }

  /// Locks the row of the scope, before anything else is read: whoever held it before has committed what is read then.
  private func lockHead() throws(StoreError) -> (head: Int, minimum: Int) {
    let question = "SELECT head, minimum FROM larder_scopes WHERE scope = ?" + connection.dialect.forUpdate
    if let row = try connection.row(question, [.text(scope)]) { return (row.integer(0), row.integer(1)) }
    // Waits for another transaction that makes the same row, which is there then.
    try connection.execute(
      "INSERT INTO larder_scopes (scope, head, horizon, minimum, token) VALUES (?, 0, 0, 0, '') ON CONFLICT (scope) DO NOTHING",
      [.text(scope)])
    let row = try connection.row(question, [.text(scope)])
    return (row?.integer(0) ?? 0, row?.integer(1) ?? 0)
  }
}
