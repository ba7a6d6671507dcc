public import Foundation

extension StorageBackend {
  /// Returns the report of `open` unchanged, for a backend that writes nothing before its first commit.
  public func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport { report }

  /// Calls `open` and then `recover`, for a caller that has nothing to check between these two steps.
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

  /// Commits deletions with ``commit(_:)``, for a backend that reserves no disk space for deletions.
  public func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError) { try commit(batch) }

  /// Whether other processes may commit: `true`, so that the store polls a backend that does not implement this property.
  public var hasOtherWriters: Bool { true }

  /// Whether the store should begin a checkpoint now: by default `false`, since a backend may have no journal to fold.
  public var wantsCheckpoint: Bool { false }

  /// Whether a checkpoint is worth the bytes that it rewrites: by default `true`, so that each pause in writing begins a checkpoint.
  public var isCheckpointWorthwhile: Bool { true }

  /// Completes a checkpoint with ``checkpoint()`` before returning, for a backend whose checkpoints cannot run beside commits.
  public func beginCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? {
    try checkpoint()
    return nil
  }

  /// Returns `nil`, for a backend whose checkpoints are complete when ``beginCheckpoint()`` returns.
  public func continueCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? { nil }

  /// Returns `nil` (no commits of other processes), for a backend whose `open` refuses `.shared` access.
  public func beginCommit(after revision: Revision, _ durability: Durability) throws(RepositoryError) -> ForeignCommits? { nil }

  /// Does nothing, for a backend that does not implement ``beginCommit(after:_:)``.
  public func cancelCommit() {}

  /// Returns `nil` (no commits of other processes), for a backend that no other process writes to.
  public func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? { nil }

  /// Does nothing, for a backend that never waits for other processes.
  public func endWaiting() {}

  /// Makes every commit durable, and closes the backend.
  public func suspend() throws(RepositoryError) {
    do throws(RepositoryError) { try flush() } catch {
      // The first call of `suspend` closes the backend, so a second call of `suspend` ignores the error `.closed`.
      if error.code == .closed { return }
      // The system may stop the process soon, so the locks are released even if the commits are not durable.
      abandon()
      throw error
    }
    try close()
  }

  /// Returns `false`, so that the store opens the backend again and reads every record.
  public func resume() throws(RepositoryError) -> Bool { false }

  /// Throws `.unsupported`, since the default implementation cannot read copies of a store.
  ///
  /// With a backend that cannot read copies, a run of a migration does not find the backup copy of the store that an earlier run made. A
  /// run of a migration that finds no backup copy makes one if it needs one.
  public func readCopy(at url: URL, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    throw RepositoryError(.unsupported, "this backend does not read copies", file: name)
  }

  /// Closes the backend with ``close()``, and ignores its error.
  public func abandon() {
    // The caller of `abandon` is about to throw the reason for abandoning the store, which matters more than an error of `close`.
    do throws(RepositoryError) { try close() } catch {}
  }
}
