internal import Dispatch
internal import Foundation
internal import Synchronization

/// Checkpoints: folding the journal into the main file, beside commits.
extension StoreCore {
  /// Folds the journal into the main file, beside commits where the backend can.
  ///
  /// One checkpoint runs at a time: this waits for the one that runs, and then makes its own.
  func checkpoint() async throws(RepositoryError) {
    await beginCheckpoint()
    var commit: UInt64 = 0
    do throws(RepositoryError) {
      var work: (@Sendable () -> Void)?
      (commit, work) = try await maintain { [self] backend throws(RepositoryError) in (state.commit, try backend.beginCheckpoint()) }
      while let part = work {
        await withCheckedContinuation { continuation in
          DispatchQueue(label: "larder.checkpoint", qos: .userInitiated).async {
            part()
            continuation.resume()
          }
        }
        work = try await maintain { backend throws(RepositoryError) in try backend.continueCheckpoint() }
      }
    } catch {
      endCheckpoint { _ in }
      scheduleIdleCheckpoint()
      throw error
    }
    endCheckpoint { [commit] in $0.noteFolded(commit) }
    // The commits that came meanwhile are not folded yet.
    scheduleIdleCheckpoint()
  }

  /// Waits until no checkpoint runs, and notes that one does.
  private func beginCheckpoint() async {
    await withCheckedContinuation { continuation in
      let isFree = checkpoints.withLock { state in
        if state.isRunning { state.waiting.append(continuation) }
        defer { state.isRunning = true }
        return !state.isRunning
      }
      if isFree { continuation.resume() }
    }
  }

  /// Notes the end of a checkpoint, and lets the next one begin that waits.
  private func endCheckpoint(_ note: (inout CheckpointState) -> Void) {
    let next: CheckedContinuation<Void, Never>? = checkpoints.withLock { state in
      note(&state)
      guard !state.waiting.isEmpty else {
        state.isRunning = false
        return nil
      }
      return state.waiting.removeFirst()
    }
    next?.resume()
  }

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
    guard state.isOpen else { return }
    let isFree = checkpoints.withLock { state in
      defer { state.isRunning = true }
      return !state.isRunning
    }
    guard isFree else { return }
    checkpointStep(commit) { backend throws(RepositoryError) in try backend.beginCheckpoint() }
  }

  /// Runs a short part of a checkpoint between two commits, and has the long part that follows run beside commits.
  private func checkpointStep(
    _ commit: UInt64, _ step: (any StorageBackend) throws(RepositoryError) -> (@Sendable () -> Void)?
  ) {
    do throws(RepositoryError) {
      guard let work = try step(backend) else { return endCheckpoint { $0.noteFolded(commit) } }
      DispatchQueue(label: "larder.checkpoint", qos: .utility).async { [weak self] in
        work()
        self?.executor.queue.async { [weak self] in self?.continueCheckpoint(commit) }
      }
    } catch {
      notePoison(error)
      endCheckpoint {
        $0.failure = error
        $0.failureCount += 1
        $0.retryFrom = commit + 1_000
      }
    }
  }

  /// On the executor only.
  private func continueCheckpoint(_ commit: UInt64) {
    guard state.isOpen else { return endCheckpoint { _ in } }
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
    guard published.isOpen else { return }
    let pause: Double? = checkpoints.withLock { state in
      guard !state.isIdleTimerSet, !state.isRunning, max(state.folded, state.postponed) < published.commit else { return nil }
      state.isIdleTimerSet = true
      return state.pause(idle)
    }
    guard let pause else { return }
    executor.queue.asyncAfter(deadline: .now() + pause) { [weak self] in self?.idleTimerFired(idle) }
  }

  /// On the executor only.
  func idleTimerFired(_ idle: Duration) {
    let lastWrite = checkpoints.withLock { state in
      state.isIdleTimerSet = false
      return state.lastWrite
    }
    if ContinuousClock.now - lastWrite >= idle, !checkpoints.withLock({ $0.isRunning }) {
      if backend.isCheckpointWorthwhile {
        automaticCheckpoint(state.commit)
      } else {
        // Asked again when writing pauses after the next commit, not every few seconds: what it depends on changes with commits alone.
        checkpoints.withLock { [commit = state.commit] in $0.postponed = commit }
      }
    }
    scheduleIdleCheckpoint()
  }
}
