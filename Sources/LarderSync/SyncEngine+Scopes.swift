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
    let found: SyncScopes?
    do { found = try await transport.scopes(named: ledgers.map(\.scope)) } catch { return [] }
    guard let found, let history = found.history else { return [] }
    let heads = found.scopes.filter(\.mayRead).reduce(into: [:]) { $0[$1.name] = $1.head }
    var quiet: Set<String> = []
    for ledger in ledgers {
      guard let head = heads[ledger.scope] else { continue }
      do {
        try await prepare(ledger)
        guard try await unsentCount(ledger) == 0, let state = try ledger.state(in: store.stored), state.flight == nil, state.pass == nil,
          state.history == history, state.checkpoint == head, forbidden(in: ledger).isEmpty
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
    let waiting = forbidden(in: ledger)
    guard !waiting.isEmpty else { return }
    rightsAsked[ledger.scope] = now
    let found: SyncScopes?
    do { found = try await transport.scopes(named: [ledger.scope]) } catch { return }
    guard found?.scopes.contains(where: { $0.name == ledger.scope && $0.mayWrite }) == true else { return }
    for rejection in waiting { try await retry(rejection) }
  }

  /// Returns the edits of a scope that were refused because the token could not write it.
  func forbidden(in ledger: Ledger) -> [SyncRejection] {
    let snapshot = rejected.snapshot
    if snapshot.count == 0 { return [] }
    return snapshot.loadAll().filter { $0.code == Ledger.forbidden && $0.scope == ledger.scope }
  }
}
