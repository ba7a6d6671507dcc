public import Foundation

extension StorageBackend {
  /// Returns the report unchanged, for a backend that writes nothing before its first commit.
  public func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport { report }

  /// Opens and recovers the store in one call, for callers that have nothing to check between the two steps.
  package func openAndRecover(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    let report = try open(options, visit)
    // A store opened `.readOnly` must not write, and recovery writes.
    guard options.access != .readOnly else { return report }
    do throws(RepositoryError) {
      return try recover(report)
    } catch {
      // Without `abandon()`, the backend would stay open after a failed recovery and keep its locks, and no store would release them.
      abandon()
      throw error
    }
  }

  /// Makes an ordinary commit, for a backend without a reserve of disk space for deletions.
  public func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError) { try commit(batch) }

  /// Whether other processes may commit: `true`, so that the store polls a backend that does not implement this property.
  public var hasOtherWriters: Bool { true }

  /// Whether the store should begin a checkpoint now: `false`, since a backend without this property may have no journal to fold.
  public var wantsCheckpoint: Bool { false }

  /// Whether a checkpoint is worth the bytes that it rewrites: `true`, so that the store begins one at every pause in writing.
  public var isCheckpointWorthwhile: Bool { true }

  /// Makes the whole checkpoint with ``checkpoint()`` before it returns, for a backend whose checkpoints cannot run beside commits.
  public func beginCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? {
    try checkpoint()
    return nil
  }

  /// Returns `nil`, for a backend whose checkpoints are complete when ``beginCheckpoint()`` returns.
  public func continueCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? { nil }

  /// Returns `nil`, for a backend that refuses `.shared` when it is opened.
  public func beginCommit(after revision: Revision, _ durability: Durability) throws(RepositoryError) -> ForeignCommits? { nil }

  /// Does nothing, for a backend that begins no shared commits.
  public func cancelCommit() {}

  /// Returns `nil`, for a backend that no other process writes to.
  public func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? { nil }

  /// Does nothing, for a backend that never waits for other processes.
  public func endWaiting() {}

  /// Makes every commit durable, and closes the backend.
  public func suspend() throws(RepositoryError) {
    do throws(RepositoryError) { try flush() } catch {
      // `suspend` may be called twice, and its first call has closed the backend. So the second call ignores the error `.closed`.
      if error.code == .closed { return }
      // The system may stop the process soon, so the locks are released even if the commits are not durable.
      abandon()
      throw error
    }
    try close()
  }

  /// Returns `false`, so that the store opens the backend again and reads every record.
  public func resume() throws(RepositoryError) -> Bool { false }

  /// Throws `.unsupported`, since this default cannot read copies.
  ///
  /// With a backend that cannot read copies, a run of a migration does not find the copy that an earlier run made. The run then makes a
  /// copy of its own if it needs one.
  public func readCopy(at url: URL, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    throw RepositoryError(.unsupported, "this backend does not read copies", file: name)
  }

  /// Closes the backend with ``close()``, and ignores its error.
  public func abandon() {
    // The caller of `abandon` is about to throw the reason for abandoning the store, which matters more than an error of `close`.
    do throws(RepositoryError) { try close() } catch {}
  }
}
