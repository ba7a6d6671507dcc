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
  ///   - quota: The limits of what the identity may store.
  /// - Throws: `.history`, `.gap`, `.forbidden`, `.upgradeRequired`, `.tooManyScopes`, `.overQuota`, `.unavailable`.
  func push(
    _ push: SyncPush, to scope: String, by owner: String, rejections: [SyncRejectionReason?] = [], quota: IdentityQuota = IdentityQuota()
  ) async throws(SyncProblem) -> PushResult {
    let result = try await answer(on: writers, key: scope) { [now] (connection) throws(StoreError) in
      try PushTransaction(
        connection: connection, push: push, scope: scope, owner: owner, rejections: rejections, quota: quota, now: now()
      ).run()
    }
    // Behind the commit, and for what was accepted only.
    if result.reply.receipt.outcomes.contains(where: { if case .accepted = $0 { true } else { false } }) {
      pokes?.tell(result.head, of: scope)
    }
    return result
  }
}
