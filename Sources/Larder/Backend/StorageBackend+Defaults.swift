public import Foundation

extension StorageBackend {
  /// Returns the report as it is: for a backend that has nothing to write before its first commit.
  public func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport { report }

  /// Takes both steps of opening, for callers that have nothing to judge between them.
  package func openAndRecover(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    let report = try open(options, visit)
    guard options.access != .readOnly else { return report }
    do throws(RepositoryError) {
      return try recover(report)
    } catch {
      abandon()
      throw error
    }
  }

  /// Makes an ordinary commit.
  public func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError) { try commit(batch) }

  /// Whether others may commit: yes, to be safe.
  public var hasOtherWriters: Bool { true }

  /// Whether a checkpoint would pay now.
  public var wantsCheckpoint: Bool { false }

  /// Whether a checkpoint is worth what it rewrites: always.
  public var isCheckpointWorthwhile: Bool { true }

  /// Makes the whole checkpoint.
  public func beginCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? {
    try checkpoint()
    return nil
  }

  /// Does nothing: for a backend whose checkpoints are over at once.
  public func continueCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? { nil }

  /// Begins nothing: for a backend that refuses `.shared` when it is opened.
  public func beginCommit(after revision: Revision, _ durability: Durability) throws(RepositoryError) -> ForeignCommits? { nil }

  /// Does nothing.
  public func cancelCommit() {}

  /// Returns no commits: for a backend that no other process writes to.
  public func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? { nil }

  /// Does nothing: for a backend that never waits for others.
  public func endWaiting() {}

  /// Makes everything durable, and closes the backend.
  public func suspend() throws(RepositoryError) {
    do throws(RepositoryError) { try flush() } catch {
      if error.code == .closed { return }
      abandon()
      throw error
    }
    try close()
  }

  /// Has the store read anew.
  public func resume() throws(RepositoryError) -> Bool { false }

  /// Refuses: each run then makes a copy of its own, where one is needed.
  public func readCopy(at url: URL, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    throw RepositoryError(.unsupported, "this backend does not read copies", file: name)
  }

  /// Closes the backend.
  public func abandon() {
    // The refusal is what the caller must hear.
    do throws(RepositoryError) { try close() } catch {}
  }
}
