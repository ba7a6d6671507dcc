public import Foundation
internal import Larder

/// The refusal to sign out with edits that the server does not have.
public struct SyncUnsentEdits: Error, Sendable, Hashable, CustomStringConvertible {
  /// Number of records with edits that the server does not have.
  public let count: Int

  /// The refusal in words.
  public var description: String {
    "expected nothing unsent, found \(count) records with edits that the server does not have; exchange first, or force it"
  }
}

extension SyncEngine {
  /// Removes the records of all scopes of this engine from the device, with their sync state.
  ///
  /// A sign-out removes nothing from the server. The engine stops, and a call of ``exchange()`` under way throws `CancellationError`. Call
  /// ``exchange()`` before you sign out, since a sign-out sends nothing.
  /// - Parameter force: Whether to sign out even if edits that the server does not have are lost.
  /// - Throws: ``SyncUnsentEdits`` if the server does not have all edits and `force` is false. After ``SyncUnsentEdits``, nothing was
  ///   removed, and the engine continues. Also throws the errors of reading and writing the store.
  public func signOut(force: Bool = false) async throws {
    let (commitsOfScopes, wasRunning) = (commitsOfScopes, !tasks.isEmpty)
    // The unsent edits are counted before the engine stops, so that a refused sign-out changes nothing.
    if !force {
      try await store.writeStored { (pending) throws(RepositoryError) in try Self.unsentCount(commitsOfScopes, in: pending) }.refuse()
    }
    signOuts += 1
    // Exchanges under way are cancelled, since they would receive the removed data again. An exchange that the app has started is cancelled
    // before `stop()`, since `stop()` waits for the engine's own tasks, which may wait for that exchange.
    for task in running.values { task.cancel() }
    await stop()
    while let task = running.values.first {
      task.cancel()
      _ = await task.result
    }
    do {
      try await store.writeStored { (pending) throws(RepositoryError) -> Int in
        // The unsent edits are counted again, since the user may have made edits while the engine stopped.
        let unsent = try Self.unsentCount(commitsOfScopes, in: pending)
        if unsent > 0, !force { return unsent }
        for scopeCommits in commitsOfScopes { try scopeCommits.forget(in: &pending) }
        return 0
      }.refuse()
    } catch {
      if wasRunning { start() }
      throw error
    }
    (failing, inFlight, progress) = ([], [:], [:])
    // Quota and rights belong to the user who signs out. The next user may have a larger quota and other rights.
    (full, refusals, rightsAsked, partialPushes) = ([:], [:], [:], [:])
    board.update { $0.forgetError() }
    refreshStatus()
  }

  private static func unsentCount(_ commitsOfScopes: [ScopeCommits], in pending: PendingState) throws(RepositoryError) -> Int {
    var unsent = 0
    for scopeCommits in commitsOfScopes { unsent += try scopeCommits.unsentCount(in: pending) }
    return unsent
  }
}

extension ScopeCommits {
  /// Returns the number of records of the scope with edits that the server has not accepted, including refused edits.
  func unsentCount(in pending: PendingState) throws(RepositoryError) -> Int {
    var count = 0
    try pending.visit(records) { (_, stored) throws(RepositoryError) in
      // An unreadable outbox entry makes the sign-out throw, since the sign-out would delete the entry's edits.
      let entry = try SyncEntry(stored)
      if entry.scope == scope, entry.isDirty { count += 1 }
    }
    return count
  }

  /// Removes the records of the scope, and all sync data of the scope.
  func forget(in pending: inout PendingState) throws(RepositoryError) {
    // The keys are collected first, since `pending` cannot be changed while it is being visited.
    var keys: [RecordKey] = []
    try pending.visit(records) { (key, stored) throws(RepositoryError) in
      if try SyncEntry(stored).scope == scope { keys.append(key) }
    }
    for key in keys {
      try pending.deleteStored(key, in: records)
      try pending.delete(key.text, in: rejected)
      guard let address = SyncEntry.address(key), let collection = pending.collection(named: address.collection) else { continue }
      try pending.deleteStored(address.key, in: collection)
    }
    try forgetConflicts(in: &pending)
    // A received record that was not stored, since it breaks a bound of the wire format, has a rejection and no outbox entry. The loop over
    // the outbox entries does not remove the rejection of a record without an entry.
    let rejections = try rejected.snapshot.loadAll(strict: false)
    for rejection in rejections where rejection.scope == scope { try pending.delete(rejection.id, in: rejected) }
    let stored = try deletions.snapshot.loadAll(strict: false)
    for deletion in stored where deletion.scope == scope { try pending.delete(deletion.id, in: deletions) }
    try pending.deleteStored(key, in: scopes)
  }

  /// Removes the stored conflicts of the scope's records.
  private func forgetConflicts(in pending: inout PendingState) throws(RepositoryError) {
    let stored = try conflicts.snapshot.loadAll(strict: false)
    for conflict in stored where conflict.scope == scope { try pending.delete(conflict.id, in: conflicts) }
  }
}

extension Int {
  /// Throws an error if this number of unsent edits is above 0.
  ///
  /// - Throws: ``SyncUnsentEdits`` for a number above 0.
  fileprivate func refuse() throws(SyncUnsentEdits) { if self > 0 { throw SyncUnsentEdits(count: self) } }
}

extension SyncUnsentEdits: LocalizedError {
  /// The same text as ``description``.
  public var errorDescription: String? { description }
}
