internal import LarderSync

/// One push, within its transaction.
struct PushTransaction {
  let connection: any SQLConnection
  let push: SyncPush
  let scope: String
  let owner: String
  let rejections: [SyncRejectionReason?]
  let mostScopes: Int
  let now: Int

  func run() throws(StoreError) -> PushResult {
    let (head, minimum) = try lockHead()
    let history = try SQLSchema.history(connection)
    if let known = push.history, known != history { throw .problem(.history(history)) }
    let device = try DeviceRow.read(connection, scope: scope, device: push.device)
    if let device, device.owner != owner { throw .problem(.forbidden) }
    if let last = device?.receipt, push.seq <= last.seq {
      guard push.seq == last.seq, push.token == last.token else { throw .problem(.gap(last: last.seq)) }
      return PushResult(reply: SyncPushReply(history: history, now: now, receipt: last), head: head)
    }
    let last = device?.receipt.seq ?? 0
    guard push.seq == last + 1 else { throw .problem(.gap(last: last)) }
    // A deletion has no value in an old form, and apps before this one send every deletion as version 1.
    if push.groups.joined().contains(where: { $0.value != nil && $0.version < minimum }) {
      throw .problem(.upgradeRequired(minimum: minimum))
    }
    if device == nil { try checkScopes() }
    let (outcomes, newHead, stamp) = try write(from: head, stamp: device?.stamp ?? 0)
    if newHead > head {
      try connection.execute(
        "UPDATE larder_scopes SET head = ?, token = ? WHERE scope = ?", [.integer(newHead), .text(push.token), .text(scope)])
    }
    let receipt = SyncReceipt(seq: push.seq, token: push.token, outcomes: outcomes)
    try DeviceRow(owner: owner, receipt: receipt, stamp: stamp).write(connection, scope: scope, device: push.device, now: now)
    return PushResult(reply: SyncPushReply(history: history, now: now, receipt: receipt), head: newHead)
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

  /// Makes sure that the identity does not fill the database with scopes: each costs a row for ever.
  private func checkScopes() throws(StoreError) {
    if mostScopes == .max { return }
    let here = try connection.row("SELECT 1 FROM larder_devices WHERE owner = ? AND scope = ? LIMIT 1", [.text(owner), .text(scope)])
    if here != nil { return }
    let count = try connection.row("SELECT COUNT(DISTINCT scope) FROM larder_devices WHERE owner = ?", [.text(owner)])?.integer(0) ?? 0
    guard count < mostScopes else { throw .problem(.tooManyScopes(most: mostScopes)) }
  }
}
