internal import Dispatch
internal import Foundation
internal import Synchronization

/// Checkpoints of one store: when one is due, how far the journal is folded, and the one permit to run it.
///
/// A checkpoint folds the journal or log into the main file or database. Its short parts run between two commits, on the store's executor.
/// Its long part runs beside commits, on a queue of its own.
final class Checkpointer: Sendable {
  private let state: Mutex<Progress>
  /// The permit to run a checkpoint.
  ///
  /// A caller of ``checkpoint(_:)`` waits for it. An automatic checkpoint does not begin while another one has it.
  private let turn = AsyncSemaphore(1)

  private struct Progress: Sendable {
    /// Newest commit that the main file holds.
    var folded: UInt64 = 0
    var isIdleTimerSet = false
    /// Newest commit at which the backend found folding not worth the bytes that it rewrites.
    var postponed: UInt64 = 0
    var lastWrite = ContinuousClock.now
    /// Error of the last automatic checkpoint, if it failed.
    var failure: RepositoryError?
    /// Commit from which a failed automatic checkpoint is tried again.
    var retryFrom: UInt64 = 0
    /// Number of automatic checkpoints that have failed in a row.
    var failureCount = 0
    /// True if the last commit found the disk full.
    ///
    /// The next deletion then makes room for itself before it is written.
    var isDiskFull = false

    mutating func noteFolded(_ commit: UInt64) {
      // Checkpoints end in any order where the backend runs their long part beside commits.
      folded = max(folded, commit)
      failure = nil
      failureCount = 0
      retryFrom = 0
    }
  }

  /// Creates the checkpointer of a store whose main file holds all commits up to `folded`.
  init(folded: UInt64) { state = Mutex(Progress(folded: folded)) }

  /// True while a checkpoint runs, beside commits or between two.
  var isRunning: Bool { turn.freeCount == 0 }

  /// Error of the last automatic checkpoint, for `verify`: no caller has received it.
  var failure: RepositoryError? { state.withLock { $0.failure } }

  /// True while the idle timer runs.
  ///
  /// Tests read it.
  var isIdleTimerSet: Bool { state.withLock { $0.isIdleTimerSet } }

  /// True if the last commit found the disk full.
  var isDiskFull: Bool { state.withLock { $0.isDiskFull } }

  /// Records that a commit found the disk full.
  func noteFullDisk() { state.withLock { $0.isDiskFull = true } }

  /// Records that a commit was written now.
  func noteWrite() {
    state.withLock { state in
      state.lastWrite = .now
      // Making the files smaller rewrites them, so the next deletion does that only if it meets a full disk itself.
      state.isDiskFull = false
    }
  }

  /// Folds the journal into the main file, beside commits where the backend can.
  ///
  /// One checkpoint runs at a time. This call waits for the one that runs, and then makes its own.
  func checkpoint(_ core: StoreCore) async throws(RepositoryError) {
    await turn.acquire()
    defer {
      turn.release()
      // Commits that arrived during the checkpoint are not folded yet.
      scheduleIdleCheckpoint(of: core)
    }
    // The number is read in the turn that begins the checkpoint. Read later, it could count commits that are not folded.
    var (commit, work) = try await core.maintain { backend throws(RepositoryError) in (core.state.commit, try backend.beginCheckpoint()) }
    while let part = work {
      await DispatchQueue(label: "larder.checkpoint", qos: .userInitiated).run { part() }
      work = try await core.maintain { backend throws(RepositoryError) in try backend.continueCheckpoint() }
    }
    state.withLock { $0.noteFolded(commit) }
  }

  /// Begins a checkpoint if the backend wants one because of the journal's size.
  ///
  /// Runs on the executor only.
  func checkpointBySize(of core: StoreCore) {
    guard core.options.checkpoint.bySize, core.backend.wantsCheckpoint else { return }
    let commit = core.state.commit
    // A failed checkpoint would otherwise be tried again at every commit.
    guard commit >= state.withLock({ $0.retryFrom }) else { return }
    beginAutomatic(upTo: commit, core)
  }

  /// Begins a checkpoint that no caller waits for.
  ///
  /// Its failure must not fail a write. It is kept for `verify`, and the checkpoint is tried again later.
  private func beginAutomatic(upTo commit: UInt64, _ core: StoreCore) {
    guard core.state.isOpen, turn.tryAcquire() else { return }
    run(upTo: commit, core) { backend throws(RepositoryError) in try backend.beginCheckpoint() }
  }

  /// Runs a short part of a checkpoint between two commits, and starts the long part that follows it beside commits.
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
        // The store may have been dropped meanwhile. The files are then whole, and the next opening goes on.
        core?.executor.queue.async { [weak core] in core.map { $0.checkpointer.continueAutomatic(upTo: commit, $0) } }
      }
    } catch {
      // The store was suspended, which is no failure of the checkpoint.
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

  /// Runs the next short part of an automatic checkpoint, after its long part has ended.
  ///
  /// Runs on the executor only.
  private func continueAutomatic(upTo commit: UInt64, _ core: StoreCore) {
    guard core.state.isOpen else { return turn.release() }
    run(upTo: commit, core) { backend throws(RepositoryError) in try backend.continueCheckpoint() }
    scheduleIdleCheckpoint(of: core)
  }

  /// Sets the one timer that folds the journal when no commit has come for ``StoreOptions/Checkpoint-swift.struct/idle``.
  ///
  /// After a failure the timer waits longer and tries again, also if no more commits come.
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
    // Weak, because a dropped store must not stay open until the timer fires.
    core.executor.queue.asyncAfter(deadline: .now() + pause) { [weak core] in core.map { $0.checkpointer.idleTimerFired(idle, of: $0) } }
  }

  /// Returns the delay of the idle timer in seconds, which doubles after each failure, up to 64 times the option's.
  static func pause(_ idle: Duration, afterFailures count: Int) -> Double {
    count == 0 ? idle.inSeconds : max(idle.inSeconds, 0.05) * Double(1 << min(count, 6))
  }

  /// Begins a checkpoint if commits have paused and one is worthwhile, and sets the timer again if commits are left to fold.
  ///
  /// Runs on the executor only.
  func idleTimerFired(_ idle: Duration, of core: StoreCore) {
    let lastWrite = state.withLock { state in
      state.isIdleTimerSet = false
      return state.lastWrite
    }
    // A store that is suspended has no timer. `resume()` sets it again.
    guard core.state.isOpen else { return }
    if ContinuousClock.now - lastWrite >= idle, !isRunning {
      if core.backend.isCheckpointWorthwhile {
        beginAutomatic(upTo: core.state.commit, core)
      } else {
        // The backend's answer changes only with commits, apart from the age of the oldest change. So the next commit sets the timer
        // again, which saves a wake-up every few seconds.
        state.withLock { [commit = core.state.commit] in $0.postponed = commit }
      }
    }
    scheduleIdleCheckpoint(of: core)
  }
}
