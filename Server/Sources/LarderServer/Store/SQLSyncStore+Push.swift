internal import Foundation
internal import LarderWire

/// Reason to refuse a record for good.
public struct SyncRejectionReason: Sendable, Hashable {
  /// Name of the violated rule, for the app.
  public var code: String
  /// Rule in words.
  public var detail: String

  /// Creates a reason.
  public init(code: String, detail: String = "") { (self.code, self.detail) = (code, detail) }
}

/// Answer to a push, with the newest commit for the server itself.
struct PushResult: Sendable {
  var reply: SyncPushReply
  /// Newest commit of the scope.
  var head: Int
}

extension SQLSyncStore {
  /// Applies a push and returns its answer.
  ///
  /// - Parameters:
  ///   - owner: The identity that pushes. A device belongs to the identity that used it first.
  ///   - rejections: For each group, the reason why the app refuses it, or `nil`.
  ///   - quota: The limits on the data that the identity may store.
  /// - Throws: `.history`, `.gap`, `.forbidden`, `.upgradeRequired`, `.tooManyScopes`, `.overQuota`, `.unavailable`.
  func push(
    _ push: SyncPush, to scope: String, by owner: String, rejections: [SyncRejectionReason?] = [], quota: IdentityQuota = IdentityQuota()
  ) async throws(SyncProblem) -> PushResult {
    let result = try await answer(on: writers, key: scope) { [now] (connection) throws(StoreError) in
      try PushTransaction(
        connection: connection, push: push, scope: scope, owner: owner, rejections: rejections, quota: quota, now: now()
      ).run()
    }
    // After the commit, because other servers read at once. A push without an accepted group has no commit.
    if result.reply.receipt.outcomes.contains(where: { if case .accepted = $0 { true } else { false } }) {
      pokes?.tell(result.head, of: scope)
    }
    return result
  }
}
