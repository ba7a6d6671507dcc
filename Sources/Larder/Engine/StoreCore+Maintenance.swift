internal import Dispatch
internal import Foundation
internal import Synchronization

extension StoreCore {
  /// Makes every write that was committed `.buffered` durable, so that a power loss cannot undo it.
  func flush() async throws(RepositoryError) {
    try await maintain { backend throws(RepositoryError) in try backend.flush() }
  }

  /// Writes a complete copy of the store to a new file.
  func backup(to url: URL) async throws(RepositoryError) {
    try await maintain { backend throws(RepositoryError) in try backend.backup(to: url) }
  }

  /// Reads all stored data back from the backend, and reports damage and the failures that no caller has received.
  func verify() async -> VerifyReport {
    let start = ContinuousClock.now
    var report = await executor.run {
      // After this store's close, another store may have opened the same backend, and `verify` would report on that other store.
      guard !self.state.isClosed else { return VerifyReport(problems: [.storeClosed]) }
      if self.state.isSuspended {
        do throws(RepositoryError) { try self.state.checkWritable() } catch { return VerifyReport(problems: [error]) }
      }
      let report = self.backend.verify()
      self.dropLostIndexes()
      return report
    }
    // Automatic checkpoints and polls for foreign commits run without a caller, so `verify` reports their errors.
    if let failure = checkpointer.failure { report.problems.append(failure) }
    if let failure = follower.failure { report.problems.append(failure) }
    report.damagedIndexes = indexBuilder.stored.damage + report.damagedIndexes
    report.duration = .now - start
    return report
  }

  /// Commits the queued writes, and then closes the store and its backend.
  ///
  /// A second call of `close` does nothing.
  func close() async throws(RepositoryError) {
    migrations.cancelAll()
    try await executor.run { () throws(RepositoryError) in
      guard !self.state.isClosed else { return }
      self.commits.commitAll(to: self)
      // The store is marked as closed before `backend.close()`, which may throw. Even if `backend.close()` throws, the backend is closed
      // and must receive no later write.
      self.noteClosed()
      self.hub.finish()
      try self.backend.close()
    }
  }

  /// Closes an opened store that a check has refused, without any change to the store's files.
  func abandon() async {
    await executor.run {
      self.noteClosed()
      self.backend.abandon()
    }
  }

  /// Runs an operation of the backend on the executor, between two commits.
  func maintain<Output: Sendable>(
    _ operation: @escaping @Sendable (any StorageBackend) throws(RepositoryError) -> Output
  ) async throws(RepositoryError) -> Output {
    try await executor.run { () throws(RepositoryError) -> Output in
      try self.state.checkWritable()
      do throws(RepositoryError) {
        return try operation(self.backend)
      } catch {
        // After a failed sync in a flush or a checkpoint, it is unknown which commits are durable, so the store must refuse later writes.
        self.notePoison(error)
        throw error
      }
    }
  }
}
