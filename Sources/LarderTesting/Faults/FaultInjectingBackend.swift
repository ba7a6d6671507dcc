// Faults/ holds a backend that a test makes slow, full or broken.
// Invariant: a call fails or waits only if the test has planned the failure or the wait.
// Tests call the types of Faults/.

internal import Dispatch
public import Foundation
public import Larder
internal import Synchronization

/// Wrapper around another backend, the inner backend, that holds, fails, counts and records calls.
///
/// Use this backend to test your app on a slow, full or broken disk.
///
/// This code simulates a disk that is busy, and then full:
///
/// ```swift
/// let disk = FaultInjectingBackend(InMemoryBackend())
/// let spots = try await LocalRepository<Spot>(backend: disk)
/// disk.hold(.commit)                                    // the disk is busy from now on
/// async let saving = spots.save(spot)
/// await disk.waitUntilHeld(.commit)                     // the save has reached the disk
/// disk.fail(.commit, with: RepositoryError(.full))
/// disk.release(.commit)
/// do { try await saving } catch RepositoryError.Code.full { print("nothing of the spot was stored") }
/// ```
///
/// A fault ``Moment/before`` the inner call leaves no trace in the inner backend. A fault ``Moment/after`` the inner call is like a failed
/// sync: the caller gets an error, and the store may hold the batch after reopening.
///
/// A held call blocks the store's executor, as a slow disk would, and no thread of the cooperative pool. Release every held call before the
/// test ends.
///
/// Cost: a few uses of a lock for each call. The backend holds a copy of every committed batch for as long as it lives.
///
/// ## Topics
///
/// ### Making a backend
/// - ``init(_:)``
///
/// ### Failing calls
/// - ``fail(_:call:with:_:)``
/// - ``Operation``
/// - ``Moment``
///
/// ### Holding calls
/// - ``hold(_:)``
/// - ``waitUntilHeld(_:)``
/// - ``release(_:)``
/// - ``step(_:)``
///
/// ### Looking at the calls
/// - ``calls(_:)``
/// - ``batches``
///
/// ### Deciding on checkpoints
/// - ``setWantsCheckpoint(_:)``
public final class FaultInjectingBackend: PagingBackend {
  /// Kind of call that a test can hold, fail and count.
  public enum Operation: Hashable, Sendable, CaseIterable {
    case open, recover, commit, flush, checkpoint, verify, backup, close
    /// A read of a `StoredBase`, in a store whose records stay in the storage.
    case read
  }

  /// Moment of a fault: before or after the call of the inner backend.
  public enum Moment: Hashable, Sendable {
    /// The call fails without a call of the inner backend.
    case before
    /// The call of the inner backend succeeds, and then this call fails, as after a failed sync.
    case after
  }

  private struct Fault: Sendable {
    let call: Int
    let moment: Moment
    let error: RepositoryError
  }

  private struct State: Sendable {
    var calls: [Operation: Int] = [:]
    /// Number of calls of each kind that were not held by ``hold(_:)`` or were released since.
    var settled: [Operation: Int] = [:]
    var faults: [Operation: [Fault]] = [:]
    var gates: [Operation: Gate] = [:]
    var batches: [WriteBatch] = []
    /// Planned error `.full` with which a batch of deletions has failed.
    ///
    /// The store's second attempt by `commitOnFullDisk` fails with the same error.
    var refusal: RepositoryError?
    var wantsCheckpoint: Bool?
  }

  /// Point at which calls of one kind are held before they reach the inner backend.
  private struct Gate: Sendable {
    var isHolding = false
    /// Semaphore on which the held call waits, or `nil` if no call is held.
    var stopped: DispatchSemaphore?
    var watchers: [CheckedContinuation<Void, Never>] = []
  }

  let inner: any StorageBackend
  private let state = Mutex(State())

  /// Wraps another backend as the inner backend.
  ///
  /// Every call reaches the inner backend until you hold or fail a call.
  public init(_ inner: any StorageBackend) { self.inner = inner }

  // MARK: Faults

  /// Plans the failure of one call: the held call, or a later one.
  ///
  /// - Parameters:
  ///   - operation: The kind of call. `verify` cannot fail and is not affected.
  ///   - call: The number of the call, counted from now on. The default 1 is the held call if there is one, otherwise the next call.
  ///   - error: The error that the call throws.
  ///   - moment: Whether the call fails before or after the call of the inner backend: before by default.
  public func fail(_ operation: Operation, call: Int = 1, with error: RepositoryError, _ moment: Moment = .before) {
    state.withLock { state in
      // The number of the call is counted from the calls that have passed the gate, the point at which calls are held. A held call has not
      // passed the gate yet, so it is number 1.
      let fault = Fault(call: state.settled[operation, default: 0] + call, moment: moment, error: error)
      state.faults[operation, default: []].append(fault)
    }
  }

  // MARK: Gates

  /// Holds every later call of a kind before it reaches the inner backend, until ``release(_:)`` or ``step(_:)``.
  public func hold(_ operation: Operation) {
    state.withLock { $0.gates[operation, default: Gate()].isHolding = true }
  }

  /// Waits until a call of this kind is held, or returns at once if one is held already.
  public func waitUntilHeld(_ operation: Operation) async {
    await withCheckedContinuation { continuation in
      let isStopped = state.withLock { state in
        if state.gates[operation]?.stopped != nil { return true }
        state.gates[operation, default: Gate()].watchers.append(continuation)
        return false
      }
      if isStopped { continuation.resume() }
    }
  }

  /// Releases the held call, if there is one, and holds no more calls of its kind.
  public func release(_ operation: Operation) { letGo(operation, holdsNext: false) }

  /// Releases the held call, if there is one, and holds the next call of its kind.
  public func step(_ operation: Operation) { letGo(operation, holdsNext: true) }

  private func letGo(_ operation: Operation, holdsNext: Bool) {
    let stopped: DispatchSemaphore? = state.withLock { state in
      state.gates[operation, default: Gate()].isHolding = holdsNext
      // The semaphore is removed under the lock that sets `isHolding`. If the semaphore stayed, the next `waitUntilHeld` would return at
      // once for the released call.
      defer { state.gates[operation]?.stopped = nil }
      return state.gates[operation]?.stopped
    }
    stopped?.signal()
  }

  // MARK: Looking at the calls

  /// Returns the number of calls of a kind, including failed and held calls.
  public func calls(_ operation: Operation) -> Int { state.withLock { $0.calls[operation, default: 0] } }

  /// Batches that the inner backend has committed, in order, including each batch whose call then failed ``Moment/after``.
  public var batches: [WriteBatch] { state.withLock { $0.batches } }

  // MARK: Checkpoints

  /// Sets the value that ``wantsCheckpoint`` returns, or `nil` to return the value of the inner backend.
  public func setWantsCheckpoint(_ wants: Bool?) { state.withLock { $0.wantsCheckpoint = wants } }

  /// True if the store should begin a checkpoint now: the value of ``setWantsCheckpoint(_:)``, or else the inner backend's value.
  public var wantsCheckpoint: Bool { state.withLock { $0.wantsCheckpoint } ?? inner.wantsCheckpoint }

  // MARK: Commits

  /// Commits a batch to the inner backend and records it, after waiting while `commit` is held, or throws a planned fault.
  public func commit(_ batch: WriteBatch) throws(RepositoryError) {
    // A new commit shows that the store makes no second attempt at the earlier batch, so the refusal of that batch is dropped.
    state.withLock { $0.refusal = nil }
    // A store makes a second attempt on a full disk only for a batch of deletions.
    try commit(batch, keepsRefusal: batch.records.allSatisfy { $0.value == nil }) { batch throws(RepositoryError) in
      try inner.commit(batch)
    }
  }

  /// Commits deletions to the inner backend on a full disk.
  ///
  /// If a planned `.full` has failed the first attempt at the batch, this second attempt fails with the same error and is not counted.
  public func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError) {
    if let refusal = takeRefusal() { throw refusal }
    try commit(batch, keepsRefusal: false) { batch throws(RepositoryError) in try inner.commitOnFullDisk(batch) }
  }

  private func commit(
    _ batch: WriteBatch, keepsRefusal: Bool, _ body: (WriteBatch) throws(RepositoryError) -> Void
  ) throws(RepositoryError) {
    let failure: RepositoryError?
    do throws(RepositoryError) {
      failure = try begin(.commit)
    } catch {
      if keepsRefusal, error.code == .full { state.withLock { $0.refusal = error } }
      // In a shared store, `beginCommit` has locked other processes out, and the inner `commit` that would let them commit again is not
      // called.
      inner.cancelCommit()
      throw error
    }
    try body(batch)
    // The batch is recorded before a fault `after` is thrown, because the inner backend has committed the batch.
    state.withLock { $0.batches.append(batch) }
    if let failure { throw failure }
  }

  /// Returns the error with which the first attempt at a batch of deletions failed, and forgets it.
  private func takeRefusal() -> RepositoryError? {
    state.withLock { state in
      defer { state.refusal = nil }
      return state.refusal
    }
  }

  // MARK: Calls

  /// Calls the inner backend after waiting while the call is held, and throws the fault that is planned before or after the call.
  func call<Result>(
    _ operation: Operation, _ body: () throws(RepositoryError) -> Result
  ) throws(RepositoryError) -> Result {
    let failure = try begin(operation)
    let result = try body()
    if let failure { throw failure }
    return result
  }

  /// Counts a call, waits while the test holds it, and throws a fault that is planned before it.
  ///
  /// - Returns: The error to throw after the call of the inner backend, or `nil` if no such fault is planned.
  private func begin(_ operation: Operation) throws(RepositoryError) -> RepositoryError? {
    pass(operation)
    let fault: Fault? = state.withLock { state in
      let call = state.settled[operation, default: 0] + 1
      state.settled[operation] = call
      // A fault is removed from the plan when its call has come, since no later call has the same number.
      guard let index = state.faults[operation]?.firstIndex(where: { $0.call == call }) else { return nil }
      return state.faults[operation]?.remove(at: index)
    }
    if let fault, fault.moment == .before { throw fault.error }
    return fault?.error
  }

  /// Counts a call, and blocks while the test holds the call.
  ///
  /// The planned faults are read after this function has returned, so that a test can plan a fault for the call that it holds.
  func pass(_ operation: Operation) {
    let semaphore = DispatchSemaphore(value: 0)
    let watchers: [CheckedContinuation<Void, Never>]? = state.withLock { state in
      state.calls[operation, default: 0] += 1
      guard state.gates[operation]?.isHolding == true else { return nil }
      state.gates[operation]?.stopped = semaphore
      defer { state.gates[operation]?.watchers = [] }
      return state.gates[operation]?.watchers
    }
    guard let watchers else { return }
    for watcher in watchers { watcher.resume() }
    // The wait for the semaphore blocks the thread, as a slow disk does. If `release` has signaled the semaphore before the wait, the wait
    // returns at once.
    semaphore.wait()
  }
}

/// The members of `StorageBackend` that are forwarded to the inner backend.
extension FaultInjectingBackend {
  /// Name of the inner backend.
  public var name: String { inner.name }

  /// Opens the inner backend, after waiting while `open` is held, or throws a planned fault.
  public func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    try call(.open) { () throws(RepositoryError) in try inner.open(options, visit) }
  }

  /// Recovers the inner backend, after waiting while `recover` is held, or throws a planned fault.
  public func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport {
    try call(.recover) { () throws(RepositoryError) in try inner.recover(report) }
  }

  /// Begins a commit of the inner backend.
  ///
  /// `beginCommit` is never counted, held or failed.
  public func beginCommit(after revision: Revision, _ durability: Durability) throws(RepositoryError) -> ForeignCommits? {
    try inner.beginCommit(after: revision, durability)
  }

  /// Cancels a commit of the inner backend.
  ///
  /// A fault before the inner backend's `commit` also cancels the commit, as a backend does whose `commit` fails.
  public func cancelCommit() { inner.cancelCommit() }

  /// Reads the foreign commits of the inner backend.
  ///
  /// `foreignCommits` is never counted, held or failed.
  public func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    try inner.foreignCommits(after: revision)
  }

  /// True if the inner backend has other writers.
  public var hasOtherWriters: Bool { inner.hasOtherWriters }

  /// Flushes the inner backend, after waiting while `flush` is held, or throws a planned fault.
  public func flush() throws(RepositoryError) {
    try call(.flush) { () throws(RepositoryError) in try inner.flush() }
  }

  /// True if a checkpoint of the inner backend is worthwhile.
  public var isCheckpointWorthwhile: Bool { inner.isCheckpointWorthwhile }

  /// Checkpoints the inner backend, after waiting while `checkpoint` is held, or throws a planned fault.
  ///
  /// `beginCheckpoint()` has the protocol's default implementation in this type, which makes the whole checkpoint with `checkpoint()`. A
  /// hold or a fault of ``Operation/checkpoint`` hits `beginCheckpoint()` as well.
  public func checkpoint() throws(RepositoryError) {
    try call(.checkpoint) { () throws(RepositoryError) in try inner.checkpoint() }
  }

  /// Verifies the inner backend, after waiting while `verify` is held.
  public func verify() -> VerifyReport {
    pass(.verify)
    return inner.verify()
  }

  /// Backs up the inner backend, after waiting while `backup` is held, or throws a planned fault.
  public func backup(to url: URL) throws(RepositoryError) {
    try call(.backup) { () throws(RepositoryError) in try inner.backup(to: url) }
  }

  /// Reads a copy of the inner backend.
  ///
  /// `readCopy` is never counted, held or failed.
  public func readCopy(at url: URL, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    try inner.readCopy(at: url, visit)
  }

  /// Reads the inner backend again.
  ///
  /// `readAll` is never counted, held or failed.
  public func readAll(_ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport { try inner.readAll(visit) }

  /// Ends a wait of the inner backend for another process.
  ///
  /// `endWaiting` is never counted, held or failed.
  public func endWaiting() { inner.endWaiting() }

  /// Suspends the inner backend.
  ///
  /// `suspend` is never counted, held or failed.
  public func suspend() throws(RepositoryError) { try inner.suspend() }

  /// Resumes the inner backend.
  ///
  /// `resume` is never counted, held or failed.
  public func resume() throws(RepositoryError) -> Bool { try inner.resume() }

  /// Closes the inner backend, after waiting while `close` is held, or throws a planned fault.
  public func close() throws(RepositoryError) {
    try call(.close) { () throws(RepositoryError) in try inner.close() }
  }

  /// Abandons the inner backend.
  ///
  /// `abandon` is never counted, held or failed.
  public func abandon() { inner.abandon() }
}
