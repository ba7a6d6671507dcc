internal import Dispatch
internal import Foundation
internal import Synchronization

extension CommitQueue {
  /// Makes every earlier write durable.
  func flush() async throws(RepositoryError) {
    try await maintain { backend throws(RepositoryError) in try backend.flush() }
  }

  /// Folds the journal into the main file.
  func checkpoint() async throws(RepositoryError) {
    try await maintain { [self] backend throws(RepositoryError) in
      try backend.checkpoint()
      let commit = state.commit
      checkpoints.withLock { state in
        state.folded = commit
        state.failure = nil
        state.retryFrom = 0
      }
    }
  }

  func backup(to url: URL) async throws(RepositoryError) {
    try await maintain { backend throws(RepositoryError) in try backend.backup(to: url) }
  }

  func verify() async -> VerifyReport {
    let start = ContinuousClock.now
    var report = await executor.run { self.backend.verify() }
    if let failure = checkpoints.withLock({ $0.failure }) { report.problems.append(failure) }
    if let failure = sharing.withLock({ $0.failure }) { report.problems.append(failure) }
    report.duration = .now - start
    return report
  }

  /// Commits what is queued, then closes the backend.
  ///
  /// The second call does nothing.
  func close() async throws(RepositoryError) {
    endMigrations()
    try await executor.run { () throws(RepositoryError) in
      guard !self.state.isClosed else { return }
      while let writes = self.takeWrites() { self.commit(writes) }
      self.published.withLock { $0.condition = .closed }
      self.hub.finish()
      try self.backend.close()
    }
  }

  /// Gives up a store that was refused after it was opened; the files stay as they are.
  func abandon() async {
    await executor.run {
      self.published.withLock { $0.condition = .closed }
      self.backend.abandon()
    }
  }

  /// Runs an operation of the backend between commits.
  private func maintain(
    _ operation: @escaping @Sendable (any StorageBackend) throws(RepositoryError) -> Void
  ) async throws(RepositoryError) {
    try await executor.run { () throws(RepositoryError) in
      try self.state.checkWritable()
      do throws(RepositoryError) {
        try operation(self.backend)
      } catch {
        self.notePoison(error)
        throw error
      }
    }
  }

  /// On the executor only.
  func checkpointBySize() {
    let commit = state.commit
    guard options.checkpoint.bySize, backend.wantsCheckpoint, commit >= checkpoints.withLock({ $0.retryFrom }) else { return }
    automaticCheckpoint(commit)
  }

  /// A checkpoint that nobody asked for: its failure must not fail a write, so it is kept for `verify`, and tried again later.
  private func automaticCheckpoint(_ commit: UInt64) {
    guard case .open = state.condition, !checkpoints.withLock({ $0.isRunning }) else { return }
    checkpointStep(commit) { backend throws(RepositoryError) in try backend.beginCheckpoint() }
  }

  /// Does a short part of a checkpoint between two commits, and has the long part that follows done beside commits.
  private func checkpointStep(
    _ commit: UInt64, _ step: (any StorageBackend) throws(RepositoryError) -> (@Sendable () -> Void)?
  ) {
    do throws(RepositoryError) {
      let work = try step(backend)
      checkpoints.withLock {
        $0.isRunning = work != nil
        guard work == nil else { return }
        $0.folded = max($0.folded, commit)
        $0.failure = nil
      }
      guard let work else { return }
      DispatchQueue(label: "larder.checkpoint", qos: .utility).async { [weak self] in
        work()
        self?.executor.queue.async { [weak self] in self?.continueCheckpoint(commit) }
      }
    } catch {
      notePoison(error)
      checkpoints.withLock {
        $0.isRunning = false
        $0.failure = error
        $0.retryFrom = commit + 1_000
      }
    }
  }

  /// On the executor only.
  private func continueCheckpoint(_ commit: UInt64) {
    guard case .open = state.condition else { return checkpoints.withLock { $0.isRunning = false } }
    checkpointStep(commit) { backend throws(RepositoryError) in try backend.continueCheckpoint() }
    scheduleIdleCheckpoint()
  }

  /// Whether the idle timer runs: for tests.
  var isIdleTimerSet: Bool { checkpoints.withLock { $0.isIdleTimerSet } }

  /// Sets the one timer that folds the journal when writing has paused.
  func scheduleIdleCheckpoint() {
    guard let idle = options.checkpoint.idle, options.access != .readOnly, case .open = state.condition else { return }
    let commit = state.commit
    let mustSet = checkpoints.withLock { state in
      guard !state.isIdleTimerSet, !state.isRunning, state.folded < commit, commit >= state.retryFrom else { return false }
      state.isIdleTimerSet = true
      return true
    }
    guard mustSet else { return }
    executor.queue.asyncAfter(deadline: .now() + idle.timeInterval) { [weak self] in self?.idleTimerFired(idle) }
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
        // Asked again when writing pauses after the next commit, not every few seconds.
        checkpoints.withLock { [commit = state.commit] in $0.retryFrom = max($0.retryFrom, commit + 1) }
      }
    }
    scheduleIdleCheckpoint()
  }
}
