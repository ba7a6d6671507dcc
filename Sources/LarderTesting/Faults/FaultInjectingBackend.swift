// Faults/ makes a backend slow, full or broken at a test's word. Invariant: nothing is done that the test did not ask for. Called by tests.

internal import Dispatch
public import Larder
internal import Synchronization

/// A backend around another one that holds, fails, counts and records its calls, for tests of an app on a slow, full or broken disk.
///
/// A disk that is busy, and then full:
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
/// A fault ``Moment/before`` the inner backend has done its part leaves no trace there; one ``Moment/after`` it is like a failed sync: the
/// caller is told of a failure, and the batch may be there after reopening.
///
/// A held call blocks the store's executor, as a slow disk would, and no thread of the cooperative pool. Release what is held before the
/// test ends.
///
/// Cost: one lock a call, and a copy of every committed batch for as long as the backend lives.
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
public final class FaultInjectingBackend: StorageBackend {
  /// A call that can be held, failed and counted.
  public enum Operation: Hashable, Sendable, CaseIterable {
    case open, recover, commit, flush, checkpoint, verify, backup, close
  }

  /// The moment of a fault: before or after the inner backend has done its part.
  public enum Moment: Hashable, Sendable {
    /// The call fails and the inner backend is not asked.
    case before
    /// The inner backend has done everything, and the call fails all the same, as after a failed sync.
    case after
  }

  private struct Fault: Sendable {
    let call: Int
    let moment: Moment
    let error: RepositoryError
  }

  private struct State: Sendable {
    var calls: [Operation: Int] = [:]
    /// The calls that have passed the gate.
    var settled: [Operation: Int] = [:]
    var faults: [Operation: [Fault]] = [:]
    var gates: [Operation: Gate] = [:]
    var batches: [WriteBatch] = []
    /// The `.full` that a batch of deletions has met, so that its second attempt meets it too.
    var refusal: RepositoryError?
    var wantsCheckpoint: Bool?
  }

  private struct Gate: Sendable {
    var isHolding = false
    /// The call that is held, if there is one.
    var stopped: DispatchSemaphore?
    var watchers: [CheckedContinuation<Void, Never>] = []
  }

  let inner: any StorageBackend
  private let state = Mutex(State())

  /// Wraps a backend; every call goes through until a method of this type says otherwise.
  public init(_ inner: any StorageBackend) { self.inner = inner }

  // MARK: Faults

  /// Makes one call fail: the one that is held, or a later one.
  ///
  /// - Parameters:
  ///   - operation: The kind of call; `verify` cannot fail and is not affected.
  ///   - call: The number of the call from now on: 1, the default, is the held call if there is one, else the next.
  ///   - error: The error that it throws.
  ///   - moment: The moment of the fault: before the inner backend is asked, unless given.
  public func fail(_ operation: Operation, call: Int = 1, with error: RepositoryError, _ moment: Moment = .before) {
    state.withLock { state in
      let fault = Fault(call: state.settled[operation, default: 0] + call, moment: moment, error: error)
      state.faults[operation, default: []].append(fault)
    }
  }

  // MARK: Gates

  /// Holds every call of a kind from now on, before it reaches the inner backend, until ``release(_:)`` or ``step(_:)``.
  public func hold(_ operation: Operation) {
    state.withLock { $0.gates[operation, default: Gate()].isHolding = true }
  }

  /// Waits until a call of this kind is held; returns at once if one is.
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

  /// Lets the held call go on, if there is one, and holds no more of its kind.
  public func release(_ operation: Operation) { letGo(operation, holdsNext: false) }

  /// Lets the held call go on, if there is one, and holds the next of its kind.
  public func step(_ operation: Operation) { letGo(operation, holdsNext: true) }

  private func letGo(_ operation: Operation, holdsNext: Bool) {
    let stopped: DispatchSemaphore? = state.withLock { state in
      state.gates[operation, default: Gate()].isHolding = holdsNext
      defer { state.gates[operation]?.stopped = nil }
      return state.gates[operation]?.stopped
    }
    stopped?.signal()
  }

  // MARK: Looking at the calls

  /// Returns the number of calls of a kind, failed and held ones included.
  public func calls(_ operation: Operation) -> Int { state.withLock { $0.calls[operation, default: 0] } }

  /// The batches that the inner backend has committed, in order; those that then failed ``Moment/after`` included.
  public var batches: [WriteBatch] { state.withLock { $0.batches } }

  // MARK: Checkpoints

  /// Sets the answer of ``wantsCheckpoint``; `nil` leaves it to the inner backend.
  public func setWantsCheckpoint(_ wants: Bool?) { state.withLock { $0.wantsCheckpoint = wants } }

  /// Whether a checkpoint would pay: as ``setWantsCheckpoint(_:)`` has set it, else as the inner backend says.
  public var wantsCheckpoint: Bool { state.withLock { $0.wantsCheckpoint } ?? inner.wantsCheckpoint }

  // MARK: Commits

  /// Commits to the inner backend and records the batch, once the gate and the faults let it.
  public func commit(_ batch: WriteBatch) throws(RepositoryError) {
    state.withLock { $0.refusal = nil }
    try commit(batch, keepsRefusal: batch.records.allSatisfy { $0.value == nil }) { batch throws(RepositoryError) in
      try inner.commit(batch)
    }
  }

  /// Commits deletions on a full disk.
  ///
  /// A second attempt at a batch that a fault has failed belongs to the same commit: it fails likewise, and is not counted.
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
      inner.cancelCommit()
      throw error
    }
    try body(batch)
    state.withLock { $0.batches.append(batch) }
    if let failure { throw failure }
  }

  private func takeRefusal() -> RepositoryError? {
    state.withLock { state in
      defer { state.refusal = nil }
      return state.refusal
    }
  }

  // MARK: Calls

  /// Makes a call of the inner backend, once the gate lets it, and throws the fault that is due before or after.
  func call<Result>(
    _ operation: Operation, _ body: () throws(RepositoryError) -> Result
  ) throws(RepositoryError) -> Result {
    let failure = try begin(operation)
    let result = try body()
    if let failure { throw failure }
    return result
  }

  /// Counts a call, holds it at the gate, and throws the fault that is due before it.
  /// - Returns: The fault that is due after the inner backend has done its part.
  private func begin(_ operation: Operation) throws(RepositoryError) -> RepositoryError? {
    pass(operation)
    let fault: Fault? = state.withLock { state in
      let call = state.settled[operation, default: 0] + 1
      state.settled[operation] = call
      guard let index = state.faults[operation]?.firstIndex(where: { $0.call == call }) else { return nil }
      return state.faults[operation]?.remove(at: index)
    }
    if let fault, fault.moment == .before { throw fault.error }
    return fault?.error
  }

  /// Counts a call and holds it at the gate.
  ///
  /// Faults are looked up afterwards, so that they can be set while the call is held.
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
    semaphore.wait()
  }
}
