public import Foundation

extension StorageBackend {
  /// Returns the report unchanged, for a backend that writes nothing before its first commit.
  public func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport { report }

  /// Opens and recovers the store in one call, for callers that have nothing to check between the two steps.
  package func openAndRecover(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    let report = try open(options, visit)
    // A reader owns no files that it could recover.
    guard options.access != .readOnly else { return report }
    do throws(RepositoryError) {
      return try recover(report)
    } catch {
      // Otherwise the locks would stay held by a store that nobody has.
      abandon()
      throw error
    }
  }

  /// Makes an ordinary commit, for a backend without a reserve of disk space for deletions.
  public func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError) { try commit(batch) }

  /// Whether other processes may commit: `true`, so that a backend which says nothing is polled.
  public var hasOtherWriters: Bool { true }

  /// Whether a checkpoint pays now: `false`, since such a backend may have nothing to fold.
  public var wantsCheckpoint: Bool { false }

  /// Whether a checkpoint is worth the bytes that it rewrites: `true`.
  public var isCheckpointWorthwhile: Bool { true }

  /// Makes the whole checkpoint at once with ``checkpoint()``.
  public func beginCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? {
    try checkpoint()
    return nil
  }

  /// Returns `nil`, for a backend whose checkpoints end in ``beginCheckpoint()``.
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
      // A second call finds the backend closed, which is no error.
      if error.code == .closed { return }
      // The system may stop the process soon, so the locks go even if the commits are not durable.
      abandon()
      throw error
    }
    try close()
  }

  /// Returns `false`, so that the store opens the backend and reads everything again.
  public func resume() throws(RepositoryError) -> Bool { false }

  /// Throws `.unsupported`.
  ///
  /// Each run of a migration then makes a copy of its own if it needs one.
  public func readCopy(at url: URL, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    throw RepositoryError(.unsupported, "this backend does not read copies", file: name)
  }

  /// Closes the backend with ``close()``, and ignores its error.
  public func abandon() {
    // The caller is about to throw the reason for abandoning, which matters more.
    do throws(RepositoryError) { try close() } catch {}
  }
}
