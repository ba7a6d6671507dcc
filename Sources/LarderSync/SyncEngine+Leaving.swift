public import Foundation
internal import Larder

/// The refusal to remove edits that the server has not taken.
public struct SyncUnsentEdits: Error, Sendable, Hashable, CustomStringConvertible {
  /// The number of records with such edits.
  public let count: Int

  /// The refusal in words.
  public var description: String {
    "expected nothing unsent, found \(count) records with edits that the server does not have; exchange first, or force it"
  }
}

extension SyncEngine {
  /// Removes the records of all scopes of this engine from the device, and what sync knows of them; the server keeps its own.
  ///
  /// The engine stops, and a call of ``exchange()`` that is under way throws `CancellationError`. It tries no exchange: call it before.
  /// - Parameter force: Whether edits that the server does not have are lost with it.
  /// - Throws: ``SyncUnsentEdits`` unless forced, and then nothing was removed and the engine goes on; the errors of storage.
  public func signOut(force: Bool = false) async throws {
    let (ledgers, wasRunning) = (ledgers, !tasks.isEmpty)
    // Before anything is stopped, so that a refusal leaves everything as it is.
    if !force {
      try await store.writeStored { (pending) throws(RepositoryError) in try Self.unsentCount(ledgers, in: pending) }.refuse()
    }
    signOuts += 1
    // What was called for by hand would take back what is removed here, and what runs by itself may wait for that.
    for task in running.values { task.cancel() }
    await stop()
    while let task = running.values.first {
      task.cancel()
      _ = await task.result
    }
    do {
      try await store.writeStored { (pending) throws(RepositoryError) -> Int in
        // Once more, since there may be edits from the time in which the engine stopped.
        let unsent = try Self.unsentCount(ledgers, in: pending)
        if unsent > 0, !force { return unsent }
        for ledger in ledgers { try ledger.forget(in: &pending) }
        return 0
      }.refuse()
    } catch {
      if wasRunning { start() }
      throw error
    }
    (failing, inFlight, progress) = ([], [:], [:])
    // The next user may have more room, and other rights.
    (full, refusals, rightsAsked, partialPushes) = ([:], [:], [:], [:])
    board.update { $0.forgetError() }
    refreshStatus()
  }

  private static func unsentCount(_ ledgers: [Ledger], in pending: PendingState) throws(RepositoryError) -> Int {
    var unsent = 0
    for ledger in ledgers { unsent += try ledger.unsentCount(in: pending) }
    return unsent
  }
}

extension Int {
  /// - Throws: ``SyncUnsentEdits`` for any number but 0.
  fileprivate func refuse() throws(SyncUnsentEdits) { if self > 0 { throw SyncUnsentEdits(count: self) } }
}

extension SyncUnsentEdits: LocalizedError {
  /// The same text as ``description``.
  public var errorDescription: String? { description }
}
