internal import Dispatch
internal import Foundation
internal import Synchronization

/// Checkpoints: folding the journal into the main file, beside commits.
extension StoreCore {
  /// Folds the journal into the main file, beside commits where the backend can.
  ///
  /// One checkpoint runs at a time: this waits for the one that runs, and then makes its own.
  func checkpoint() async throws(RepositoryError) {
    await checkpointTurn.acquire()
    defer {
      checkpointTurn.release()
      // The commits that came meanwhile are not folded yet.
      scheduleIdleCheckpoint()
    }
    var (commit, work) = try await maintain { [self] backend throws(RepositoryError) in (state.commit, try backend.beginCheckpoint()) }
    while let part = work {
      await DispatchQueue(label: "larder.checkpoint", qos: .userInitiated).run { part() }
      work = try await maintain { backend throws(RepositoryError) in try backend.continueCheckpoint() }
    }
    checkpoints.withLock { $0.noteFolded(commit) }
  }

  /// Whether a checkpoint runs, beside commits or between two.
  var isCheckpointRunning: Bool { checkpointTurn.freeCount == 0 }

  /// Begins a checkpoint if the backend wants one.
  ///
  /// On the executor only.
  func checkpointBySize() {
    guard options.checkpoint.bySize, backend.wantsCheckpoint else { return }
    let commit = state.commit
    guard commit >= checkpoints.withLock({ $0.retryFrom }) else { return }
    automaticCheckpoint(commit)
  }

  /// Begins a checkpoint that no caller waits for: its failure must not fail a write, so it is kept for `verify`, and tried again later.
  private func automaticCheckpoint(_ commit: UInt64) {
    guard state.isOpen, checkpointTurn.tryAcquire() else { return }
    checkpointStep(commit) { backend throws(RepositoryError) in try backend.beginCheckpoint() }
  }

  /// Runs a short part of a checkpoint between two commits, and has the long part that follows run beside commits.
  private func checkpointStep(
    _ commit: UInt64, _ step: (any StorageBackend) throws(RepositoryError) -> (@Sendable () -> Void)?
  ) {
    do throws(RepositoryError) {
      guard let work = try step(backend) else {
        checkpoints.withLock { $0.noteFolded(commit) }
        return checkpointTurn.release()
      }
      DispatchQueue(label: "larder.checkpoint", qos: .utility).async { [weak self] in
        work()
        self?.executor.queue.async { [weak self] in self?.continueCheckpoint(commit) }
      }
    } catch {
      // Given up because the store was suspended: no failure.
      if error.code == .suspended { return checkpointTurn.release() }
      notePoison(error)
      checkpoints.withLock { state in
        state.failure = error
        state.failureCount += 1
        state.retryFrom = commit + 1_000
      }
      checkpointTurn.release()
    }
  }

  /// Goes on with an automatic checkpoint whose long part has ended.
  ///
  /// On the executor only.
  private func continueCheckpoint(_ commit: UInt64) {
    guard state.isOpen else { return checkpointTurn.release() }
    checkpointStep(commit) { backend throws(RepositoryError) in try backend.continueCheckpoint() }
    scheduleIdleCheckpoint()
  }

  /// Whether the idle timer runs: for tests.
  var isIdleTimerSet: Bool { checkpoints.withLock { $0.isIdleTimerSet } }

  /// Sets the one timer that folds the journal when writing has paused.
  ///
  /// After a failure it waits longer and tries again, also when no more writes come.
  func scheduleIdleCheckpoint() {
    guard let idle = options.checkpoint.idle, options.access != .readOnly else { return }
    let published = self.state
    guard published.isOpen, !isCheckpointRunning else { return }
    let pause: Double? = checkpoints.withLock { state in
      guard !state.isIdleTimerSet, max(state.folded, state.postponed) < published.commit else { return nil }
      state.isIdleTimerSet = true
      return state.pause(idle)
    }
    guard let pause else { return }
    executor.queue.asyncAfter(deadline: .now() + pause) { [weak self] in self?.idleTimerFired(idle) }
  }

  /// Begins a checkpoint if writing has paused and one is worthwhile, and sets the timer again if it is needed.
  ///
  /// On the executor only.
  func idleTimerFired(_ idle: Duration) {
    let lastWrite = checkpoints.withLock { state in
      state.isIdleTimerSet = false
      return state.lastWrite
    }
    // A store that is resumed sets the timer again.
    guard state.isOpen else { return }
    if ContinuousClock.now - lastWrite >= idle, !isCheckpointRunning {
      if backend.isCheckpointWorthwhile {
        automaticCheckpoint(state.commit)
      } else {
        // Asked again at the pause after the next commit, and on close, not every few seconds: apart from the age of the oldest change,
        // what it depends on changes with commits alone.
        checkpoints.withLock { [commit = state.commit] in $0.postponed = commit }
      }
    }
    scheduleIdleCheckpoint()
  }
}
