internal import Foundation
internal import Larder
internal import LarderWire

// One exchange of one scope: rounds of a push and a pull, until there is nothing left to send or receive.

extension SyncEngine {
  /// Largest number of rounds without progress in one exchange.
  ///
  /// Other devices may write faster than this one merges.
  static let roundLimit = 64
  /// Largest number of full passes that one exchange starts.
  ///
  /// A server that contradicts itself must not keep the device busy for ever.
  static let passLimit = 16

  /// Exchanges one scope, until there is nothing left to send or receive.
  func exchange(_ scopeCommits: ScopeCommits) async throws {
    progress[scopeCommits.scope] = ExchangeProgress()
    refusals[scopeCommits.scope] = ExchangeRefusals()
    try await prepare(scopeCommits)
    try await forgetOldDeletions()
    try await retryForbidden(scopeCommits)
    var (rounds, least, passes, mayRead) = (0, Int.max, 0, true)
    while rounds < Self.roundLimit {
      // The pull comes even after a refused push. A refusal must not block incoming data, and the page shows whether the push was accepted.
      let refusal = try await push(scopeCommits, mayRead: mayRead)
      do { if mayRead { try await pull(scopeCommits, &passes) } } catch SyncProblem.forbidden {
        mayRead = false
        // If the scope may be neither read nor written, no edit is parked, that is, set aside for the user. The edits wait for the rights.
        guard refusal?.problem != .forbidden, try await mayWriteAlone(scopeCommits) else { throw SyncProblem.forbidden }
      }
      if let refusal {
        if !mayRead, refusal.problem == .forbidden { throw SyncProblem.forbidden }
        try await divide(refusal.push, refusal.problem, scopeCommits)
      }
      let left = try await unsentCount(scopeCommits)
      if left > 0, let refusals = refusals[scopeCommits.scope], refusals.isExhausted, let problem = refusals.problem { throw problem }
      if left == 0 {
        // The scope could be read before. Its edits were sent, but the app must learn that nothing is received any more.
        if !mayRead, try scopeCommits.state(in: store.stored)?.checkpoint ?? 0 > 0 { throw SyncProblem.forbidden }
        return
      }
      // Only rounds without progress count, so that an outbox of any size is sent in one exchange.
      rounds = left < least ? 0 : rounds + 1
      least = min(least, left)
    }
    // The user edits as fast as the edits are sent. The next exchange sends the rest.
    if progress[scopeCommits.scope]?.pushed ?? 0 > 0 {
      alarms[scopeCommits.scope]?.markDue()
      return
    }
    throw SyncProblem.noProgress(
      "\(rounds) rounds have left as much to send as there was; others may write faster than this device merges.")
  }

  /// Largest number of stored conflicts.
  static let conflictLimit = 1_000

  /// Removes conflicts over the limit: first the oldest without a value, then the oldest others.
  ///
  /// The records still show undone deletions and duplicates. A lost value has no other copy.
  private func forgetOldConflicts() async throws(RepositoryError) {
    let excess = conflicts.snapshot.count - Self.conflictLimit
    guard excess > 0 else { return }
    let order = { (conflict: SyncConflict) in (conflict.lost.isEmpty ? 0 : 1, conflict.date, conflict.id.uuidString) }
    let oldest = conflicts.snapshot.loadAll().sorted { order($0) < order($1) }.prefix(excess)
    try await store.writeStored { [conflicts] (pending) throws(RepositoryError) in
      for conflict in oldest { try pending.delete(conflict.id, in: conflicts) }
    }
  }

  /// Returns true if a scope that may not be read may be write-only, because there are or were edits to send.
  private func mayWriteAlone(_ scopeCommits: ScopeCommits) async throws -> Bool {
    if try await unsentCount(scopeCommits) > 0 { return true }
    guard let state = try scopeCommits.state(in: store.stored) else { return false }
    // A checkpoint shows that the scope could be read once, so that the missing right is news for the app.
    return state.seq > 0 && state.checkpoint == 0
  }

  /// Returns the number of records to send, plus one for a push in flight.
  func unsentCount(_ scopeCommits: ScopeCommits) async throws -> Int {
    // In a write, since the index is then as new as the newest commit.
    let (dirtyCount, flight) = try await store.writeStored { [dirty] (pending) throws(RepositoryError) in
      (dirty.count(of: scopeCommits.scope), try scopeCommits.state(in: pending)?.flightCount)
    }
    inFlight[scopeCommits.scope] = flight
    return dirtyCount + (flight == nil ? 0 : 1)
  }

  /// Creates the state of a new scope, and starts a full pass if a collection was added to the synced ones.
  func prepare(_ scopeCommits: ScopeCommits) async throws {
    let names = store.recordTriggers.filter { $0.value is any SyncedCollection }.map(\.key).sorted()
    try await store.writeStored { (pending) throws(RepositoryError) in
      var state = try scopeCommits.state(in: pending) ?? ScopeState()
      let added = names.filter { !state.collections.contains($0) }
      let isNewApp = try scopeCommits.upgrade(names, &state, in: &pending)
      try scopeCommits.forgetLimits(in: &pending)
      guard !added.isEmpty || isNewApp || pending.stored(RecordKey(scopeCommits.scope), in: scopeCommits.scopes) == nil else { return }
      for name in added { try scopeCommits.adopt(name, in: &pending) }
      state.collections = (state.collections + added).sorted()
      // Earlier pages left the records of the added collection out.
      if !added.isEmpty, state.checkpoint > 0 || state.pass != nil { state.beginPass(horizon: nil) }
      try scopeCommits.store(state, in: &pending)
    }
    prepared.insert(scopeCommits.scope)
    if prepared.count == commitsOfScopes.count { isNoted = true }
  }

  /// Sends one push, unless there are no edits to send.
  ///
  /// - Parameter mayRead: Whether the scope may be read, as far as the exchange has found. If not, the first push names no history, and
  ///   conflicts cannot be merged.
  /// - Returns: The push that the server refuses as a whole, with the reason, or `nil`.
  private func push(_ scopeCommits: ScopeCommits, mayRead: Bool) async throws -> (push: SyncPush, problem: SyncProblem)? {
    let (most, oversized) = (full[scopeCommits.scope], refusals[scopeCommits.scope]?.oversized ?? [])
    let (state, isDivided, needsRoom) = try await store.writeStored { [dirty] (pending) throws(RepositoryError) in
      let state = try scopeCommits.state(in: pending) ?? ScopeState()
      // The history is learned first. A restored server could otherwise accept a push based on records that it has lost.
      guard state.flight == nil, !mayRead || (state.history != nil && state.pass?.isNewHistory != true) else {
        return (state, false, true)
      }
      let limit = ScopeCommits.recordLimit
      let room = ScopeCommits.Room(most: min(most ?? limit, state.recordLimit ?? limit), oversized: oversized)
      if most != nil || !oversized.isEmpty {
        // All edits are searched, since deletions and smaller values may be behind any number of others.
        let all = dirty.next(of: scopeCommits.scope, limit: .max, in: pending).keys
        let found = try scopeCommits.freeze(all, limit: limit, room: room, onlySmaller: oversized.isEmpty, state, in: &pending)
        if found.state.flight != nil || !oversized.isEmpty { return (found.state, found.isDivided, !oversized.isEmpty) }
        let any = try scopeCommits.freeze(all, limit: limit, room: room, state, in: &pending)
        return (any.state, any.isDivided, true)
      }
      let candidates = dirty.next(of: scopeCommits.scope, limit: limit, in: pending)
      let (frozen, isCut) = try scopeCommits.freeze(candidates.keys, limit: limit, room: room, state, in: &pending)
      return (frozen, frozen.flight != nil && (isCut || candidates.isDivided), true)
    }
    if isDivided { partialPushes[scopeCommits.scope] = state.flight?.token }
    guard let flight = state.flight, !mayRead || state.pass?.isNewHistory != true else {
      refusals[scopeCommits.scope]?.isExhausted = state.flight == nil && (!mayRead || state.history != nil) && !oversized.isEmpty
      return nil
    }
    inFlight[scopeCommits.scope] = state.flightCount
    refreshStatus()
    let reply: SyncPushReply
    do {
      // The time of sending and not of building the push. The server computes the age of the edits from it, and a push may have waited for
      // hours.
      var sent = flight
      sent.clock = clock.now.milliseconds
      reply = try await transport.push(sent, to: scopeCommits.scope)
      try reply.check()
    } catch let problem as SyncProblem {
      switch problem {
      case .history(let history) where mayRead: try await beginHistory(history, scopeCommits)
      case .history(let history):
        // Nothing can be read that would show which records the server has lost, so all unsent edits are sent to the new history.
        try await store.writeStored { (pending) throws(RepositoryError) in try scopeCommits.begin(history, in: &pending) }
      // The server has other pushes under this device's name: the store was copied or restored.
      case .gap: try await change(scopeCommits) { $0.becomeNewDevice() }
      default: return (flight, problem)
      }
      return nil
    }
    let now = clock.now.milliseconds
    let repeated = refusals[scopeCommits.scope]?.note(conflictsOf: flight, reply.receipt) ?? []
    try await store.writeStored { (pending) throws(RepositoryError) in
      // A page may have settled the push during the request.
      guard var state = try scopeCommits.state(in: pending), state.flight?.token == flight.token else { return }
      // Bounded like the device's own clock, so that the difference cannot overflow.
      state.skew = max(0, min(reply.now, Date.latestMilliseconds)) - now
      var next = try scopeCommits.settlePush(reply.receipt, state, mayRead: mayRead, repeated: repeated, in: &pending) ?? state
      // The receipt is of another push: a copy of the store uses the same device name.
      if next.flight != nil { next.becomeNewDevice() }
      if next.history == nil { next.history = reply.history }
      try scopeCommits.store(next, in: &pending)
      try scopeCommits.noteDuplicates(in: &pending)
    }
    if let most = full[scopeCommits.scope] {
      // A push without growing records, or without an accepted one, does not show that the server has room.
      let hasStored =
        needsRoom
        && zip(flight.groups, reply.receipt.outcomes).contains { group, outcome in
          if case .accepted = outcome { group.contains { $0.value != nil } } else { false }
        }
      full[scopeCommits.scope] = most < ScopeCommits.recordLimit / 2 ? most * 2 : hasStored ? nil : ScopeCommits.recordLimit
    }
    try await forgetOldConflicts()
    if deletions.snapshot.count > SyncDeletion.most { try await forgetOldDeletions() }
    noteAccepted(reply.receipt, of: flight, in: scopeCommits.scope)
    return nil
  }

  /// Divides a push that the server refuses as a whole: sends its halves, or parks single records.
  ///
  /// Does nothing if only the answer was lost and a page has brought the outcome since.
  private func divide(_ push: SyncPush, _ problem: SyncProblem, _ scopeCommits: ScopeCommits) async throws {
    let code: String
    switch problem {
    case .tooLarge: code = "tooLarge"
    // The network may be too slow for the whole push. A stalled network is no reason to park records or cut a group.
    case .refused(408, _) where push.groups.count > 1: code = "tooSlow"
    // These refusals concern the records. Others concern the request, the account or a proxy, and end when that is repaired.
    case .refused(400, _), .refused(412, _), .refused(422...424, _), .refused(451, _): code = "refused"
    // The pull has just succeeded, so the scope may be read and not written.
    case .forbidden: code = ScopeCommits.forbidden
    case .upgradeRequired(let minimum):
      // The edits stay. A newer app sends them again in its own schema version.
      let isSettled = try await store.writeStored { (pending) throws(RepositoryError) in
        try scopeCommits.parkOutdated(push, below: minimum, problem.description, in: &pending)
      }
      if isSettled { return }
      code = ScopeCommits.upgradeRequired
    case .overQuota:
      // The server has stored nothing of the push. Edits that need no more room are sent alone next, then fewer records, of which some may
      // fit. A group that does not fit alone is left out of this exchange, so that it blocks nothing behind it.
      full[scopeCommits.scope] = max(push.groups.joined().count / 2, 1)
      try await store.writeStored { (pending) throws(RepositoryError) in try scopeCommits.takeBack(push, in: &pending) }
      if push.groups.count > 1 { return }
      for group in push.groups { refusals[scopeCommits.scope, default: ExchangeRefusals()].note(oversized: group, problem) }
      if refusals[scopeCommits.scope]?.oversizedCount ?? 0 >= ExchangeRefusals.limit { throw problem }
      return
    case .unreachable:
      // Only the answer was lost, and a page has brought the outcome since.
      if let state = try scopeCommits.state(in: store.stored), state.device == push.device, state.seq >= push.seq { return }
      throw problem
    default: throw problem
    }
    try await store.writeStored { (pending) throws(RepositoryError) in
      try scopeCommits.divide(push, code, problem.description, in: &pending)
    }
  }

  /// Receives and applies pages until there are no more.
  private func pull(_ scopeCommits: ScopeCommits, _ passes: inout Int) async throws {
    var untaken = 0
    // Counted once and not for each page: only the server's operator reads it.
    let unsent = dirty.countWithRejected(of: scopeCommits.scope)
    while true {
      try Task.checkCancellation()
      guard let state = try scopeCommits.state(in: store.stored) else { return }
      let size = pageSizes[scopeCommits.scope] ?? pageSize
      var request = SyncChangesRequest(
        device: state.device, history: state.history, since: state.position, limit: size, collections: state.collections,
        from: state.pass?.horizon)
      request.pending = unsent
      do {
        let page = try await transport.changes(request, in: scopeCommits.scope)
        if let history = state.history, page.history != history { throw SyncProblem.history(page.history) }
        try Self.check(page, after: request)
        let isTaken =
          try await store.writeStored { (pending) throws(RepositoryError) in
            try scopeCommits.storePage(page, askedAt: state, in: &pending)
          } != nil
        if isTaken {
          var taken = progress[scopeCommits.scope] ?? ExchangeProgress()
          // Records written by this device are no news.
          taken.pulled += page.changes.count { $0.writer != state.device }
          taken.total = page.total.map { taken.pulled + max($0 - page.changes.count, 0) } ?? taken.total
          progress[scopeCommits.scope] = taken
          refreshStatus()
          if let flight = state.flight { noteAccepted(page.last, of: flight, in: scopeCommits.scope) }
        }
        try await forgetOldConflicts()
        if !page.more { return }
        untaken = isTaken ? 0 : untaken + 1
        guard untaken < Self.roundLimit else {
          throw SyncProblem.noProgress("\(untaken) pages were out of date when they came; does another process sync the same store?")
        }
      } catch SyncProblem.answerTooLarge where size > 1 {
        // Kept for later exchanges, since the values will not get smaller.
        pageSizes[scopeCommits.scope] = max(1, size / 2)
      } catch SyncProblem.resync(let horizon) {
        passes += 1
        // A server that answers 410 to each new pass would keep the exchange running for ever.
        guard passes <= Self.passLimit else { throw SyncProblem.resync(horizon: horizon) }
        try await change(scopeCommits) { $0.beginPass(horizon: horizon) }
      } catch SyncProblem.history(let history) {
        passes += 1
        guard passes <= Self.passLimit else { throw SyncProblem.noProgress("The server tells another history each time it is asked.") }
        try await beginHistory(history, scopeCommits)
      }
    }
  }

  /// Checks that a page answers its request.
  ///
  /// - Throws: `.malformed` for a page that starts elsewhere or breaks a bound, `.noProgress` if it promises more changes and has none.
  private static func check(_ page: SyncChanges, after request: SyncChangesRequest) throws(SyncProblem) {
    try page.check()
    // Applied at another position, the page would leave a gap of changes that are never received.
    guard page.since == request.since else {
      throw .malformed("expected the changes behind commit \(request.since), found those behind \(page.since)")
    }
    guard !page.more || page.until > page.since else {
      throw .noProgress("The server says that there are more changes behind commit \(page.since), and gives none.")
    }
  }

  /// Adds the accepted records of a push to the progress.
  private func noteAccepted(_ receipt: SyncReceipt?, of flight: SyncPush, in scope: String) {
    // Each page repeats the newest receipt, which may be of another push.
    guard let receipt, receipt.seq == flight.seq, receipt.token == flight.token else { return }
    let count = zip(flight.groups, receipt.outcomes).reduce(0) { count, group in
      if case .accepted = group.1 { count + group.0.count } else { count }
    }
    progress[scope, default: ExchangeProgress()].pushed += count
    if partialPushes.removeValue(forKey: scope) == flight.token { dividedTransactions += 1 }
    refreshStatus()
  }

  /// Stores a new history of the server and starts a full pass, which compares all records with it.
  private func beginHistory(_ history: String, _ scopeCommits: ScopeCommits) async throws {
    try await change(scopeCommits) { state in
      state.history = history
      state.beginPass(horizon: nil, isNewHistory: true)
    }
  }

  /// Changes the state of a scope in a commit of its own.
  private func change(_ scopeCommits: ScopeCommits, _ body: @escaping @Sendable (inout ScopeState) -> Void) async throws {
    try await store.writeStored { (pending) throws(RepositoryError) in
      guard var state = try scopeCommits.state(in: pending) else { return }
      body(&state)
      // A page requested before the change no longer applies to the state.
      state.turn += 1
      try scopeCommits.store(state, in: &pending)
    }
  }
}
