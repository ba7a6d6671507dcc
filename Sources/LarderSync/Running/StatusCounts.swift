internal import Larder

/// The numbers of a status that follow from what is stored.
struct StatusCounts: Sendable {
  let dirty: DirtyEntries
  let conflicts: LocalRepository<SyncConflict>
  let rejected: LocalRepository<SyncRejection>
  /// The scopes of the engine.
  let scopes: Set<String>

  /// Puts the numbers into a status.
  ///
  /// - Parameter isExact: Whether a write counts that has returned and was not announced yet.
  func count(into status: inout SyncStatus, isExact: Bool) {
    let unsent = dirty.counts(isExact: isExact)
    status.pending = unsent.filter { scopes.contains($0.key) }.values.reduce(0, +)
    status.otherScopes = unsent.filter { !scopes.contains($0.key) }
    (status.rejected, status.conflicts) = (rejected.snapshot.count, conflicts.snapshot.count)
  }
}
