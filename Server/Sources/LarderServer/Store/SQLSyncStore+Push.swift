internal import Foundation
internal import LarderSync

/// A reason for which a record is refused for good.
public struct SyncRejectionReason: Sendable, Hashable {
  /// The name of the rule, for the app.
  public var code: String
  /// The rule in words.
  public var detail: String

  /// Makes a reason.
  public init(code: String, detail: String = "") { (self.code, self.detail) = (code, detail) }
}

/// The answer to a push, with what only the server itself wants to know.
struct PushResult: Sendable {
  var reply: SyncPushReply
  /// The newest commit of the scope.
  var head: Int
}

extension SQLSyncStore {
  /// Takes a push, and returns its answer.
  ///
  /// - Parameters:
  ///   - owner: The identity that pushes; the device belongs to the one that used it first.
  ///   - rejections: For each group, why it is refused.
  ///   - mostScopes: The number of scopes in which the identity may have devices.
  /// - Throws: `.history`, `.gap`, `.forbidden`, `.upgradeRequired`, `.refused` for one scope too many, `.unavailable`.
  func push(
    _ push: SyncPush, to scope: String, by owner: String, rejections: [SyncRejectionReason?] = [], mostScopes: Int = .max
  ) async throws(SyncProblem) -> PushResult {
    try await answer(on: writers, key: scope) { [now] (connection) throws(StoreError) in
      try PushTransaction(
        connection: connection, push: push, scope: scope, owner: owner, rejections: rejections, mostScopes: mostScopes, now: now()
      ).run()
    }
  }
}

/// One push, within its transaction.
private struct PushTransaction {
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
    if push.groups.joined().contains(where: { $0.version < minimum }) { throw .problem(.upgradeRequired(minimum: minimum)) }
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
    guard count < mostScopes else {
      throw .problem(.refused(status: 422, detail: "Expected at most \(mostScopes) scopes of one identity, found one more."))
    }
  }

  /// Writes the groups that are at their base, each with a commit number of its own.
  private func write(from head: Int, stamp previous: Int) throws(StoreError) -> (outcomes: [SyncOutcome], head: Int, stamp: Int) {
    var (head, newest) = (head, previous)
    var outcomes: [SyncOutcome] = []
    for (index, group) in push.groups.enumerated() {
      if index < rejections.count, let reason = rejections[index] {
        outcomes.append(.rejected(code: reason.code, detail: reason.detail))
        continue
      }
      if try !isAtBase(group) {
        var current: [SyncRecord] = []
        for record in group { current.append(try RecordRow.read(connection, scope: scope, collection: record.collection, id: record.id)) }
        outcomes.append(.conflict(current))
        continue
      }
      head += 1
      for record in group {
        let stamp = min(max(record.stamp + now - push.clock, previous), now)
        newest = max(newest, stamp)
        let stored = SyncRecord(
          collection: record.collection, id: record.id, revision: head, version: record.version, stamp: stamp, writer: push.device,
          value: record.value)
        try RecordRow.write(stored, connection, scope: scope, now: now)
      }
      outcomes.append(.accepted(head))
    }
    return (outcomes, head, newest)
  }

  /// Whether each record of a group has the revision that it was based on; a tombstone counts as none.
  private func isAtBase(_ group: [PushedRecord]) throws(StoreError) -> Bool {
    for record in group {
      let found = try connection.row(
        "SELECT revision FROM larder_records WHERE scope = ? AND collection = ? AND id = ? AND deleted_at IS NULL",
        [.text(scope), .text(record.collection), .text(record.id)])
      if record.base != found?.integer(0) ?? 0 { return false }
    }
    return true
  }
}
