internal import Larder

// Questions about several scopes at once: which of them have nothing new, and where a right has come back.

extension SyncEngine {
  /// The time within which the engine asks once for the rights in a scope with edits that were refused for want of one.
  static let rightsInterval = Duration.seconds(60)

  /// Returns the scopes with nothing to send and nothing to take, found by one request for all of them.
  ///
  /// Empty for one scope, whose exchange is one request as well, and for a transport or a server without such a list. A failure is left to
  /// the exchanges: it may concern the list alone.
  func quietScopes() async -> Set<String> {
    guard ledgers.count > 1 else { return [] }
    let signOuts = signOuts
    let found: SyncScopes?
    do { found = try await transport.scopes(named: ledgers.map(\.scope)) } catch { return [] }
    guard let found, let history = found.history else { return [] }
    let waiting = Set(forbidden().map(\.scope))
    let heads = found.scopes.filter(\.mayRead).reduce(into: [:]) { $0[$1.name] = $1.head }
    var quiet: Set<String> = []
    for ledger in ledgers {
      // A scope that is exchanged just now is waited for.
      guard let head = heads[ledger.scope], running[ledger.scope] == nil, !waiting.contains(ledger.scope) else { continue }
      do {
        // What sync knows of a scope goes with a sign-out, and must not be made again.
        guard signOuts == self.signOuts else { return [] }
        try await prepare(ledger)
        guard try await unsentCount(ledger) == 0, let state = try ledger.state(in: store.stored), state.flight == nil, state.pass == nil,
          state.history == history, state.checkpoint == head, running[ledger.scope] == nil
        else { continue }
        quiet.insert(ledger.scope)
      } catch { continue }
    }
    return quiet
  }

  /// Notes that the exchange of a scope would have found nothing.
  func noteQuiet(_ scope: String) {
    progress[scope] = ExchangeProgress()
    failing.remove(scope)
    noteSuccess()
  }

  /// Lets edits go on that were refused because the token could not write the scope, once it can.
  ///
  /// A transport that does not list rights leaves them to `retry(_:)`.
  func retryForbidden(_ ledger: Ledger) async throws {
    let now = clock.uptime
    if let last = rightsAsked[ledger.scope], now < last + Self.rightsInterval { return }
    let waiting = forbidden().filter { $0.scope == ledger.scope }
    guard !waiting.isEmpty else { return }
    rightsAsked[ledger.scope] = now
    let found: SyncScopes?
    do { found = try await transport.scopes(named: [ledger.scope]) } catch { return }
    guard found?.scopes.contains(where: { $0.name == ledger.scope && $0.mayWrite }) == true else { return }
    try await resolve(waiting) { (ledger, key, entry, pending) throws(RepositoryError) in
      entry.edits?.isParked = false
      try pending.keep(entry.stored, for: key, in: ledger.records)
    }
  }

  /// Returns the edits that were refused because the token could not write their scope.
  func forbidden() -> [SyncRejection] {
    let snapshot = rejected.snapshot
    if snapshot.count == 0 { return [] }
    return snapshot.loadAll().filter { $0.code == Ledger.forbidden && $0.detail == Ledger.forbiddenDetail }
  }
}
