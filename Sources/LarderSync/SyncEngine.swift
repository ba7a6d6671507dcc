// The files directly in LarderSync/ hold the public types of sync: the engine, its status, conflicts and rejected edits, and the schema of
// a synced collection.
// Invariant: one exchange of a scope runs at a time.
// Apps call the types of LarderSync/.

public import Foundation
public import Larder
@_exported public import LarderWire

/// The sync engine of a store: sends local edits to a server and receives the edits of other devices.
///
/// ```swift
/// let spots = try await store.repository(Spot.schema.synced(in: "user/42"))
/// let sync = try await SyncEngine(store, server: url, scopes: ["user/42"], credentials: { try await token() })
/// for await status in sync.status { show(status) }
/// ```
///
/// An engine that was created with a transport sends nothing before you call ``exchange()`` or ``start()``:
///
/// ```swift
/// var transport = HTTPTransport(url, credentials: { try await token() })
/// transport.appVersion = "2.4.1"
/// let sync = try await SyncEngine(store, transport: transport, scopes: ["user/42"])
/// try await sync.exchange()
/// ```
///
/// Open the synced repositories first, then create one engine for the store. A scope such as `user/42` is a named part of the data with
/// rights of its own at the server. Edits are queued for the server in the commit of each write, so that they are as durable as the data.
/// The server orders commits and compares revisions, and the device merges. Data of the server is written with `ChangeOrigin.remote`, in
/// one commit for each page.
///
/// An engine that was created with the address of a server syncs by itself until it is stopped or released, or until its store is closed.
/// If the app releases the engine during an exchange, the exchange runs to its end. Call ``exchange()`` in tests, background tasks and
/// command-line tools, and for an engine that was created with a transport or was stopped.
///
/// ## Threads and processes
///
/// Call an engine from any thread, actor or task. The engine is an actor, and it is free for other calls while an exchange waits for the
/// server or the disk. ``status``, ``pendingRecords``, ``conflicts``, ``rejected`` and ``wake()`` need no `await`. Reads of the synced
/// repositories never wait for the engine. Writes wait at most for a commit of received data, and they work without a network.
///
/// Run one engine for a store. Other processes may write a `.shared` store, if they open each synced collection with its synced schema. The
/// engine also sends the edits that the other processes have made.
///
/// ## When to use another type
///
/// - Use `LocalRepository` with a plain schema for data that stays on this device.
/// - Use `CachedRepository` for values of a server that this device only reads and that expire.
/// - Implement `SyncTransport` for a server of your own, and pass it to ``init(_:transport:scopes:clock:pageSize:)``.
///
/// ## Avoid
///
/// - Do not keep the engine in a local variable of a function that returns. The engine stops when it is released.
/// - Do not create the engine before its repositories are open. Without the merge policies of the repositories, merges wait in
///   ``rejected``, and an edit wins over a deletion.
/// - Do not run two engines on one store, in one process or in two. Each engine changes the stored read position, so that the other engine
///   has to drop the pages that it has requested.
/// - Do not call ``exchange()`` after each save. An engine that was started sends each edit by itself.
/// - Do not show "saved" when ``SyncStatus/pending`` is 0. Show ``SyncStatus/isSaved``, which also considers refused edits.
/// - Do not ignore ``rejected``. Most rejected edits are not sent until the record is edited again, or until you call ``retry(_:)``.
/// - Do not pass `force: true` to ``signOut(force:)`` without asking. A forced sign-out loses the edits that the server does not have.
///
/// ## Topics
///
/// ### Creating
/// - ``init(_:server:scopes:clock:credentials:)``
/// - ``init(_:transport:scopes:clock:pageSize:)``
///
/// ### Syncing
/// - ``start()``
/// - ``stop()``
/// - ``wake()``
/// - ``exchange()``
/// - ``signOut(force:)``
///
/// ### Showing the state
/// - ``status``
/// - ``pending``
/// - ``pendingRecords``
/// - ``state(of:in:)``
///
/// ### Lost and refused edits
/// - ``conflicts``
/// - ``rejected``
/// - ``retry(_:)``
/// - ``revert(_:)``
public actor SyncEngine {
  /// Conflicts with the values that lost in merges.
  ///
  /// If a merge has deleted the record, the conflict keeps the record's whole lost value.
  ///
  /// At most 1,000 conflicts are kept. If there are more than 1,000 conflicts, the oldest ones without a lost value are removed first.
  public nonisolated let conflicts: LocalRepository<SyncConflict>
  /// Edits that the server has refused, or that could not be merged.
  ///
  /// Most rejected edits are not sent until the record is edited again or the edit is retried.
  public nonisolated let rejected: LocalRepository<SyncRejection>

  /// Recent deletions by this device that the server has accepted.
  let deletions: LocalRepository<SyncDeletion>
  let store: Store
  let transport: any SyncTransport
  let clock: any WallClock
  let pageSize: Int
  /// Reduced number of records per page, by scope, for scopes whose pages were too large for the transport.
  var pageSizes: [String: Int] = [:]
  /// Functions that write to the store during an exchange, one value for each scope, in the order of the scopes' names.
  let commitsOfScopes: [ScopeCommits]
  /// Functions that write to the store for records of any scope, such as for a retry.
  let common: ScopeCommits
  /// Alarm of each scope, by the scope's name, with which the engine starts the scope's next exchange.
  nonisolated let alarms: [String: ScopeAlarm]
  nonisolated let board = StatusBoard()
  /// Tasks that run while the engine syncs by itself, empty while it is stopped.
  var tasks: [Task<Void, Never>] = []
  /// Task of each exchange under way, by the name of its scope.
  var running: [String: Task<Void, any Error>] = [:]
  /// Scopes whose last exchange has failed.
  var failing: Set<String> = []
  /// Number of records in pushes with an unknown outcome, by scope.
  var inFlight: [String: Int] = [:]
  /// Progress of the current or last exchange of each scope.
  var progress: [String: ExchangeProgress] = [:]
  /// Largest number of records in the next push that holds several transaction groups, by scope.
  ///
  /// The dictionary holds only scopes in which the server has refused a push because the user's quota is full.
  var full: [String: Int] = [:]
  /// Records that the server has refused for lack of quota or answered with a conflict in the current exchange, by scope.
  var refusals: [String: ExchangeRefusals] = [:]
  /// Uptime at which the engine last requested the rights in a scope, by scope.
  var rightsAsked: [String: Duration] = [:]
  /// Task that waits for other credentials, or `nil` if no such wait is under way.
  var credentialWatch: Task<Void, Never>?
  /// Time between two calls of the credentials closure in the next wait for credentials.
  ///
  /// The interval between these calls grows, since a server may refuse every token of an app that creates a new token at each call.
  var credentialInterval = CredentialWatch.shortest
  /// Token, a random name, of each scope's push in flight that holds only a part of a transaction.
  var partialPushes: [String: String] = [:]
  /// Number of pushes that held only a part of a transaction.
  var dividedTransactions = 0
  /// Number of sign-outs.
  ///
  /// An exchange that was requested before a sign-out does not start after the sign-out.
  var signOuts = 0
  /// Index of the outbox entries with unsent edits.
  let dirty: DirtyEntries
  nonisolated let counts: StatusCounts
  /// Task that follows the edits of the store, which change the status even while the engine does not run.
  var follower: Task<Void, Never>?
  /// Scopes whose stored state `prepare` has created or updated since the engine was created.
  var prepared: Set<String> = []
  /// True if every record that existed before its collection was synced has an outbox entry.
  var isNoted = true

  /// Creates an engine with a transport, and sends nothing before you call ``exchange()`` or ``start()``.
  ///
  /// - Parameters:
  ///   - store: The store to sync. A repository of the store is synced if it was opened with a synced schema.
  ///   - transport: The connection to the server.
  ///   - scopes: The scopes that the device reads and writes.
  ///   - clock: The clock of the device, which may be wrong.
  ///   - pageSize: The number of records per page of changes, 1,000 by default.
  /// - Throws: `.unsupported` for a scope name that `RepositorySchema.synced(in:merge:clock:)` does not allow, and the errors of opening a
  ///   repository.
  public init(
    _ store: Store, transport: any SyncTransport, scopes: [String], clock: any WallClock = SystemClock(), pageSize: Int = 1_000
  ) async throws(RepositoryError) {
    guard scopes.allSatisfy(ScopeName.isValid) else { throw ScopeName.refusal }
    self.store = store
    self.transport = transport
    self.clock = clock
    // With 0 records per page, the read position would never advance.
    self.pageSize = max(1, pageSize)
    let conflicts = try await store.repository(RepositorySchema<SyncConflict>(SyncCollections.conflicts))
    let rejected = try await store.repository(RepositorySchema<SyncRejection>(SyncCollections.rejected))
    let deletions = try await store.repository(RepositorySchema<SyncDeletion>(SyncCollections.deletions))
    (self.conflicts, self.rejected, self.deletions) = (conflicts, rejected, deletions)
    let (records, states) = (store.collection(named: SyncCollections.records), store.collection(named: SyncCollections.scopes))
    let scopeCommits = { (scope: String) in
      ScopeCommits(
        scope: scope, records: records, scopes: states, conflicts: conflicts, rejected: rejected, deletions: deletions, clock: clock)
    }
    // Duplicate scopes are removed. Two exchanges of one scope at a time would drop each other's pages as out of date.
    (commitsOfScopes, common) = (Set(scopes).sorted().map(scopeCommits), scopeCommits(""))
    alarms = scopes.reduce(into: [:]) { $0[$1] = ScopeAlarm() }
    dirty = DirtyEntries(store, records: records)
    counts = StatusCounts(dirty: dirty, conflicts: conflicts, rejected: rejected, scopes: Set(scopes))
    let snapshot = store.stored
    let synced = store.recordTriggers.filter { $0.value is any SyncedCollection }.map(\.key)
    for scopeCommits in commitsOfScopes {
      let state = try scopeCommits.state(in: snapshot)
      // A push that an earlier process has sent may still be without an outcome, and its records count as in flight.
      inFlight[scopeCommits.scope] = state?.flightCount
      let added = synced.filter { state?.collections.contains($0) != true }
      if added.contains(where: { snapshot.count(in: store.collection(named: $0)) > 0 }) { isNoted = false }
    }
    followEdits()
    refreshStatus()
  }

  /// Creates an engine for a `larder-server` and starts to sync.
  ///
  /// - Parameters:
  ///   - store: The store to sync. A repository of the store is synced if it was opened with a synced schema. Open the repositories before
  ///     you create the engine. Without an open repository, there is no merge policy: merges of the collection wait, and an edit wins over
  ///     a deletion.
  ///   - server: The address of a `larder-server`.
  ///   - scopes: The scopes that the device reads and writes.
  ///   - clock: The clock of the device, which may be wrong.
  ///   - credentials: Returns the bearer token. The credentials closure is called for the first request, and again when the server refuses
  ///     the token.
  /// - Throws: The errors of ``init(_:transport:scopes:clock:pageSize:)``.
  public init(
    _ store: Store, server: URL, scopes: [String], clock: any WallClock = SystemClock(),
    credentials: @escaping @Sendable () async throws -> String?
  ) async throws(RepositoryError) {
    try await self.init(store, transport: HTTPTransport(server, credentials: credentials), scopes: scopes, clock: clock)
    start()
  }

  deinit {
    // The engine's tasks hold the engine weakly, and without a cancellation they would wait for ever after its release.
    for task in tasks { task.cancel() }
    for task in [credentialWatch, follower] { task?.cancel() }
    board.finish()
  }

  /// Sends local edits and receives remote ones, until the server and this device have the same data.
  ///
  /// One exchange of a scope runs at a time. A call during an exchange waits for the end of that exchange and runs another one. With
  /// several scopes, one request finds the scopes that have something to receive. Up to four scopes are exchanged at a time, and a failure
  /// in one scope does not stop the exchanges of the others.
  /// - Throws: `SyncProblem` if the server cannot be reached or refuses a request, a `RepositoryError` of the store, or an error of the
  ///   credentials closure. Data received before the error is kept, and the next call continues after this data. If several scopes fail,
  ///   the error of the first scope by name is thrown.
  public func exchange() async throws { try await exchange(scopesAtOnce: 4) }

  /// Runs ``exchange()`` with a number of concurrent scopes.
  ///
  /// Pass 1 for `scopesAtOnce` in a simulation, since equal seeds must give equal runs. A `larder-server` builds at most four pages of
  /// changes at a time for the identity of one token.
  @_spi(Simulation) public func exchange(scopesAtOnce: Int) async throws {
    let signOuts = signOuts
    // An explicit call of `exchange()` requests the rights in the scopes at once, without the interval that a running engine keeps.
    rightsAsked = [:]
    let quiet = await quietScopes()
    // A sign-out may have run during the request for the list of scopes, while the actor was free. An exchange after the sign-out would
    // receive the removed data again.
    guard signOuts == self.signOuts else { throw CancellationError() }
    for scope in quiet { noteQuiet(scope) }
    let due = commitsOfScopes.filter { !quiet.contains($0.scope) }
    let failures = await withTaskGroup(of: (Int, (any Error)?).self) { group in
      var failures: [Int: any Error] = [:]
      for (number, scopeCommits) in due.enumerated() {
        if number >= scopesAtOnce, let (index, failure) = await group.next() { failures[index] = failure }
        group.addTask {
          do {
            try await self.runOnce(scopeCommits, before: signOuts)
            return (number, nil)
          } catch { return (number, error) }
        }
      }
      for await (index, failure) in group { failures[index] = failure }
      return failures
    }
    refreshStatus()
    // The error of the first scope by name is thrown, and not the earliest error, so that the result does not depend on the network.
    if let first = failures.min(by: { $0.key < $1.key })?.value { throw first }
  }

  /// Number of records with edits that the server has not accepted, including refused ones.
  public var pending: Int {
    get throws { dirty.countWithRejected }
  }

  /// Waits for the end of a scope's exchange under way, runs another exchange, and updates the status with the result.
  ///
  /// - Parameter before: The number of sign-outs when the exchange was requested. If the number of sign-outs has changed when the exchange
  ///   would start, the exchange throws `CancellationError`. The default is the number of sign-outs at the time of the call.
  func runOnce(_ scopeCommits: ScopeCommits, before signOuts: Int? = nil) async throws {
    let signOuts = signOuts ?? self.signOuts
    // The wait is repeated, since another caller may have started an exchange of the scope first.
    while let task = running[scopeCommits.scope] { _ = await task.result }
    guard signOuts == self.signOuts else { throw CancellationError() }
    try Task.checkCancellation()
    // The exchange has a task of its own, so that other callers can wait for its end and a sign-out can cancel it.
    let task = Task {
      // The task removes itself from `running`. A caller that waits for the task's end may continue before this call of `runOnce` does, and
      // must not find the ended task in `running`.
      defer { running[scopeCommits.scope] = nil }
      try await self.exchange(scopeCommits)
    }
    running[scopeCommits.scope] = task
    refreshStatus()
    let result = await withTaskCancellationHandler {
      await task.result
    } onCancel: {
      task.cancel()
    }
    switch result {
    case .success:
      failing.remove(scopeCommits.scope)
      noteSuccess()
    case .failure(let error):
      // A cancelled write of the store throws a `RepositoryError`, but callers expect `CancellationError`.
      if RepositoryError.Code.cancelled ~= error || error is CancellationError {
        refreshStatus()
        throw CancellationError()
      }
      failing.insert(scopeCommits.scope)
      let record = onlyRecordInFlight(of: scopeCommits)
      board.update { ($0.lastError, $0.lastErrorScope, $0.lastErrorRecord) = (error, scopeCommits.scope, record) }
      await watchCredentials()
    }
    refreshStatus()
    try result.get()
  }

  /// Updates the status after a successful exchange, and removes the last error if the last exchange of every scope has succeeded.
  func noteSuccess() {
    credentialInterval = CredentialWatch.shortest
    board.update { status in
      status.lastExchange = clock.now
      // The last error may belong to another scope, whose exchange still fails.
      if failing.isEmpty { status.forgetError() }
    }
  }

  /// Returns the only record of the scope's push in flight, or `nil` if there is no push or the push has several records.
  private func onlyRecordInFlight(of scopeCommits: ScopeCommits) -> SyncPendingRecord? {
    do throws(RepositoryError) {
      guard let flight = try scopeCommits.state(in: store.stored)?.flight, flight.groups.count == 1, flight.groups[0].count == 1 else {
        return nil
      }
      let record = flight.groups[0][0]
      return SyncPendingRecord(collection: record.collection, recordID: record.id, scope: scopeCommits.scope, isRefused: false)
    } catch { return nil }
  }
}
