public import Foundation
public import Larder

/// The sync of a store with a server: sends what the server does not have, and takes what is new there.
///
/// ```swift
/// let spots = try await store.repository(Spot.schema.synced(in: "user/42"))
/// let sync = try await SyncEngine(store, server: url, scopes: ["user/42"], credentials: { try await token() })
/// for await status in sync.status { show(status) }
/// ```
///
/// The server orders commits and compares revisions; the device merges. What is to be sent is noted in the commit of each write, so that it
/// survives whatever the data survives. Everything that comes from the server is written with `ChangeOrigin.remote`, a commit for each
/// page.
///
/// An engine with a server syncs by itself until it goes away or its store is closed; an exchange that is under way then comes to its end.
/// ``exchange()`` is for tests, background tasks and commands, and for an
/// engine that was made with a transport or has been stopped.
public actor SyncEngine {
  /// The values that lost when records were merged; those of deleted records whole.
  ///
  /// The newest 1,000 are kept.
  public nonisolated let conflicts: LocalRepository<SyncConflict>
  /// The edits that the server has refused; they are not sent until they are edited again or retried.
  public nonisolated let rejected: LocalRepository<SyncRejection>

  /// The deletions that the server has accepted lately.
  let deletions: LocalRepository<SyncDeletion>
  let store: Store
  let transport: any SyncTransport
  let clock: any WallClock
  let pageSize: Int
  /// The number of records to ask for, of scopes whose pages were too large.
  var pageSizes: [String: Int] = [:]
  let ledgers: [Ledger]
  /// The ledger of what belongs to no scope.
  let common: Ledger
  /// The reasons for the next exchange of each scope.
  nonisolated let alarms: [String: ScopeAlarm]
  nonisolated let board = StatusBoard()
  /// The tasks that run while the engine syncs by itself.
  var tasks: [Task<Void, Never>] = []
  /// The exchange of each scope that is under way.
  var running: [String: Task<Void, any Error>] = [:]
  /// The scopes whose last exchange has failed.
  var failing: Set<String> = []
  /// The number of records in pushes whose outcome is not known, by scope.
  var inFlight: [String: Int] = [:]
  /// The progress of the exchange of each scope that is under way, or was the last one.
  var progress: [String: ExchangeProgress] = [:]
  /// The most records of the next push with several groups, by scope.
  ///
  /// Only the scopes whose server has no room for more of this identity are here.
  var full: [String: Int] = [:]
  /// The records that the server had no room for or has answered with a conflict, in the exchange of each scope that is under way.
  var refusals: [String: ExchangeRefusals] = [:]
  /// The time at which the engine has last asked for the rights in a scope.
  var rightsAsked: [String: Duration] = [:]
  /// The wait for other credentials; `nil` while the server has refused none.
  var credentialWatch: Task<Void, Never>?
  /// The interval of the next wait: a server may refuse every token that an app makes anew.
  var credentialInterval = CredentialWatch.shortest
  /// The token of each scope's push under way that has only a part of a transaction.
  var partialPushes: [String: String] = [:]
  /// The number of pushes that took only a part of a transaction.
  var dividedTransactions = 0
  /// The number of times that the device was signed out: what was asked for before begins nothing afterwards.
  var signOuts = 0
  let dirty: DirtyEntries
  nonisolated let counts: StatusCounts
  /// Follows the edits of the store, also while the engine does not run: they change the status.
  var follower: Task<Void, Never>?
  /// The scopes that were prepared since the engine was made.
  var prepared: Set<String> = []
  /// Whether no record is left that was there before its collection was synced and is not noted as unsent.
  var isNoted = true

  /// Prepares a store for its exchanges by a transport; nothing is sent before ``exchange()`` or ``start()`` is called.
  ///
  /// - Parameters:
  ///   - store: The store; repositories of it are synced if their schema says so.
  ///   - transport: The way to the server.
  ///   - scopes: The scopes that the device reads and writes.
  ///   - clock: The clock of the device, which may be wrong.
  ///   - pageSize: The number of records to ask for at once: 1,000 by default.
  /// - Throws: `.unsupported` for a scope that breaks the rule of `RepositorySchema.synced(in:merge:clock:)`; what opening a repository
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
    let deletions = try await store.repository(RepositorySchema<SyncDeletion>(SyncCollections.deletions))
    (self.conflicts, self.rejected, self.deletions) = (conflicts, rejected, deletions)
    let (records, states) = (store.collection(named: SyncCollections.records), store.collection(named: SyncCollections.scopes))
    let ledger = { (scope: String) in
      Ledger(
        scope: scope, records: records, scopes: states, conflicts: conflicts, rejected: rejected, deletions: deletions, clock: clock)
    }
    (ledgers, common) = (Set(scopes).sorted().map(ledger), ledger(""))
    alarms = scopes.reduce(into: [:]) { $0[$1] = ScopeAlarm() }
    dirty = DirtyEntries(store, records: records)
    counts = StatusCounts(dirty: dirty, conflicts: conflicts, rejected: rejected, scopes: Set(scopes))
    let snapshot = store.stored
    let synced = store.recordTriggers.filter { $0.value is any SyncedCollection }.map(\.key)
    for ledger in ledgers {
      let state = try ledger.state(in: snapshot)
      inFlight[ledger.scope] = state?.flightCount
      let added = synced.filter { state?.collections.contains($0) != true }
      if added.contains(where: { snapshot.count(in: store.collection(named: $0)) > 0 }) { isNoted = false }
    }
    followEdits()
    refreshStatus()
  }

  /// Prepares a store, and begins to sync it with a server by itself.
  ///
  /// - Parameters:
  ///   - store: The store; repositories of it are synced if their schema says so. Open them before: what is to be merged in a collection
  ///     that is not open waits for that, since its policy is not known, and an edit wins over a deletion there.
  ///   - server: The address of a `larder-server`.
  ///   - scopes: The scopes that the device reads and writes.
  ///   - clock: The clock of the device, which may be wrong.
  ///   - credentials: Returns the bearer token; it is called with the first request, and again when the server does not take the token.
  /// - Throws: as ``init(_:transport:scopes:clock:pageSize:)``.
  public init(
    _ store: Store, server: URL, scopes: [String], clock: any WallClock = SystemClock(),
    credentials: @escaping @Sendable () async throws -> String?
  ) async throws(RepositoryError) {
    try await self.init(store, transport: HTTPTransport(server, credentials: credentials), scopes: scopes, clock: clock)
    start()
  }

  deinit {
    for task in tasks { task.cancel() }
    for task in [credentialWatch, follower] { task?.cancel() }
    board.finish()
  }

  /// Sends and takes until the server has what this device has and the device what the server has.
  ///
  /// One exchange of a scope runs at a time; a call that finds one waits for it, and then runs its own. One request asks which of several
  /// scopes have news. Of the others four are exchanged at a time, and one that fails keeps none of the others.
  /// - Throws: ``SyncProblem`` where the server cannot be reached or refuses; a `RepositoryError` of the store; what the credentials throw.
  ///   What was taken until then is kept, and the next call goes on from there. Of several failures, the first.
  public func exchange() async throws { try await exchange(scopesAtOnce: 4) }

  /// Exchanges as ``exchange()`` does, with a number of scopes beside each other.
  ///
  /// A simulation takes 1, since equal seeds must give equal runs. A server makes four pages for one identity at a time.
  @_spi(Simulation) public func exchange(scopesAtOnce: Int) async throws {
    let signOuts = signOuts
    // A call by hand asks for rights at once, however short ago the engine has asked.
    rightsAsked = [:]
    let quiet = await quietScopes()
    guard signOuts == self.signOuts else { throw CancellationError() }
    for scope in quiet { noteQuiet(scope) }
    let due = ledgers.filter { !quiet.contains($0.scope) }
    let failures = await withTaskGroup(of: (Int, (any Error)?).self) { group in
      var failures: [Int: any Error] = [:]
      for (number, ledger) in due.enumerated() {
        if number >= scopesAtOnce, let (index, failure) = await group.next() { failures[index] = failure }
        group.addTask {
          do {
            try await self.runOnce(ledger, before: signOuts)
            return (number, nil)
          } catch { return (number, error) }
        }
      }
      for await (index, failure) in group { failures[index] = failure }
      return failures
    }
    refreshStatus()
    if let first = failures.min(by: { $0.key < $1.key })?.value { throw first }
  }

  /// The number of records with edits that the server has not taken, those that it has refused included.
  public var pending: Int {
    get throws { dirty.countWithRejected }
  }

  /// Runs one exchange of a scope once none is under way, and tells how it went.
  ///
  /// - Parameter before: The number of sign-outs after which it does not begin any more; the present one unless given.
  func runOnce(_ ledger: Ledger, before signOuts: Int? = nil) async throws {
    let signOuts = signOuts ?? self.signOuts
    while let task = running[ledger.scope] { _ = await task.result }
    guard signOuts == self.signOuts else { throw CancellationError() }
    try Task.checkCancellation()
    let task = Task {
      // Before it has ended: whoever waits for that may go on before this call does.
      defer { running[ledger.scope] = nil }
      try await self.exchange(ledger)
    }
    running[ledger.scope] = task
    refreshStatus()
    let result = await withTaskCancellationHandler {
      await task.result
    } onCancel: {
      task.cancel()
    }
    switch result {
    case .success:
      failing.remove(ledger.scope)
      noteSuccess()
    case .failure(let error):
      // A write of the store that waited when the engine was stopped has an error of its own for that.
      if RepositoryError.Code.cancelled ~= error || error is CancellationError {
        refreshStatus()
        throw CancellationError()
      }
      failing.insert(ledger.scope)
      let record = onlyRecordInFlight(of: ledger)
      board.update { ($0.lastError, $0.lastErrorScope, $0.lastErrorRecord) = (error, ledger.scope, record) }
      await watchCredentials()
    }
    refreshStatus()
    try result.get()
  }

  /// Notes that an exchange has succeeded, and forgets the last failure where no scope fails.
  func noteSuccess() {
    credentialInterval = CredentialWatch.shortest
    board.update { status in
      status.lastExchange = clock.now
      if failing.isEmpty { status.forgetError() }
    }
  }

  /// Returns the record of a push that has only one and was not taken.
  private func onlyRecordInFlight(of ledger: Ledger) -> SyncPendingRecord? {
    do throws(RepositoryError) {
      guard let flight = try ledger.state(in: store.stored)?.flight, flight.groups.count == 1, flight.groups[0].count == 1 else {
        return nil
      }
      let record = flight.groups[0][0]
      return SyncPendingRecord(collection: record.collection, recordID: record.id, scope: ledger.scope, isRefused: false)
    } catch { return nil }
  }
}
