internal import Foundation
internal import Hummingbird
internal import LarderSync
internal import Logging
internal import NIOCore

extension SyncResponder {
  func push(_ request: Request, to scope: String, by identity: Identity) async throws(SyncProblem) -> Response {
    let push = try SyncPush(json: try await RequestContents.read(request, options))
    try take(identity, device: push.device)
    try WireLimits.check(push, in: scope, records: options.recordsPerPush)
    let rejections = await rejections(of: push, to: scope, by: identity)
    let result = try await store.push(push, to: scope, by: identity.name, rejections: rejections, mostScopes: options.scopesPerIdentity)
    hub.publish(result.head, of: scope)
    let outcomes = result.reply.receipt.outcomes
    metrics.note(
      accepted: outcomes.count { if case .accepted = $0 { true } else { false } },
      conflicts: outcomes.count { if case .conflict = $0 { true } else { false } },
      rejected: outcomes.count { if case .rejected = $0 { true } else { false } })
    return Answer.success(result.reply.json)
  }

  /// Returns, for each group, why the app refuses it.
  private func rejections(of push: SyncPush, to scope: String, by identity: Identity) async -> [SyncRejectionReason?] {
    guard let validator else { return [] }
    var rejections: [SyncRejectionReason?] = []
    for group in push.groups {
      var reason: SyncRejectionReason?
      for record in group where reason == nil { reason = await validator.validate(identity, scope, record) }
      rejections.append(reason)
    }
    return rejections
  }

  func changes(_ question: SyncChangesRequest, in scope: String, by identity: Identity) async throws(SyncProblem) -> Response {
    if !question.device.isEmpty { try WireLimits.check(question.device, named: "device") }
    var page = try await store.changes(question, in: scope, by: identity.name)
    if page.changes.isEmpty, !page.more, question.wait > 0 {
      if hub.count >= options.streams { throw .unavailable(retryAfter: 5) }
      // The signs are begun before the page is asked for again, so that no commit falls between the two.
      let signs = hub.signs(of: scope, head: page.head)
      defer { signs.end() }
      page = try await store.changes(question, in: scope, by: identity.name)
      if page.changes.isEmpty, !page.more {
        await Self.wait(for: signs.signs, behind: page.head, seconds: question.wait)
        page = try await store.changes(question, in: scope, by: identity.name)
      }
    }
    metrics.note(recordsRead: page.changes.count)
    return Answer.success(page.json)
  }

  /// Waits until there is a commit behind another, or the time is over.
  private static func wait(for signs: AsyncStream<HeadSign>, behind head: Int, seconds: Int) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { for await sign in signs where sign.head > head { return } }
      group.addTask {
        // Ends early when the first task has seen a commit, which is no failure.
        do { try await Task.sleep(for: .seconds(seconds)) } catch { return }
      }
      await group.next()
      group.cancelAll()
    }
  }

  func scopes(of identity: Identity) async throws(SyncProblem) -> Response {
    var found: [String: ScopeSummary] = [:]
    do throws(StoreError) {
      for grant in identity.grants {
        let isOne = grant.prefix == nil
        let summaries = try await store.scopes(prefix: grant.prefix ?? grant.pattern, limit: isOne ? 1 : 1_000)
        for summary in summaries where grant.covers(summary.scope) { found[summary.scope] = summary }
      }
    } catch {
      logger.error("the store failed", metadata: ["error": "\(error)"])
      throw .unavailable(retryAfter: 1)
    }
    let scopes = found.values.sorted { $0.scope < $1.scope }.map { summary -> ScopeLine in
      ScopeLine(scope: summary.scope, access: identity.access(to: summary.scope).text, head: summary.head)
    }
    do { return Answer.success(try JSONEncoder().encode(["scopes": scopes])) } catch { throw .unavailable(retryAfter: nil) }
  }
}

/// A scope in the list of those that an identity may use.
private struct ScopeLine: Encodable {
  var scope: String
  var access: String
  var head: Int
}
