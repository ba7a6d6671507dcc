internal import Larder
internal import LarderWire

// This file has the requests that list several scopes at once, to find the scopes without newer commits and the scopes in which a right was
// restored.

extension SyncEngine {
  /// Shortest time between two requests for the token's rights in a scope whose edits were refused for a missing right.
  static let rightsInterval = Duration.seconds(60)

  /// Returns the scopes with nothing to send or receive, which one request for all scopes finds.
  ///
  /// No scope is returned if the engine has a single scope, whose exchange is one request as well. No scope is returned if the transport or
  /// the server cannot list scopes. An error of the request for the list of scopes is ignored, since it may concern only the list. An error
  /// that concerns all requests is thrown by the exchanges that follow.
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
      // A scope with an exchange under way is not returned, so that the caller waits for the end of that exchange.
      guard let head = heads[scopeCommits.scope], running[scopeCommits.scope] == nil, !waiting.contains(scopeCommits.scope) else {
        continue
      }
      do {
        // A sign-out removes the stored state of a scope. After a sign-out, `prepare` would create the state again.
        guard signOuts == self.signOuts else { return [] }
        try await prepare(scopeCommits)
        // The unsent edits are counted after the list of scopes was received. An edit that the user makes during the request for the list
        // is therefore counted, and this call of `exchange()` sends it.
        guard try await unsentCount(scopeCommits) == 0, let state = try scopeCommits.state(in: store.stored), state.flight == nil,
          state.pass == nil,
          state.history == history, state.checkpoint == head, running[scopeCommits.scope] == nil
        else { continue }
        quiet.insert(scopeCommits.scope)
      } catch { continue }
    }
    return quiet
  }

  /// Updates the status as if an exchange of the scope had found nothing to send or receive.
  func noteQuiet(_ scope: String) {
    progress[scope] = ExchangeProgress()
    failing.remove(scope)
    noteSuccess()
  }

  /// Lets edits be sent again that were refused because the token could not write the scope, if the token can write it now.
  ///
  /// With a transport that does not list rights, the refused edits are not sent until the app calls `retry(_:)`.
  func retryForbidden(_ scopeCommits: ScopeCommits) async throws {
    let now = clock.uptime
    if let last = rightsAsked[scopeCommits.scope], now < last + Self.rightsInterval { return }
    let waiting = forbidden().filter { $0.scope == scopeCommits.scope }
    guard !waiting.isEmpty else { return }
    // The time of the request is stored before it is sent, so that the shortest time between two requests also applies after a failed
    // request.
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
    // The message of a rejection is compared as well as its code, since a server's own rule may refuse edits with the same code, and edits
    // refused by such a rule would be retried for ever.
    return snapshot.loadAll().filter { $0.code == ScopeCommits.forbidden && $0.detail == ScopeCommits.forbiddenDetail }
  }
}
