internal import Larder
internal import LarderWire

// Requests about several scopes at once: which have no news, and in which a right was restored.

extension SyncEngine {
  /// Shortest time between two requests of the rights in a scope with edits that were refused for a missing right.
  static let rightsInterval = Duration.seconds(60)

  /// Returns the scopes with nothing to send or receive, found by one request for all of them.
  ///
  /// Returns none for a single scope, whose exchange is one request as well, and for a transport or a server that cannot list scopes. An
  /// error is ignored, since it may concern the list alone. The exchanges then meet it themselves.
  func quietScopes() async -> Set<String> {
    guard commitsOfScopes.count > 1 else { return [] }
    let signOuts = signOuts
    let found: SyncScopes?
    do { found = try await transport.scopes(named: commitsOfScopes.map(\.scope)) } catch { return [] }
    guard let found, let history = found.history else { return [] }
    let waiting = Set(forbidden().map(\.scope))
    let heads = found.scopes.filter(\.mayRead).reduce(into: [:]) { $0[$1.name] = $1.head }
    var quiet: Set<String> = []
    for scopeCommits in commitsOfScopes {
      // A scope with an exchange under way is not quiet, so that its end is waited for.
      guard let head = heads[scopeCommits.scope], running[scopeCommits.scope] == nil, !waiting.contains(scopeCommits.scope) else {
        continue
      }
      do {
        // A sign-out removes the state of a scope, and `prepare` would create it again.
        guard signOuts == self.signOuts else { return [] }
        try await prepare(scopeCommits)
        // Checked after the list was received: an edit during the request must be sent by this call.
        guard try await unsentCount(scopeCommits) == 0, let state = try scopeCommits.state(in: store.stored), state.flight == nil,
          state.pass == nil,
          state.history == history, state.checkpoint == head, running[scopeCommits.scope] == nil
        else { continue }
        quiet.insert(scopeCommits.scope)
      } catch { continue }
    }
    return quiet
  }

  /// Updates the status as if the scope was exchanged without finding anything.
  func noteQuiet(_ scope: String) {
    progress[scope] = ExchangeProgress()
    failing.remove(scope)
    noteSuccess()
  }

  /// Releases edits that were refused because the token could not write the scope, if it can now.
  ///
  /// A transport that does not list rights leaves them to `retry(_:)`.
  func retryForbidden(_ scopeCommits: ScopeCommits) async throws {
    let now = clock.uptime
    if let last = rightsAsked[scopeCommits.scope], now < last + Self.rightsInterval { return }
    let waiting = forbidden().filter { $0.scope == scopeCommits.scope }
    guard !waiting.isEmpty else { return }
    // Before the request, so that a failure counts as well.
    rightsAsked[scopeCommits.scope] = now
    let found: SyncScopes?
    do { found = try await transport.scopes(named: [scopeCommits.scope]) } catch { return }
    guard found?.scopes.contains(where: { $0.name == scopeCommits.scope && $0.mayWrite }) == true else { return }
    try await resolve(waiting) { (scopeCommits, key, entry, pending) throws(RepositoryError) in
      entry.edits?.isParked = false
      try pending.storeUnread(entry.stored, for: key, in: scopeCommits.records)
    }
  }

  /// Returns the edits that were refused because the token could not write their scope.
  func forbidden() -> [SyncRejection] {
    let snapshot = rejected.snapshot
    if snapshot.count == 0 { return [] }
    // By the message, too: a server's own rule may use the same code, and would be retried for ever.
    return snapshot.loadAll().filter { $0.code == ScopeCommits.forbidden && $0.detail == ScopeCommits.forbiddenDetail }
  }
}
