internal import Foundation
internal import Larder
internal import LarderWire

// An exchange of a scope runs rounds of a push and a pull, until nothing is left to send or receive.

extension SyncEngine {
  /// Largest number of rounds of a push and a pull without progress in one exchange.
  ///
  /// Without a limit of rounds, an exchange would never end while other devices write faster than this device merges.
  static let roundLimit = 64
  /// Largest number of full passes (readings of the whole scope) that the server's answers to pulls may start in one exchange.
  ///
  /// Without a limit of full passes, a server that contradicts itself could keep the device busy for ever.
  static let passLimit = 16

  /// Sends the edits of a scope and receives its changes, until nothing is left to send or receive.
  func exchange(_ scopeCommits: ScopeCommits) async throws {
    progress[scopeCommits.scope] = ExchangeProgress()
    refusals[scopeCommits.scope] = ExchangeRefusals()
    try await prepare(scopeCommits)
    try await forgetOldDeletions()
    try await retryForbidden(scopeCommits)
    var (rounds, least, passes, mayRead) = (0, Int.max, 0, true)
    while rounds < Self.roundLimit {
      // The device pulls even after a refused push. A refusal must not block incoming data, and the pulled page of changes shows whether
      // the server has accepted the push.
      let refusal = try await push(scopeCommits, mayRead: mayRead)
      do { if mayRead { try await pull(scopeCommits, &passes) } } catch SyncProblem.forbidden {
        mayRead = false
        // If the token may neither read nor write the scope, no edit is parked, that is, set aside for the user. The edits wait until the
        // token has rights to the scope.
        guard refusal?.problem != .forbidden, try await mayWriteAlone(scopeCommits) else { throw SyncProblem.forbidden }
      }
      if let refusal {
        if !mayRead, refusal.problem == .forbidden { throw SyncProblem.forbidden }
        try await divide(refusal.push, after: refusal.problem, in: scopeCommits)
      }
      let left = try await unsentCount(scopeCommits)
      if left > 0, let refusals = refusals[scopeCommits.scope], refusals.isExhausted, let problem = refusals.problem { throw problem }
      if left == 0 {
        // A `checkpoint` above 0, the commit up to which the scope was read, shows that the token could read the scope before. The error
        // `forbidden` tells the app that the device receives no more changes of the scope, although all edits were sent.
        if !mayRead, try scopeCommits.state(in: store.stored)?.checkpoint ?? 0 > 0 { throw SyncProblem.forbidden }
        return
      }
      // A round that reduces the number of unsent records resets the count of rounds, so that an outbox of any size is sent in one
      // exchange.
      rounds = left < least ? 0 : rounds + 1
      least = min(least, left)
    }
    // If the exchange has sent records but the number of unsent records has not fallen, that is no error, since the user may edit records
    // as fast as they are sent. The next exchange sends the remaining records.
    if progress[scopeCommits.scope]?.pushed ?? 0 > 0 {
      alarms[scopeCommits.scope]?.markDue()
      return
    }
    throw SyncProblem.noProgress(
      "\(rounds) rounds have left as much to send as there was; others may write faster than this device merges.")
  }

  /// Largest number of stored conflicts.
  static let conflictLimit = 1_000

  /// Removes conflicts over the limit: first the oldest conflicts without a lost value, then the oldest conflicts with a lost value.
  ///
  /// An undone deletion or a duplicate can still be seen in the records themselves. A lost value is stored only in its conflict.
  private func forgetOldConflicts() async throws(RepositoryError) {
    let excess = conflicts.snapshot.count - Self.conflictLimit
    guard excess > 0 else { return }
    let order = { (conflict: SyncConflict) in (conflict.lost.isEmpty ? 0 : 1, conflict.date, conflict.id.uuidString) }
    let oldest = try conflicts.snapshot.loadAll(strict: false).sorted { order($0) < order($1) }.prefix(excess)
    try await store.writeStored { [conflicts] (pending) throws(RepositoryError) in
      for conflict in oldest { try pending.delete(conflict.id, in: conflicts) }
    }
  }

  /// Returns true if there are edits to send, or if the device has sent edits to the scope and has never read the scope.
  private func mayWriteAlone(_ scopeCommits: ScopeCommits) async throws -> Bool {
    if try await unsentCount(scopeCommits) > 0 { return true }
    guard let state = try scopeCommits.state(in: store.stored) else { return false }
    // A `checkpoint` above 0 shows that the token could read the scope once, so the missing right to read the scope is an error for the
    // app.
    return state.seq > 0 && state.checkpoint == 0
  }

  /// Returns the number of records to send in a scope, plus one if a push of the scope has no known outcome yet.
  func unsentCount(_ scopeCommits: ScopeCommits) async throws -> Int {
    // The records are counted within a write of the store, since the index `dirty` is then as new as the newest commit.
    let (dirtyCount, flight) = try await store.writeStored { [dirty] (pending) throws(RepositoryError) in
      (try dirty.count(of: scopeCommits.scope), try scopeCommits.state(in: pending)?.flightCount)
    }
    inFlight[scopeCommits.scope] = flight
    return dirtyCount + (flight == nil ? 0 : 1)
  }

  /// Creates or updates the stored state of a scope, and starts a full pass over the scope if the app syncs a new collection.
  func prepare(_ scopeCommits: ScopeCommits) async throws {
    let names = store.recordTriggers.filter { $0.value is any SyncedCollection }.map(\.key).sorted()
    try await store.writeStored { (pending) throws(RepositoryError) in
      var state = try scopeCommits.state(in: pending) ?? ScopeState()
      let added = names.filter { !state.collections.contains($0) }
      let isNewApp = try scopeCommits.upgrade(names, &state, in: &pending)
      try scopeCommits.forgetLimits(in: &pending)
      let isKnown = try pending.stored(RecordKey(scopeCommits.scope), in: scopeCommits.scopes) != nil
      guard !added.isEmpty || isNewApp || !isKnown else { return }
      for name in added { try scopeCommits.adopt(name, in: &pending) }
      state.collections = (state.collections + added).sorted()
      // Earlier pages did not contain the records of the added collection, so a full pass has to read them.
      if !added.isEmpty, state.checkpoint > 0 || state.pass != nil { state.beginPass(horizon: nil) }
      try scopeCommits.store(state, in: &pending)
    }
    prepared.insert(scopeCommits.scope)
    if prepared.count == commitsOfScopes.count { isNoted = true }
  }

  /// Sends one push, unless there are no edits to send.
  ///
  /// - Parameter mayRead: Whether the token may read the scope, as far as the exchange has found. If the token may not read the scope, the
  ///   first push contains no identifier of the server's history, and conflicts cannot be merged.
  /// - Returns: The push that the server refuses as a whole, with the reason, or `nil`.
  private func push(_ scopeCommits: ScopeCommits, mayRead: Bool) async throws -> (push: SyncPush, problem: SyncProblem)? {
    let (most, oversized) = (full[scopeCommits.scope], refusals[scopeCommits.scope]?.oversized ?? [])
    let (state, isDivided, needsRoom) = try await store.writeStored { [dirty] (pending) throws(RepositoryError) in
      let state = try scopeCommits.state(in: pending) ?? ScopeState()
      // No push is built before the device has the identifier of the server's history. A restored server could accept a push that is based
      // on records which the server has lost.
      guard state.flight == nil, !mayRead || (state.history != nil && state.pass?.isNewHistory != true) else {
        return (state, false, true)
      }
      let limit = ScopeCommits.recordLimit
      let room = ScopeCommits.Room(most: min(most ?? limit, state.recordLimit ?? limit), oversized: oversized)
      if most != nil || !oversized.isEmpty {
        // When the user's quota at the server is full, all edits are searched, since deletions and smaller values may come after any number
        // of growing records.
        let all = try dirty.next(of: scopeCommits.scope, limit: .max, in: pending).keys
        let found = try scopeCommits.freeze(all, limit: limit, room: room, onlySmaller: oversized.isEmpty, state, in: &pending)
        if found.state.flight != nil || !oversized.isEmpty { return (found.state, found.isDivided, !oversized.isEmpty) }
        let any = try scopeCommits.freeze(all, limit: limit, room: room, state, in: &pending)
        return (any.state, any.isDivided, true)
      }
      let candidates = try dirty.next(of: scopeCommits.scope, limit: limit, in: pending)
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
      // `clock` is set when the push is sent, since the server computes the age of the edits from it and a push may have waited for hours.
      var sent = flight
      sent.clock = clock.now.milliseconds
      reply = try await transport.push(sent, to: scopeCommits.scope)
      try reply.check()
    } catch let problem as SyncProblem {
      switch problem {
      case .history(let history) where mayRead: try await beginHistory(history, scopeCommits)
      case .history(let history):
        // The server was restored, and numbers its commits in a new history. The token may not read the scope, so no page shows which
        // records the server has lost. The device therefore sends every edit again that the server has not acknowledged.
        try await store.writeStored { (pending) throws(RepositoryError) in try scopeCommits.begin(history, in: &pending) }
      // The answer `gap` means that the server has other pushes under this device's identifier, because the store was copied or restored.
      // The device takes a new identifier, under which it has sent no push yet.
      case .gap: try await change(scopeCommits) { $0.becomeNewDevice() }
      default: return (flight, problem)
      }
      return nil
    }
    let now = clock.now.milliseconds
    let repeated = refusals[scopeCommits.scope]?.note(conflictsOf: flight, reply.receipt) ?? []
    try await store.writeStored { (pending) throws(RepositoryError) in
      // During the request, another engine on the store may have applied the outcome of the push from a page of changes.
      guard var state = try scopeCommits.state(in: pending), state.flight?.token == flight.token else { return }
      // The server's time is bounded like the device's own time, so that the difference cannot overflow.
      state.skew = max(0, min(reply.now, Date.latestMilliseconds)) - now
      var next = try scopeCommits.settlePush(reply.receipt, state, mayRead: mayRead, repeated: repeated, in: &pending) ?? state
      // If `settlePush` leaves the push in flight, the server's receipt is of another push, which a copy of this store has sent under the
      // same device identifier.
      if next.flight != nil { next.becomeNewDevice() }
      if next.history == nil { next.history = reply.history }
      try scopeCommits.store(next, in: &pending)
      try scopeCommits.noteDuplicates(in: &pending)
    }
    if let most = full[scopeCommits.scope] {
      // Only an accepted value in a push that may need more storage shows that the user's quota at the server has room again.
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

  /// Reduces the size of the next push after the server has refused a push as a whole, or parks records (leaves them out of pushes).
  ///
  /// `divide` does nothing if only the answer to the push was lost and a page of changes has brought the outcome of the push since.
  private func divide(_ push: SyncPush, after problem: SyncProblem, in scopeCommits: ScopeCommits) async throws {
    let code: String
    switch problem {
    case .tooLarge: code = "tooLarge"
    // After an HTTP status 408, the network may be too slow for the whole push, so the next push has fewer transaction groups. A slow
    // network is no reason to park a record (leave it out of pushes) or to send one transaction group in parts.
    case .refused(408, _) where push.groups.count > 1: code = "tooSlow"
    // The status codes 400, 412, 422 to 424 and 451 concern the records of the push. Refusals with other codes concern the request, the
    // account or a proxy, and end when their cause is repaired.
    case .refused(400, _), .refused(412, _), .refused(422...424, _), .refused(451, _): code = "refused"
    // The pull after the forbidden push has succeeded, so the token may read the scope and not write it.
    case .forbidden: code = ScopeCommits.forbidden
    case .upgradeRequired(let minimum):
      // Edits below the required schema version are parked: they stay on the device, and a newer app sends them in its own schema version.
      let isSettled = try await store.writeStored { (pending) throws(RepositoryError) in
        try scopeCommits.parkOutdated(push, below: minimum, problem.description, in: &pending)
      }
      if isSettled { return }
      code = ScopeCommits.upgradeRequired
    case .overQuota:
      // A server that answers `overQuota` has stored nothing of the push. After an answer `overQuota`, the next push has only edits that
      // need no more storage at the server. Later pushes have fewer records, so that some of them may fit into the quota. A transaction
      // group that does not fit alone is left out of this exchange, so that it does not block later groups.
      full[scopeCommits.scope] = max(push.groups.joined().count / 2, 1)
      try await store.writeStored { (pending) throws(RepositoryError) in try scopeCommits.takeBack(push, in: &pending) }
      if push.groups.count > 1 { return }
      for group in push.groups { refusals[scopeCommits.scope, default: ExchangeRefusals()].note(oversized: group, problem) }
      if refusals[scopeCommits.scope]?.oversizedCount ?? 0 >= ExchangeRefusals.limit { throw problem }
      return
    case .unreachable:
      // If a page of changes has brought the outcome of the push since, only the answer to the push was lost, and there is no failure.
      if let state = try scopeCommits.state(in: store.stored), state.device == push.device, state.seq >= push.seq { return }
      throw problem
    default: throw problem
    }
    try await store.writeStored { (pending) throws(RepositoryError) in
      try scopeCommits.divide(push, code: code, detail: problem.description, in: &pending)
    }
  }

  /// Receives and applies pages of a scope's changes until the server has no more.
  private func pull(_ scopeCommits: ScopeCommits, _ passes: inout Int) async throws {
    var untaken = 0
    // The unsent records are counted once and not for each page of changes, since only the server's operator reads the number.
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
          // Records that this device has written do not count as received.
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
        // The smaller page size is kept for later exchanges, since the values of the scope's records rarely get smaller.
        pageSizes[scopeCommits.scope] = max(1, size / 2)
      } catch SyncProblem.resync(let horizon) {
        passes += 1
        // Without a limit of full passes, a server that answers each new full pass with the HTTP status 410 would keep the exchange running
        // for ever.
        guard passes <= Self.passLimit else { throw SyncProblem.resync(horizon: horizon) }
        try await change(scopeCommits) { $0.beginPass(horizon: horizon) }
      } catch SyncProblem.history(let history) {
        passes += 1
        guard passes <= Self.passLimit else { throw SyncProblem.noProgress("The server tells another history each time it is asked.") }
        try await beginHistory(history, scopeCommits)
      }
    }
  }

  /// Checks that a page of changes answers its request.
  ///
  /// - Throws: `.malformed` for a page that begins at another commit or breaks a bound, `.noProgress` for a page that announces more
  ///   changes and ends at the commit where it begins.
  private static func check(_ page: SyncChanges, after request: SyncChangesRequest) throws(SyncProblem) {
    try page.check()
    // A page that begins at another commit than requested would leave a gap of changes that the device never receives.
    guard page.since == request.since else {
      throw .malformed("expected the changes behind commit \(request.since), found those behind \(page.since)")
    }
    guard !page.more || page.until > page.since else {
      throw .noProgress("The server says that there are more changes behind commit \(page.since), and gives none.")
    }
  }

  /// Adds the accepted records of a push to the progress of the exchange.
  private func noteAccepted(_ receipt: SyncReceipt?, of flight: SyncPush, in scope: String) {
    // Each page of changes repeats the receipt (the outcomes) of the device's newest push, which may be another push than `flight`.
    guard let receipt, receipt.seq == flight.seq, receipt.token == flight.token else { return }
    let count = zip(flight.groups, receipt.outcomes).reduce(0) { count, group in
      if case .accepted = group.1 { count + group.0.count } else { count }
    }
    progress[scope, default: ExchangeProgress()].pushed += count
    if partialPushes.removeValue(forKey: scope) == flight.token { dividedTransactions += 1 }
    refreshStatus()
  }

  /// Stores the identifier of the server's new history, and starts a full pass, which compares all records with the server's.
  private func beginHistory(_ history: String, _ scopeCommits: ScopeCommits) async throws {
    try await change(scopeCommits) { state in
      state.history = history
      state.beginPass(horizon: nil, isNewHistory: true)
    }
  }

  /// Changes the stored sync state of a scope in a commit of its own.
  private func change(_ scopeCommits: ScopeCommits, _ body: @escaping @Sendable (inout ScopeState) -> Void) async throws {
    try await store.writeStored { (pending) throws(RepositoryError) in
      guard var state = try scopeCommits.state(in: pending) else { return }
      body(&state)
      // A page of changes that was requested before this change of the state is out of date, and `storePage` drops it because `turn` has
      // changed.
      state.turn += 1
      try scopeCommits.store(state, in: &pending)
    }
  }
}
