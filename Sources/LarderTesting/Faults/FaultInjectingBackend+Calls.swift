public import Foundation
public import Larder

/// The calls that are passed on to the inner backend.
extension FaultInjectingBackend {
  /// The name of the inner backend.
  public var name: String { inner.name }

  /// Opens the inner backend, once the gate and the faults let it.
  public func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    try call(.open) { () throws(RepositoryError) in try inner.open(options, visit) }
  }

  /// Recovers the inner backend, once the gate and the faults let it.
  public func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport {
    try call(.recover) { () throws(RepositoryError) in try inner.recover(report) }
  }

  /// Begins a commit of the inner backend; not counted, held or failed.
  public func beginCommit(after revision: Revision, _ durability: Durability) throws(RepositoryError) -> ForeignCommits? {
    try inner.beginCommit(after: revision, durability)
  }

  /// Cancels a commit of the inner backend.
  ///
  /// A fault before the inner backend's `commit` calls this too, as a backend that fails does.
  public func cancelCommit() { inner.cancelCommit() }

  /// Reads the foreign commits of the inner backend; not counted, held or failed.
  public func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    try inner.foreignCommits(after: revision)
  }

  /// Whether the inner backend has other writers.
  public var hasOtherWriters: Bool { inner.hasOtherWriters }

  /// Flushes the inner backend, once the gate and the faults let it.
  public func flush() throws(RepositoryError) {
    try call(.flush) { () throws(RepositoryError) in try inner.flush() }
  }

  /// Whether the inner backend finds a checkpoint worthwhile.
  public var isCheckpointWorthwhile: Bool { inner.isCheckpointWorthwhile }

  /// Checkpoints the inner backend, once the gate and the faults let it.
  public func checkpoint() throws(RepositoryError) {
    try call(.checkpoint) { () throws(RepositoryError) in try inner.checkpoint() }
  }

  /// Verifies the inner backend, once the gate lets it.
  public func verify() -> VerifyReport {
    pass(.verify)
    return inner.verify()
  }

  /// Backs up the inner backend, once the gate and the faults let it.
  public func backup(to url: URL) throws(RepositoryError) {
    try call(.backup) { () throws(RepositoryError) in try inner.backup(to: url) }
  }

  /// Reads a copy of the inner backend; not counted, held or failed.
  public func readCopy(at url: URL, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    try inner.readCopy(at: url, visit)
  }

  /// Reads the inner backend again; not counted, stopped or failed.
  public func readAll(_ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport { try inner.readAll(visit) }

  /// Ends a wait of the inner backend; not counted, held or failed.
  public func endWaiting() { inner.endWaiting() }

  /// Suspends the inner backend; not counted, held or failed.
  public func suspend() throws(RepositoryError) { try inner.suspend() }

  /// Resumes the inner backend; not counted, held or failed.
  public func resume() throws(RepositoryError) -> Bool { try inner.resume() }

  /// Closes the inner backend, once the gate and the faults let it.
  public func close() throws(RepositoryError) {
    try call(.close) { () throws(RepositoryError) in try inner.close() }
  }

  /// Gives the inner backend up as it is; not counted, held or failed.
  public func abandon() { inner.abandon() }
}
