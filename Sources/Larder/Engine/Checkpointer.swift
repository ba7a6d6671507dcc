internal import Dispatch
internal import Foundation
internal import Synchronization

/// Runs the checkpoints of one store, one at a time, when a caller requests a checkpoint or an automatic checkpoint is due.
///
/// A checkpoint folds the backend's journal (in SQLite, the write-ahead log) into the main file. The short parts of a checkpoint run on the
/// store's executor, so no commit runs at the same time. The long part runs on another dispatch queue, beside commits.
final class Checkpointer: Sendable {
  private let state: Mutex<Progress>
  /// Semaphore with one permit, which a checkpoint holds while it runs.
  ///
  /// A call of ``checkpoint(_:)`` waits for the permit. An automatic checkpoint does not begin if another checkpoint holds the permit.
  private let turn = AsyncSemaphore(1)

  private struct Progress: Sendable {
    /// Newest commit that a checkpoint has folded into the main file.
    var folded: UInt64 = 0
    var isIdleTimerSet = false
    /// Newest commit when the idle timer last found `isCheckpointWorthwhile` false, or 0.
    ///
    /// No idle checkpoint is scheduled until a newer commit exists.
    var postponed: UInt64 = 0
    var lastWrite = ContinuousClock.now
    /// Error of the last automatic checkpoint, if it failed.
    var failure: RepositoryError?
    /// First commit number at which the size check may retry after a failed automatic checkpoint, or 0 without a failure.
    var retryFrom: UInt64 = 0
    /// Number of automatic checkpoints that have failed in a row.
    var failureCount = 0
    /// True if a commit has failed with `.full` and no commit has succeeded since.
    ///
    /// While the disk is full, the next batch of only deletions is passed to the backend's `commitOnFullDisk`, which frees disk space.
    var isDiskFull = false

    mutating func noteFolded(_ commit: UInt64) {
      // The number of the folded commit must never fall, or the idle timer would be set for commits that are already folded.
      folded = max(folded, commit)
      failure = nil
      failureCount = 0
      retryFrom = 0
    }
  }

  /// Creates the checkpointer of a store whose main file holds all commits up to `folded`.
  init(folded: UInt64) { state = Mutex(Progress(folded: folded)) }

  /// True while a checkpoint holds the permit.
  var isRunning: Bool { turn.freeCount == 0 }

  /// Error of the last automatic checkpoint, or `nil` if that checkpoint or a later one succeeded.
  ///
  /// `verify` reports the error, because no caller waits for an automatic checkpoint.
  var failure: RepositoryError? { state.withLock { $0.failure } }

  /// True while the idle timer runs.
  ///
  /// Only tests read `isIdleTimerSet`.
  var isIdleTimerSet: Bool { state.withLock { $0.isIdleTimerSet } }

  /// True if a commit has failed with `.full` and no commit has succeeded since.
  var isDiskFull: Bool { state.withLock { $0.isDiskFull } }

  /// Records that a commit has failed with `.full`.
  func noteFullDisk() { state.withLock { $0.isDiskFull = true } }

  /// Records that a commit has succeeded now.
  func noteWrite() {
    state.withLock { state in
      state.lastWrite = .now
      // `commitOnFullDisk` may rewrite the whole store, so after a successful commit the store calls it only for a deletion whose own
      // commit throws `.full`.
      state.isDiskFull = false
    }
  }

  /// Folds the journal into the main file, and returns when the checkpoint is complete.
  ///
  /// If another checkpoint is running, `checkpoint(_:)` waits for its end and then makes a checkpoint of its own.
  func checkpoint(_ core: StoreCore) async throws(RepositoryError) {
    await turn.acquire()
    defer {
      turn.release()
      // Commits that arrived during the checkpoint are not folded, so the idle timer must run for them.
      scheduleIdleCheckpoint(of: core)
    }
    // The commit number is read in the executor call that begins the checkpoint, because a later number could include a commit that was not
    // folded.
    var (commit, work) = try await core.maintain { backend throws(RepositoryError) in
      core.moveBase()
      return (core.state.commit, try Self.begin(with: backend, of: core))
    }
    while let part = work {
      await DispatchQueue(label: "larder.checkpoint", qos: .userInitiated).run { part() }
      work = try await core.maintain { backend throws(RepositoryError) in try Self.proceed(with: backend, of: core) }
    }
    state.withLock { $0.noteFolded(commit) }
  }

  private static func begin(
    with backend: any StorageBackend, of core: StoreCore
  ) throws(RepositoryError) -> (@Sendable () -> Void)? {
    let work = try backend.beginCheckpoint()
    if work == nil { core.moveBaseIfWorthwhile() }
    return work
  }

  /// Continues a checkpoint, and moves the base on after its last part.
  ///
  /// A base of the replaced main file would keep that file on the disk until the next commit.
  private static func proceed(
    with backend: any StorageBackend, of core: StoreCore
  ) throws(RepositoryError) -> (@Sendable () -> Void)? {
    let work = try backend.continueCheckpoint()
    if work == nil { core.moveBaseIfWorthwhile() }
    return work
  }

  /// Begins a checkpoint if the backend's `wantsCheckpoint` is true and the options allow checkpoints by size.
  ///
  /// Must run on the store's executor, which serializes all commits.
  func checkpointBySize(of core: StoreCore) {
    guard core.options.checkpoint.bySize, core.backend.wantsCheckpoint else { return }
    let commit = core.state.commit
    // Without the check of `retryFrom`, a failing checkpoint, for example on a full disk, would be repeated after every commit.
    guard commit >= state.withLock({ $0.retryFrom }) else { return }
    beginAutomatic(upTo: commit, core)
  }

  /// Begins an automatic checkpoint, which no caller waits for.
  ///
  /// A failed automatic checkpoint makes no write fail. `verify` reports the error, and a later commit or the idle timer retries the
  /// checkpoint.
  private func beginAutomatic(upTo commit: UInt64, _ core: StoreCore) {
    guard core.state.isOpen, turn.tryAcquire() else { return }
    // A base of an older commit would keep the backend from folding the commits after it.
    core.moveBase()
    run(upTo: commit, core) { backend throws(RepositoryError) in try Self.begin(with: backend, of: core) }
  }

  /// Runs one short part of a checkpoint on the executor, and starts the long part that the backend returns.
  private func run(
    upTo commit: UInt64, _ core: StoreCore, _ step: (any StorageBackend) throws(RepositoryError) -> (@Sendable () -> Void)?
  ) {
    do throws(RepositoryError) {
      guard let work = try step(core.backend) else {
        state.withLock { $0.noteFolded(commit) }
        return turn.release()
      }
      DispatchQueue(label: "larder.checkpoint", qos: .utility).async { [weak core] in
        work()
        // If the store was released during the long part, `core` is nil and the checkpoint is not finished. An unfinished checkpoint leaves
        // the files of the store valid, and the next opening reads them.
        core?.executor.queue.async { [weak core] in core.map { $0.checkpointer.continueAutomatic(upTo: commit, $0) } }
      }
    } catch {
      // The error `.suspended` means that `suspend()` has interrupted the checkpoint, so it is not recorded as a failed checkpoint.
      if error.code == .suspended { return turn.release() }
      core.notePoison(error)
      state.withLock { state in
        state.failure = error
        state.failureCount += 1
        state.retryFrom = commit + 1_000
      }
      turn.release()
    }
  }

  /// Runs the next short part of an automatic checkpoint, after the long part has ended.
  ///
  /// Must run on the store's executor, which serializes all commits.
  private func continueAutomatic(upTo commit: UInt64, _ core: StoreCore) {
    guard core.state.isOpen else { return turn.release() }
    run(upTo: commit, core) { backend throws(RepositoryError) in try Self.proceed(with: backend, of: core) }
    scheduleIdleCheckpoint(of: core)
  }

  /// Sets the idle timer, which begins a checkpoint after ``StoreOptions/Checkpoint-swift.struct/idle`` without a commit.
  ///
  /// After a failed checkpoint the idle timer is set again with a longer delay, even if no further commit comes.
  func scheduleIdleCheckpoint(of core: StoreCore) {
    guard let idle = core.options.checkpoint.idle, core.options.access != .readOnly else { return }
    let published = core.state
    guard published.isOpen, !isRunning else { return }
    let pause: Double? = state.withLock { state in
      guard !state.isIdleTimerSet, max(state.folded, state.postponed) < published.commit else { return nil }
      state.isIdleTimerSet = true
      return Self.pause(idle, afterFailures: state.failureCount)
    }
    guard let pause else { return }
    // The timer holds the store weakly, because a strong reference would keep a dropped store and its locks until the timer fires.
    core.executor.queue.asyncAfter(deadline: .now() + pause) { [weak core] in core.map { $0.checkpointer.idleTimerFired(idle, of: $0) } }
  }

  /// Returns the delay of the idle timer in seconds: the option's value, doubled for each failed checkpoint up to 64 times the value.
  static func pause(_ idle: Duration, afterFailures count: Int) -> Double {
    count == 0 ? idle.inSeconds : max(idle.inSeconds, 0.05) * Double(1 << min(count, 6))
  }

  /// Begins a checkpoint if no commit came during the idle time, and sets the idle timer again if unfolded commits remain.
  ///
  /// Must run on the store's executor, which serializes all commits.
  func idleTimerFired(_ idle: Duration, of core: StoreCore) {
    let lastWrite = state.withLock { state in
      state.isIdleTimerSet = false
      return state.lastWrite
    }
    // A suspended store holds no locks, so it makes no checkpoint. After `resume()` the drain of the write queue sets the timer again.
    guard core.state.isOpen else { return }
    if ContinuousClock.now - lastWrite >= idle, !isRunning {
      if core.backend.isCheckpointWorthwhile {
        beginAutomatic(upTo: core.state.commit, core)
      } else {
        // `isCheckpointWorthwhile` becomes true only with further commits, or with the age of the oldest change. The next commit sets the
        // idle timer again. If `postponed` were not set, the idle timer would wake the process every few seconds for nothing.
        state.withLock { [commit = core.state.commit] in $0.postponed = commit }
      }
    }
    scheduleIdleCheckpoint(of: core)
  }
}
