// The files beside the folders are the public face of sync: the engine, its status, conflicts and rejected edits, and the schema of a
// synced collection.
// Invariant: one exchange of a scope runs at a time.
// Called by apps.

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
/// Open the synced repositories first, then create one engine for the store. A scope such as `user/42` is a named part of the data with
/// rights of its own at the server. Edits are queued for the server in the commit of each write, so that they are as durable as the data.
/// The server orders commits and compares revisions, and the device merges. Data of the server is written with `ChangeOrigin.remote`, in
/// one commit for each page.
///
/// An engine with a server syncs by itself until it is released or its store is closed. An exchange under way then runs to its end. Call
/// ``exchange()`` in tests, background tasks and commands, and for an engine that was created with a transport or was stopped.
public actor SyncEngine {
  /// Values that lost in merges, whole for deleted records.
  ///
  /// The newest 1,000 are kept.
  public nonisolated let conflicts: LocalRepository<SyncConflict>
  /// Edits that the server has refused.
  ///
  /// They are not sent until they are edited again or retried.
  public nonisolated let rejected: LocalRepository<SyncRejection>

  /// Recent deletions that the server has accepted.
  let deletions: LocalRepository<SyncDeletion>
  let store: Store
  let transport: any SyncTransport
  let clock: any WallClock
  let pageSize: Int
  /// Number of records per page, for scopes whose pages were too large.
  var pageSizes: [String: Int] = [:]
  /// The commits of each scope's exchange, in the order of the scopes' names.
  let commitsOfScopes: [ScopeCommits]
  /// Commits that belong to no single scope.
  let common: ScopeCommits
  /// Wake-up flag of each scope's next exchange.
  nonisolated let alarms: [String: ScopeAlarm]
  nonisolated let board = StatusBoard()
  /// Tasks that run while the engine syncs by itself.
  var tasks: [Task<Void, Never>] = []
  /// Exchange under way of each scope.
  var running: [String: Task<Void, any Error>] = [:]
  /// Scopes whose last exchange has failed.
  var failing: Set<String> = []
  /// Number of records in pushes with an unknown outcome, by scope.
  var inFlight: [String: Int] = [:]
  /// Progress of the current or last exchange of each scope.
  var progress: [String: ExchangeProgress] = [:]
  /// Largest number of records of the next push with several groups, by scope.
  ///
  /// Holds only scopes for which the server has no more room for this identity.
  var full: [String: Int] = [:]
  /// Records that the server had no room for or answered with a conflict, in each scope's current exchange.
  var refusals: [String: ExchangeRefusals] = [:]
  /// Time at which the engine last requested the rights in a scope.
  var rightsAsked: [String: Duration] = [:]
  /// Wait for other credentials, or `nil` while the server has refused none.
  var credentialWatch: Task<Void, Never>?
  /// Interval of the next wait for credentials.
  ///
  /// It grows, since a server may refuse every token of an app that creates a new one each time.
  var credentialInterval = CredentialWatch.shortest
  /// Name of each scope's push in flight that holds only a part of a transaction.
  var partialPushes: [String: String] = [:]
  /// Number of pushes that held only a part of a transaction.
  var dividedTransactions = 0
  /// Number of sign-outs.
  ///
  /// An exchange requested before a sign-out does not start after it.
  var signOuts = 0
  /// Index of the outbox entries with unsent edits.
  let dirty: DirtyEntries
  nonisolated let counts: StatusCounts
  /// Task that follows the edits of the store, which change the status even while the engine does not run.
  var follower: Task<Void, Never>?
  /// Scopes that were prepared since the engine was created.
  var prepared: Set<String> = []
  /// True if every record that existed before its collection was synced has an outbox entry.
  var isNoted = true

  /// Creates an engine with a transport, which sends nothing before you call ``exchange()`` or ``start()``.
  ///
  /// - Parameters:
  ///   - store: The store. Its repositories are synced if their schema says so.
  ///   - transport: The connection to the server.
  ///   - scopes: The scopes that the device reads and writes.
  ///   - clock: The clock of the device, which may be wrong.
  ///   - pageSize: The number of records per page. The default is 1,000.
  /// - Throws: `.unsupported` for a scope that breaks the rule of `RepositorySchema.synced(in:merge:clock:)`, and the errors of opening a
  ///   repository.
  public init(
    _ store: Store, transport: any SyncTransport, scopes: [String], clock: any WallClock = SystemClock(), pageSize: Int = 1_000
  ) async throws(RepositoryError) {
    guard scopes.allSatisfy(ScopeName.isValid) else { throw ScopeName.refusal }
    self.store = store
    self.transport = transport
    self.clock = clock
    // A page of 0 records would never advance.
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
    // A set: two entries of one scope would exchange it twice, and each would drop the pages of the other.
    (commitsOfScopes, common) = (Set(scopes).sorted().map(scopeCommits), scopeCommits(""))
    alarms = scopes.reduce(into: [:]) { $0[$1] = ScopeAlarm() }
    dirty = DirtyEntries(store, records: records)
    counts = StatusCounts(dirty: dirty, conflicts: conflicts, rejected: rejected, scopes: Set(scopes))
    let snapshot = store.stored
    let synced = store.recordTriggers.filter { $0.value is any SyncedCollection }.map(\.key)
    for scopeCommits in commitsOfScopes {
      let state = try scopeCommits.state(in: snapshot)
      // A push of an earlier process may still be without an outcome.
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
  ///   - store: The store. Its repositories are synced if their schema says so. Open them before the engine. Without an open repository,
  ///     there is no merge policy: merges of the collection wait, and an edit wins over a deletion.
  ///   - server: The address of a `larder-server`.
  ///   - scopes: The scopes that the device reads and writes.
  ///   - clock: The clock of the device, which may be wrong.
  ///   - credentials: Returns the bearer token. It is called for the first request, and again when the server refuses the token.
  /// - Throws: The errors of ``init(_:transport:scopes:clock:pageSize:)``.
  public init(
    _ store: Store, server: URL, scopes: [String], clock: any WallClock = SystemClock(),
    credentials: @escaping @Sendable () async throws -> String?
  ) async throws(RepositoryError) {
    try await self.init(store, transport: HTTPTransport(server, credentials: credentials), scopes: scopes, clock: clock)
    start()
  }

  deinit {
    // The tasks hold the engine weakly. They would wait for ever without a cancellation.
    for task in tasks { task.cancel() }
    for task in [credentialWatch, follower] { task?.cancel() }
    board.finish()
  }

  /// Sends local edits and receives remote ones, until the server and this device have the same data.
  ///
  /// One exchange of a scope runs at a time. A call during one waits for it and then runs its own. With several scopes, one request finds
  /// those with news. Up to four of these are exchanged at a time, and a failure of one does not stop the others.
  /// - Throws: `SyncProblem` if the server cannot be reached or refuses, a `RepositoryError` of the store, or an error of the credentials
  ///   closure. Data received before the error is kept, and the next call continues from there. Of several errors, the first is thrown.
  public func exchange() async throws { try await exchange(scopesAtOnce: 4) }

  /// Runs ``exchange()`` with a number of concurrent scopes.
  ///
  /// Pass 1 in a simulation, since equal seeds must give equal runs. A server builds four pages for one identity at a time.
  @_spi(Simulation) public func exchange(scopesAtOnce: Int) async throws {
    let signOuts = signOuts
    // An explicit call requests the rights at once, without the interval of the running engine.
    rightsAsked = [:]
    let quiet = await quietScopes()
    // The actor was free during the request, and a sign-out may have come. Going on would receive again the data that it removed.
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
    // By the order of scopes and not of time, so that the error does not depend on the network.
    if let first = failures.min(by: { $0.key < $1.key })?.value { throw first }
  }

  /// Number of records with edits that the server has not accepted, including refused ones.
  public var pending: Int {
    get throws { dirty.countWithRejected }
  }

  /// Runs one exchange of a scope after the one under way, and updates the status with its result.
  ///
  /// - Parameter before: The number of sign-outs above which it does not start. The default is the current number.
  func runOnce(_ scopeCommits: ScopeCommits, before signOuts: Int? = nil) async throws {
    let signOuts = signOuts ?? self.signOuts
    // A loop: after the wait, another caller may have started an exchange first.
    while let task = running[scopeCommits.scope] { _ = await task.result }
    guard signOuts == self.signOuts else { throw CancellationError() }
    try Task.checkCancellation()
    // A task of its own, so that others can wait for its end and a sign-out can cancel it.
    let task = Task {
      // Within the task: a caller that waits for its end may go on before this call does.
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
      // A cancelled write of the store throws an error of its own. Callers expect `CancellationError`.
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

  /// Updates the status after a success, and removes the last error if no scope fails.
  func noteSuccess() {
    credentialInterval = CredentialWatch.shortest
    board.update { status in
      status.lastExchange = clock.now
      // The error may belong to another scope, which still fails.
      if failing.isEmpty { status.forgetError() }
    }
  }

  /// Returns the only record of a push in flight, or `nil` if there is none or it has several.
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
