internal import LarderWire

/// One push within its transaction.
struct PushTransaction {
  let connection: any SQLConnection
  let push: SyncPush
  let scope: String
  let owner: String
  let rejections: [SyncRejectionReason?]
  let quota: IdentityQuota
  let now: Int

  func run() throws(StoreError) -> PushResult {
    // The first statement, so that everything read below includes the commits of earlier pushes.
    let (head, minimum) = try lockHead()
    let history = try SQLSchema.history(connection)
    // The revisions of another history would be compared with numbers of different commits.
    if let known = push.history, known != history { throw .problem(.history(history)) }
    let device = try DeviceRow.read(connection, scope: scope, device: push.device)
    if let device, device.owner != owner { throw .problem(.forbidden) }
    if let last = device?.receipt, push.seq <= last.seq {
      // Two copies of one device send the same numbers. Only the random token tells their pushes apart.
      guard push.seq == last.seq, push.token == last.token else { throw .problem(.gap(last: last.seq)) }
      // A repeated push gets its first outcomes again and writes nothing.
      return PushResult(reply: try reply(last, history), head: head)
    }
    let last = device?.receipt.seq ?? 0
    guard push.seq == last + 1 else { throw .problem(.gap(last: last)) }
    // A deletion has no value that could be outdated, and earlier apps send every deletion as version 1.
    if push.groups.joined().contains(where: { $0.value != nil && $0.version < minimum }) {
      throw .problem(.upgradeRequired(minimum: minimum))
    }
    if device == nil { try checkDevices() }
    var written = try write(from: head, stamp: device?.stamp ?? 0)
    // A push without an accepted group makes no commit.
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
    // After the row is written, so that the sums over the identity's devices include this push.
    try count(written)
    return PushResult(reply: try reply(receipt, history), head: written.head)
  }

  /// Returns the answer to a push with a stored receipt.
  private func reply(_ receipt: SyncReceipt, _ history: String) throws(StoreError) -> SyncPushReply {
    SyncPushReply(history: history, now: now, receipt: try RecordRow.filled(receipt, connection, scope: scope))
  }

  /// Locks the row of the scope before anything else is read, so that the commits of all earlier pushes are visible then.
  private func lockHead() throws(StoreError) -> (head: Int, minimum: Int) {
    let question = "SELECT head, minimum FROM larder_scopes WHERE scope = ?" + connection.dialect.forUpdate
    if let row = try connection.row(question, [.text(scope)]) { return (row.integer(0), row.integer(1)) }
    // Waits for another transaction that creates the same row. The second query then finds it.
    try connection.execute(
      "INSERT INTO larder_scopes (scope, head, horizon, minimum, token) VALUES (?, 0, 0, 0, '') ON CONFLICT (scope) DO NOTHING",
      [.text(scope)])
    let row = try connection.row(question, [.text(scope)])
    return (row?.integer(0) ?? 0, row?.integer(1) ?? 0)
  }
}
