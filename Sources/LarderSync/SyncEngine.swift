public import Foundation
public import Larder

/// The sync of a store with a server: sends what the server does not have, and takes what is new there.
///
/// ```swift
/// let sync = try await SyncEngine(store, transport: transport, scopes: ["user/42"])
/// let spots = try await store.repository(Spot.schema.synced(in: "user/42"))
/// try await sync.exchange()
/// ```
///
/// The server orders commits and compares revisions; the device merges. What is to be sent is noted in the commit of each write, so that it
/// survives whatever the data survives. Everything that comes from the server is written with ``ChangeOrigin/remote``, a commit for each
/// page.
public actor SyncEngine {
  /// The values that lost when records were merged.
  public nonisolated let conflicts: LocalRepository<SyncConflict>
  /// The edits that the server has refused; they are not sent until they are edited again or retried.
  public nonisolated let rejected: LocalRepository<SyncRejection>

  let store: Store
  let transport: any SyncTransport
  let clock: any WallClock
  let pageSize: Int
  private let ledgers: [Ledger]
  /// The exchange of each scope that is under way.
  private var running: [String: Task<Void, any Error>] = [:]
  /// The entries that may have edits, and the commit up to which they were looked for.
  private var dirty: Set<RecordKey> = []
  private var searched = Revision.zero

  /// The most rounds of one exchange: other devices may write faster than this one merges.
  private static let roundLimit = 64

  /// Prepares a store for its exchanges.
  ///
  /// Nothing is sent before ``exchange()`` is called.
  /// - Parameters:
  ///   - store: The store; repositories of it are synced if their schema says so.
  ///   - transport: The way to the server.
  ///   - scopes: The scopes that the device reads and writes.
  ///   - clock: The clock of the device, which may be wrong.
  ///   - pageSize: The number of records to ask for at once.
  /// - Throws: `.unsupported` for a scope that breaks the rule of ``RepositorySchema/synced(in:merge:clock:)``; what opening a repository
  ///   throws.
  public init(
    _ store: Store, transport: any SyncTransport, scopes: [String], clock: any WallClock = SystemClock(), pageSize: Int = 1_000
  ) async throws(RepositoryError) {
    guard scopes.allSatisfy(ScopeName.isValid) else { throw ScopeName.refusal }
    self.store = store
    self.transport = transport
    self.clock = clock
    self.pageSize = max(1, pageSize)
    let conflicts = try await store.repository(RepositorySchema<SyncConflict>(SyncCollections.conflicts))
    let rejected = try await store.repository(RepositorySchema<SyncRejection>(SyncCollections.rejected))
    (self.conflicts, self.rejected) = (conflicts, rejected)
    let (records, states) = (store.collection(named: SyncCollections.records), store.collection(named: SyncCollections.scopes))
    ledgers = scopes.map {
      Ledger(scope: $0, records: records, scopes: states, conflicts: conflicts, rejected: rejected, clock: clock)
    }
  }

  /// Sends and takes until the server has what this device has and the device what the server has.
  ///
  /// One exchange of a scope runs at a time; a call that finds one waits for it, and then runs its own. Scopes come one after another.
  /// - Throws: ``SyncProblem`` where the server cannot be reached or refuses; a ``RepositoryError`` of the store. What was taken until then
  ///   is kept, and the next call goes on from there.
  public func exchange() async throws {
    for ledger in ledgers {
      while let task = running[ledger.scope] { _ = await task.result }
      let task = Task { try await self.exchange(ledger) }
      running[ledger.scope] = task
      defer { running[ledger.scope] = nil }
      try await task.value
    }
  }

  /// The number of records with edits that the server has not taken, those that it has refused included.
  public var pending: Int {
    get throws { try dirtyEntries().count }
  }

  /// Sends a rejected edit again with the next exchange.
  ///
  /// - Throws: the errors of storage.
  public func retry(_ rejection: SyncRejection) async throws(RepositoryError) {
    try await resolve(rejection) { (ledger, key, entry, pending) throws(RepositoryError) in
      entry.edits?.isParked = false
      pending.store(entry.stored, for: key, in: ledger.records)
    }
  }

  /// Gives a rejected edit up: the record becomes what the server has.
  ///
  /// - Throws: the errors of storage.
  public func revert(_ rejection: SyncRejection) async throws(RepositoryError) {
    try await resolve(rejection) { (ledger, key, entry, pending) throws(RepositoryError) in
      guard let address = SyncEntry.address(key), let collection = pending.collection(named: address.collection) else { return }
      let held = entry.edits?.held
      let base = held?.value ?? entry.edits?.base
      if let held { entry.revision = held.revision }
      entry.edits = nil
      ledger.put(base, for: address.key, in: collection, of: &pending)
      ledger.store(entry, for: key, value: base, in: &pending)
    }
  }

  private func resolve(
    _ rejection: SyncRejection,
    _ body: @escaping @Sendable (Ledger, RecordKey, inout SyncEntry, inout PendingState) throws(RepositoryError) -> Void
  ) async throws(RepositoryError) {
    guard let ledger = ledgers.first else { return }
    let key = RecordKey(rejection.id)
    try await store.writeStored { (pending) throws(RepositoryError) in
      try pending.delete(rejection.id, in: ledger.rejected)
      guard var entry = try ledger.entry(key, in: pending), entry.edits?.isParked == true else { return }
      try body(ledger, key, &entry, &pending)
    }
  }

  // MARK: One scope

  private func exchange(_ ledger: Ledger) async throws {
    try await prepare(ledger)
    for _ in 0..<Self.roundLimit {
      // A pull never waits for a push: what cannot be sent holds up nothing that comes.
      let sent: Result<Bool, SyncProblem>
      do { sent = .success(try await push(ledger)) } catch let problem as SyncProblem { sent = .failure(problem) }
      try await pull(ledger)
      if try !sent.get(), try dirtyEntries(of: ledger.scope).isEmpty { return }
    }
  }

  /// Makes the state of a scope that is new, and begins a full pass where a collection has come to be synced.
  private func prepare(_ ledger: Ledger) async throws {
    let names = store.recordTriggers.filter { $0.value is any SyncedCollection }.map(\.key).sorted()
    try await store.writeStored { (pending) throws(RepositoryError) in
      var state = try ledger.state(in: pending) ?? ScopeState()
      let added = names.filter { !state.collections.contains($0) }
      let isNewApp = try ledger.upgrade(names, &state, in: &pending)
      guard !added.isEmpty || isNewApp || pending.stored(RecordKey(ledger.scope), in: ledger.scopes) == nil else { return }
      for name in added { try ledger.adopt(name, in: &pending) }
      state.collections = (state.collections + added).sorted()
      if !added.isEmpty, state.checkpoint > 0 || state.pass != nil { state.beginPass(horizon: nil) }
      ledger.store(state, in: &pending)
    }
  }

  /// Sends one push, if there is something to send.
  /// - Returns: Whether there was.
  private func push(_ ledger: Ledger) async throws -> Bool {
    let candidates = try dirtyEntries(of: ledger.scope)
    let state = try await store.writeStored { (pending) throws(RepositoryError) in
      let state = try ledger.state(in: pending) ?? ScopeState()
      // The history is learned first, so that no push can be taken by a server that came back without what it is about.
      guard state.flight == nil, state.history != nil, state.pass?.isNewHistory != true else { return state }
      return try ledger.freeze(candidates, state, in: &pending)
    }
    guard let flight = state.flight, state.pass?.isNewHistory != true else { return false }
    let reply: SyncPushReply
    do {
      reply = try await transport.push(flight, to: ledger.scope)
    } catch SyncProblem.history(let history) {
      try await beginHistory(history, ledger)
      return true
    } catch SyncProblem.gap {
      try await change(ledger) { $0.becomeNewDevice() }
      return true
    }
    try await store.writeStored { (pending) throws(RepositoryError) in
      guard let state = try ledger.state(in: pending), state.flight?.token == flight.token else { return }
      var next = try ledger.settle(reply.receipt, state, in: &pending) ?? state
      if next.flight != nil { next.becomeNewDevice() }
      if next.history == nil { next.history = reply.history }
      ledger.store(next, in: &pending)
    }
    return true
  }

  /// Takes pages until there are no more.
  private func pull(_ ledger: Ledger) async throws {
    var restarts = 0
    while true {
      guard let state = try ledger.state(in: store.stored) else { return }
      let request = SyncChangesRequest(
        device: state.device, history: state.history, since: state.position, limit: pageSize, collections: state.collections,
        from: state.pass?.horizon)
      do {
        let page = try await transport.changes(request, in: ledger.scope)
        if let history = state.history, page.history != history { throw SyncProblem.history(page.history) }
        _ = try await store.writeStored { (pending) throws(RepositoryError) in try ledger.take(page, askedAt: state, in: &pending) }
        if !page.more { return }
      } catch SyncProblem.resync(let horizon) {
        // A server that refuses every pass must not keep the device busy for ever.
        restarts += 1
        guard restarts < Self.roundLimit else { throw SyncProblem.resync(horizon: horizon) }
        try await change(ledger) { $0.beginPass(horizon: horizon) }
      } catch SyncProblem.history(let history) {
        try await beginHistory(history, ledger)
      }
    }
  }

  private func beginHistory(_ history: String, _ ledger: Ledger) async throws {
    try await change(ledger) { state in
      state.history = history
      state.beginPass(horizon: nil, isNewHistory: true)
    }
  }

  private func change(_ ledger: Ledger, _ body: @escaping @Sendable (inout ScopeState) -> Void) async throws {
    try await store.writeStored { (pending) throws(RepositoryError) in
      guard var state = try ledger.state(in: pending) else { return }
      body(&state)
      state.turn += 1
      ledger.store(state, in: &pending)
    }
  }

  // MARK: Edits

  /// Returns the entries with edits, of a scope or of all.
  ///
  /// Cost: a look at each entry; only those that were written since the last call are read.
  private func dirtyEntries(of scope: String? = nil) throws -> [RecordKey] {
    let snapshot = store.stored
    guard let records = snapshot.collection(named: SyncCollections.records) else { return [] }
    snapshot.visit(records, after: searched) { key, _ in dirty.insert(key) }
    searched = snapshot.revision
    var found: [RecordKey] = []
    for key in dirty {
      guard let stored = snapshot.stored(key, in: records) else {
        dirty.remove(key)
        continue
      }
      let entry = try SyncEntry(stored)
      guard let edits = entry.edits else {
        dirty.remove(key)
        continue
      }
      if scope == nil || (entry.scope == scope && !edits.isParked) { found.append(key) }
    }
    return found
  }
}
