internal import Dispatch
internal import Foundation
internal import Synchronization

extension StoreCore {
  /// Makes every earlier buffered write survive power loss.
  func flush() async throws(RepositoryError) {
    try await maintain { backend throws(RepositoryError) in try backend.flush() }
  }

  /// Writes a complete copy of the store to a new file.
  func backup(to url: URL) async throws(RepositoryError) {
    try await maintain { backend throws(RepositoryError) in try backend.backup(to: url) }
  }

  /// Reads everything back from the backend, and adds the failures that no caller has received.
  func verify() async -> VerifyReport {
    let start = ContinuousClock.now
    var report = await executor.run {
      // Another store may have opened the closed backend since, and would be verified instead.
      guard !self.state.isClosed else { return VerifyReport(problems: [.storeClosed]) }
      if self.state.isSuspended {
        do throws(RepositoryError) { try self.state.checkWritable() } catch { return VerifyReport(problems: [error]) }
      }
      return self.backend.verify()
    }
    // Automatic checkpoints and looks for foreign commits have no caller to throw to.
    if let failure = checkpointer.failure { report.problems.append(failure) }
    if let failure = follower.failure { report.problems.append(failure) }
    report.duration = .now - start
    return report
  }

  /// Commits the queued writes, then closes the backend.
  ///
  /// A second call does nothing.
  func close() async throws(RepositoryError) {
    migrations.cancelAll()
    try await executor.run { () throws(RepositoryError) in
      guard !self.state.isClosed else { return }
      self.commits.commitAll(to: self)
      // Before `backend.close()`, which may throw: the backend is closed all the same, and must get no later write.
      self.noteClosed()
      self.hub.finish()
      try self.backend.close()
    }
  }

  /// Closes a store that was refused after it was opened, and leaves its files as they are.
  func abandon() async {
    await executor.run {
      self.noteClosed()
      self.backend.abandon()
    }
  }

  /// Runs an operation of the backend between two commits.
  func maintain<Output: Sendable>(
    _ operation: @escaping @Sendable (any StorageBackend) throws(RepositoryError) -> Output
  ) async throws(RepositoryError) -> Output {
    try await executor.run { () throws(RepositoryError) -> Output in
      try self.state.checkWritable()
      do throws(RepositoryError) {
        return try operation(self.backend)
      } catch {
        // A sync that fails in a flush or a checkpoint leaves commits as doubtful as one that fails in a commit.
        self.notePoison(error)
        throw error
      }
    }
  }
}
