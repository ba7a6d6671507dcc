internal import Dispatch
public import Foundation
public import Larder
internal import Synchronization

/// A backend around another one that can stop, fail, count and record its calls: for tests of what an app does then.
///
/// ```swift
/// let disk = FaultInjectingBackend(InMemoryBackend())
/// let spots = try await LocalRepository<Spot>(backend: disk)
/// disk.hold(.commit)                              // the disk is busy from now on
/// async let first = spots.save(spot)
/// await disk.waitUntilHeld(.commit)
/// disk.fail(.commit, with: RepositoryError(.full))
/// disk.release(.commit)
/// ```
///
/// A held call blocks the store's executor, as a slow disk would, and no thread of the cooperative pool. Release what is held before the
/// test ends.
public final class FaultInjectingBackend: StorageBackend {
  /// A call that can be held, failed and counted.
  public enum Operation: Hashable, Sendable, CaseIterable {
    case open, recover, commit, flush, checkpoint, verify, backup, close
  }

  /// Whether the inner backend has done its part when a call fails.
  public enum Moment: Hashable, Sendable {
    /// Nothing was done.
    case before
    /// Everything was done, and the caller is told otherwise, as after a failed sync.
    case after
  }

  private struct Fault: Sendable {
    let call: Int
    let moment: Moment
    let error: RepositoryError
  }

  private struct State: Sendable {
    var calls: [Operation: Int] = [:]
    /// The calls of which is settled whether they fail: those that are stopped are not among them.
    var settled: [Operation: Int] = [:]
    var faults: [Operation: [Fault]] = [:]
    var gates: [Operation: Gate] = [:]
    var batches: [WriteBatch] = []
    /// The fault that a batch of deletions has met, so that its second attempt meets it too.
    var refusal: RepositoryError?
    var wantsCheckpoint: Bool?
  }

  private struct Gate: Sendable {
    var isHolding = false
    /// The call that is stopped, if there is one.
    var stopped: DispatchSemaphore?
    var watchers: [CheckedContinuation<Void, Never>] = []
  }

  private let inner: any StorageBackend
  private let state = Mutex(State())

  /// Wraps a backend; until told otherwise every call goes through.
  public init(_ inner: any StorageBackend) { self.inner = inner }

  // MARK: Faults

  /// Makes a call fail: the one that is stopped at the gate, or a later one.
  ///
  /// - Parameters:
  ///   - operation: The kind of call; `verify` cannot fail and is not affected.
  ///   - call: Which one counted from now on: 1, unless given, is the stopped one if there is one, else the next.
  ///   - error: What it throws.
  ///   - moment: Whether before or after the inner backend has done its part; before, unless given.
  public func fail(_ operation: Operation, call: Int = 1, with error: RepositoryError, _ moment: Moment = .before) {
    state.withLock { state in
      let fault = Fault(call: state.settled[operation, default: 0] + call, moment: moment, error: error)
      state.faults[operation, default: []].append(fault)
    }
  }

  // MARK: Gates

  /// Stops every call of a kind from now on, before it reaches the inner backend, until it is let go.
  public func hold(_ operation: Operation) {
    state.withLock { $0.gates[operation, default: Gate()].isHolding = true }
  }

  /// Waits until a call of this kind is stopped; returns at once if one is.
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

  /// Lets the stopped call go, if there is one, and stops no more of its kind.
  public func release(_ operation: Operation) { letGo(operation, holdsNext: false) }

  /// Lets the stopped call go, if there is one, and stops the next of its kind.
  public func step(_ operation: Operation) { letGo(operation, holdsNext: true) }

  private func letGo(_ operation: Operation, holdsNext: Bool) {
    let stopped: DispatchSemaphore? = state.withLock { state in
      state.gates[operation, default: Gate()].isHolding = holdsNext
      defer { state.gates[operation]?.stopped = nil }
      return state.gates[operation]?.stopped
    }
    stopped?.signal()
  }

  // MARK: What happened

  /// Returns how often a call was begun, failed and stopped ones included.
  public func calls(_ operation: Operation) -> Int { state.withLock { $0.calls[operation, default: 0] } }

  /// The batches that the inner backend has committed, in their order; those that then failed ``Moment/after`` included.
  public var batches: [WriteBatch] { state.withLock { $0.batches } }

  /// Says that a checkpoint would pay, or that it would not; `nil` leaves it to the inner backend.
  public func setWantsCheckpoint(_ wants: Bool?) { state.withLock { $0.wantsCheckpoint = wants } }

  // MARK: StorageBackend

  /// The name of the inner backend.
  public var name: String { inner.name }

  /// Opens the inner backend, once the gate and the faults let it.
  public func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    let failure = try begin(.open)
    let report = try inner.open(options, visit)
    if let failure { throw failure }
    return report
  }

  /// Recovers the inner backend, once the gate and the faults let it.
  public func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport {
    let failure = try begin(.recover)
    let recovered = try inner.recover(report)
    if let failure { throw failure }
    return recovered
  }

  /// Commits to the inner backend and records the batch, once the gate and the faults let it.
  public func commit(_ batch: WriteBatch) throws(RepositoryError) {
    state.withLock { $0.refusal = nil }
    try commit(batch, keepsRefusal: batch.records.allSatisfy { $0.value == nil }) { batch throws(RepositoryError) in
      try inner.commit(batch)
    }
  }

  /// Commits deletions on a full disk.
  ///
  /// The second attempt at a batch that a fault has failed is a part of the same commit: it fails likewise, and is not counted.
  public func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError) {
    if let refusal = takeRefusal() { throw refusal }
    try commit(batch, keepsRefusal: false) { batch throws(RepositoryError) in try inner.commitOnFullDisk(batch) }
  }

  private func takeRefusal() -> RepositoryError? {
    state.withLock { state in
      defer { state.refusal = nil }
      return state.refusal
    }
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

  /// Begins a commit of the inner backend; not counted, stopped or failed.
  public func beginCommit(after revision: Revision, _ durability: Durability) throws(RepositoryError) -> ForeignCommits? {
    try inner.beginCommit(after: revision, durability)
  }

  /// Gives up a commit of the inner backend.
  ///
  /// A fault that stops `commit` before the inner backend calls this too, as a backend that fails does.
  public func cancelCommit() { inner.cancelCommit() }

  /// Asks the inner backend what others have committed; not counted, stopped or failed.
  public func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    try inner.foreignCommits(after: revision)
  }

  /// What the inner backend says.
  public var hasOtherWriters: Bool { inner.hasOtherWriters }

  /// Flushes the inner backend, once the gate and the faults let it.
  public func flush() throws(RepositoryError) {
    let failure = try begin(.flush)
    try inner.flush()
    if let failure { throw failure }
  }

  /// What ``setWantsCheckpoint(_:)`` said, else what the inner backend says.
  public var wantsCheckpoint: Bool { state.withLock { $0.wantsCheckpoint } ?? inner.wantsCheckpoint }

  /// What the inner backend says.
  public var isCheckpointWorthwhile: Bool { inner.isCheckpointWorthwhile }

  /// Checkpoints the inner backend, once the gate and the faults let it.
  public func checkpoint() throws(RepositoryError) {
    let failure = try begin(.checkpoint)
    try inner.checkpoint()
    if let failure { throw failure }
  }

  /// Verifies the inner backend, once the gate lets it.
  public func verify() -> VerifyReport {
    pass(.verify)
    return inner.verify()
  }

  /// Backs up the inner backend, once the gate and the faults let it.
  public func backup(to url: URL) throws(RepositoryError) {
    let failure = try begin(.backup)
    try inner.backup(to: url)
    if let failure { throw failure }
  }

  /// Reads a copy of the inner backend; not counted, stopped or failed.
  public func readCopy(at url: URL, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    try inner.readCopy(at: url, visit)
  }

  /// Closes the inner backend, once the gate and the faults let it.
  public func close() throws(RepositoryError) {
    let failure = try begin(.close)
    try inner.close()
    if let failure { throw failure }
  }

  /// Gives the inner backend up as it is; neither held, failed nor counted.
  public func abandon() { inner.abandon() }

  /// Counts a call, stops it at the gate, and fails it when its time has come.
  /// - Returns: The error to throw when the inner backend has done its part.
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

  /// Counts a call and stops it at the gate.
  ///
  /// Faults are looked up afterwards, so that they can be set while it is stopped.
  private func pass(_ operation: Operation) {
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
