internal import BoundedHTTP
internal import Foundation
internal import Hummingbird
@_spi(Wire) internal import LarderWire
internal import Logging
internal import NIOCore

extension SyncResponder {
  func push(_ request: Request, to scope: String, by identity: Identity) async throws(HTTPProblem) -> Response {
    let form = RequestContents.Form { (body) throws(HTTPProblem) in
      do throws(SyncProblem) { return try SyncPush(json: body) } catch { throw HTTPProblem(error) }
    }
    let share = share(of: identity)
    return try await RequestContents.read(request, bounds.limits, share, bounds.large, as: form) { (push) async throws(HTTPProblem) in
      do throws(SyncProblem) { return try await self.push(push, to: scope, by: identity, request) } catch { throw HTTPProblem(error) }
    }
  }

  private func push(
    _ push: SyncPush, to scope: String, by identity: Identity, _ request: Request
  ) async throws(SyncProblem) -> Response {
    // Only here, because the name of the device is in the body.
    if let seconds = rates.take(identity, device: push.device) { throw .tooManyRequests(retryAfter: seconds) }
    // `SyncPush(json:)` has checked the bounds of single members already.
    let count = push.groups.reduce(0) { $0 + $1.count }
    // An empty group has no record, but it has an outcome.
    guard max(count, push.groups.count) <= options.recordsPerPush else { throw .tooLarge }
    // The scope is in the path, so only here are the three names of a record's key known together.
    for record in push.groups.joined() { try record.checkNames(in: scope) }
    let rejections = await rejections(of: push, to: scope, by: identity)
    // Without tokens all clients are one identity, and only the number of scopes is limited.
    let quota = authorizer is NoAuthorizer ? IdentityQuota(scopes: options.scopesPerIdentity) : options.quota
    let result: PushResult
    do throws(SyncProblem) {
      result = try await store.push(push, to: scope, by: identity.name, rejections: rejections, quota: quota)
    } catch {
      note(refused: push, in: scope, of: identity, "\(error)")
      throw error
    }
    hub.publish(result.head, of: scope)
    let outcomes = result.reply.receipt.outcomes
    metrics.note(
      accepted: outcomes.count { if case .accepted = $0 { true } else { false } },
      conflicts: outcomes.count { if case .conflict = $0 { true } else { false } },
      rejected: outcomes.count { if case .rejected = $0 { true } else { false } })
    for case .rejected(let code, _) in outcomes.prefix(Self.loggedRefusals) { note(refused: push, in: scope, of: identity, code) }
    var reply = result.reply
    // A token without the right to read could otherwise guess ids and get the values of their records in conflicts.
    if !identity.access(to: scope).contains(.read) { reply.receipt.outcomes = outcomes.map(Self.withoutRecords) }
    return Answer.success(reply.json, to: request)
  }

  /// Maximum number of refused groups of a push that are logged.
  private static let loggedRefusals = 10

  /// Logs a refusal, so that an operator finds the device that a user asks about.
  ///
  /// The log has no value and no key of a record.
  private func note(refused push: SyncPush, in scope: String, of identity: Identity, _ reason: String) {
    logger.debug(
      "a push is refused",
      metadata: [
        // A client chooses these names, and a terminal obeys control characters.
        "identity": "\(WireField.detail.cut(identity.name))", "device": "\(WireField.detail.cut(push.device))",
        "scope": "\(WireField.detail.cut(scope))",
        "versions": "\(Set(push.groups.joined().map(\.version)).sorted())", "reason": "\(reason)",
      ])
  }

  /// Returns an outcome for a token without the right to read: a conflict shows only that some record was not at its base.
  private static func withoutRecords(_ outcome: SyncOutcome) -> SyncOutcome {
    if case .conflict = outcome { .conflict([]) } else { outcome }
  }

  /// Returns for each group the reason why the app refuses it, or `nil`.
  private func rejections(of push: SyncPush, to scope: String, by identity: Identity) async -> [SyncRejectionReason?] {
    guard let validator else { return [] }
    var rejections: [SyncRejectionReason?] = []
    for group in push.groups {
      var reason: SyncRejectionReason?
      for record in group where reason == nil { reason = await validator.validate(identity, scope, record) }
      // Cut, because the reason is stored with the device and sent with each of its pages.
      rejections.append(reason.map { .init(code: WireField.code.cut($0.code), detail: WireField.detail.cut($0.detail)) })
    }
    return rejections
  }

  func changes(
    _ question: SyncChangesRequest, app: String?, in scope: String, by identity: Identity, _ request: Request
  ) async throws(SyncProblem) -> Response {
    if let seconds = rates.take(identity, device: question.device) { throw .tooManyRequests(retryAfter: seconds) }
    var (page, answer) = try await page(question, in: scope, by: identity, request)
    if page.isEmpty, question.wait > 0 {
      // Only a request that waits takes a seat.
      let seat = try seats.take(for: share(of: identity).identity)
      // The last reference gives the seat back, so the object must live until the end of the wait.
      defer { withExtendedLifetime(seat) {} }
      // Subscribed before the page is read again, so that no commit falls between the two.
      let signs = hub.signs(of: scope)
      defer { signs.end() }
      // Streams may have no event yet of a commit by another process. The page's own head is no substitute, since it is at least the number
      // that the client asked for.
      hub.publish(page.newest, of: scope)
      (page, answer) = try await self.page(question, in: scope, by: identity, request)
      if page.isEmpty {
        await Self.wait(for: signs.signs, behind: page.head, seconds: question.wait)
        (page, answer) = try await self.page(question, in: scope, by: identity, request)
      }
    }
    metrics.note(recordsRead: page.count)
    // After a wait, the last page is the one that the device gets.
    sightings.note(question, app: app, page.reading, in: scope, by: identity.name, now: store.now())
    return answer
  }

  /// Returns a page as the response that is sent, after waiting until `pages` and `readings` admit it.
  private func page(
    _ question: SyncChangesRequest, in scope: String, by identity: Identity, _ request: Request
  ) async throws(SyncProblem) -> (page: PageSummary, answer: Response) {
    let share = share(of: identity)
    return try await pages.withPermit(for: share.identity) { () async throws(SyncProblem) in
      // The permit for reading ends before a large page waits for a thread, so that other pages are read meanwhile.
      let found = try await readings.withPermit(for: share.identity) { () async throws(SyncProblem) in
        // Checked after the wait for a permit, just before the page takes memory.
        if share.isSpent { throw .unavailable(retryAfter: 5) }
        return try await store.page(question, in: scope, by: identity.name)
      }
      let (newest, page) = (found.newest, found.changes)
      let summary = PageSummary(
        head: page.head, reading: PageReading(history: page.history, until: page.until), newest: newest, count: page.changes.count,
        isEmpty: page.changes.isEmpty && !page.more)
      // 256 bytes stand for the other members of a record.
      let size = page.changes.reduce(0) { $0 + ($1.value?.count ?? 0) + 256 }
      if size <= LargeWork.mostInPlace { return (summary, Answer.success(page.json, to: request)) }
      return (summary, await bounds.large.run(share.identity) { Answer.success(page.json, to: request) })
    }
  }

  /// Waits until a commit above `head` is announced, or the time has passed.
  private static func wait(for signs: AsyncStream<HeadSign>, behind head: Int, seconds: Int) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { for await case .head(let newer) in signs where newer > head { return } }
      group.addTask {
        // Cancelled when the first task has got a commit, which is no failure.
        do { try await Task.sleep(for: .seconds(seconds)) } catch { return }
      }
      await group.next()
      group.cancelAll()
    }
  }

  /// Returns the named scopes, also those without commits, or all existing scopes that the identity may use.
  func scopes(of identity: Identity, named names: [String], _ request: Request) async throws(SyncProblem) -> Response {
    for name in names { try WireField.scope.check(name) }
    let names = names.isEmpty ? try await grantedScopes(of: identity) : names
    let (history, heads) = try await store.headsByBytes(of: names)
    // By bytes, since two spellings of one Unicode text are two scopes.
    let scopes = Set(names.map { Array($0.utf8) }).sorted { $0.lexicographicallyPrecedes($1) }.map { bytes in
      let name = String(decoding: bytes, as: UTF8.self)
      let access = identity.access(to: name)
      let mayRead = access.contains(.read)
      // The newest commit shows when others write, so only a reader gets it.
      return SyncScope(name: name, mayRead: mayRead, mayWrite: access.contains(.write), head: mayRead ? heads[bytes] ?? 0 : 0)
    }
    return Answer.success(SyncScopes(history: history, scopes: scopes).json, to: request)
  }

  private func grantedScopes(of identity: Identity) async throws(SyncProblem) -> [String] {
    var names: [String] = []
    do throws(StoreError) {
      for grant in identity.grants {
        // The store returns names in order, and the name that equals the prefix sorts first. So one result is enough for an exact grant.
        let isOne = grant.prefix == nil
        let summaries = try await store.scopes(prefix: grant.prefix ?? grant.pattern, limit: isOne ? 1 : 1_000)
        names += summaries.map(\.scope).filter(grant.covers)
      }
    } catch {
      logger.error("the store failed", metadata: ["error": "\(error)"])
      throw .unavailable(retryAfter: 1)
    }
    return names
  }
}

/// Numbers of a page whose response is made already.
private struct PageSummary: Sendable {
  var head: Int
  var reading: PageReading
  /// Newest commit of the scope.
  ///
  /// It is below `head` if the client asked for changes after a higher number.
  var newest: Int
  var count: Int
  var isEmpty: Bool
}
