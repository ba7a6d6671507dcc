internal import Dispatch
internal import Foundation
internal import Synchronization

extension StoreCore {
  /// Makes every earlier write durable.
  func flush() async throws(RepositoryError) {
    try await maintain { backend throws(RepositoryError) in try backend.flush() }
  }

  /// Writes a complete copy of the store to a new file.
  func backup(to url: URL) async throws(RepositoryError) {
    try await maintain { backend throws(RepositoryError) in try backend.backup(to: url) }
  }

  /// Reads everything back, and adds the failures that no caller was told of.
  func verify() async -> VerifyReport {
    let start = ContinuousClock.now
    var report = await executor.run {
      // A backend that was closed may have been opened again, for another store.
      guard !self.state.isClosed else { return VerifyReport(problems: [.storeClosed]) }
      if self.state.isSuspended {
        do throws(RepositoryError) { try self.state.checkWritable() } catch { return VerifyReport(problems: [error]) }
      }
      return self.backend.verify()
    }
    if let failure = checkpointer.failure { report.problems.append(failure) }
    if let failure = follower.failure { report.problems.append(failure) }
    report.duration = .now - start
    return report
  }

  /// Commits what is queued, then closes the backend.
  ///
  /// The second call does nothing.
  func close() async throws(RepositoryError) {
    migrations.cancelAll()
    try await executor.run { () throws(RepositoryError) in
      guard !self.state.isClosed else { return }
      self.commits.commitAll(to: self)
      self.noteClosed()
      self.hub.finish()
      try self.backend.close()
    }
  }

  /// Gives up a store that was refused after it was opened; the files stay as they are.
  func abandon() async {
    await executor.run {
      self.noteClosed()
      self.backend.abandon()
    }
  }

  /// Runs an operation of the backend between commits.
  func maintain<Output: Sendable>(
    _ operation: @escaping @Sendable (any StorageBackend) throws(RepositoryError) -> Output
  ) async throws(RepositoryError) -> Output {
    try await executor.run { () throws(RepositoryError) -> Output in
      try self.state.checkWritable()
      do throws(RepositoryError) {
        return try operation(self.backend)
      } catch {
        self.notePoison(error)
        throw error
      }
    }
  }
}
