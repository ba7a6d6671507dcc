public import Foundation
internal import Larder
internal import Synchronization

/// The state of a store's sync, as an app shows it.
public struct SyncStatus: Sendable {
  /// The activity of the engine.
  public enum Phase: Sendable, Hashable {
    /// It does not run by itself: it was not started, or stopped.
    case stopped
    /// Everything is sent and taken, and it waits for news.
    case idle
    /// An exchange of at least one scope is under way.
    case exchanging
    /// An exchange has failed, and is tried again later; see ``SyncStatus/lastError``.
    case waiting
  }

  /// The activity of the engine.
  public var phase = Phase.stopped
  /// The number of records with edits that the server has not taken, without those that it has refused, and without ``otherScopes``.
  public var pending = 0
  /// Scopes that this engine was not made with, each with the number of records in it that have unsent edits.
  ///
  /// Nothing sends these edits until an engine is made with their scope. A scope with a typing error is found here.
  public var otherScopes: [String: Int] = [:]
  /// The number of records that were sent and of which it is not known yet whether the server has taken them.
  public var inFlight = 0
  /// The number of records of this device that the server has accepted in the exchange under way, or in the last one, of each scope.
  public var pushed = 0
  /// The number of records of other devices that the exchange under way, or the last one, has taken, of each scope.
  public var pulled = 0
  /// The number of records that it takes in all, as far as the server has counted them; `nil` until it says so.
  public var total: Int?
  /// The time at which an exchange last succeeded since the engine was made; `nil` before the first.
  public var lastExchange: Date?
  /// The reason why the last exchange has failed: a ``SyncProblem``, a `RepositoryError`, or what the credentials have thrown; `nil` after
  /// one that has not.
  public var lastError: (any Error)?
  /// The scope whose exchange has failed with ``lastError``; `nil` without one.
  public var lastErrorScope: String?
  /// The record that ``lastError`` is about: the only one of the push that was refused; `nil` for an error that is about more, or none.
  public var lastErrorRecord: SyncPendingRecord?
  /// The number of edits that the server has refused and that wait for the user.
  public var rejected = 0
  /// The number of values that have lost and are kept.
  public var conflicts = 0
  /// The number of pushes that left a part of a transaction for a later push.
  ///
  /// Pushes that were sent since the engine was made count, once the server has answered them.
  ///
  /// Other devices may see such a transaction in parts. A push takes 500 records and 1 MiB, or as much as the server takes if that is less.
  public var dividedTransactions = 0

  mutating func forgetError() { (lastError, lastErrorScope, lastErrorRecord) = (nil, nil, nil) }

  /// Whether the records that were there before their collection was synced are noted as unsent, which the first exchange does.
  var isNoted = true

  /// Whether the server has every edit of this device.
  public var isSaved: Bool { pending == 0 && rejected == 0 && otherScopes.isEmpty && isNoted }
}

/// The states of a store's sync: the present one at once, then the newest whenever it has changed.
///
/// A slow reader gets the newest alone. The sequence ends with the task that reads it, and with its engine.
public struct SyncStatuses: AsyncSequence, Sendable {
  let board: StatusBoard
  let counts: StatusCounts

  /// The present state, with the writes that have returned.
  public var current: SyncStatus {
    var status = board.status
    counts.count(into: &status, isExact: true)
    return status
  }

  /// Returns an iterator that begins with the present state.
  public func makeAsyncIterator() -> Iterator { Iterator(board: board) }

  /// An iterator over states.
  public struct Iterator: AsyncIteratorProtocol {
    let board: StatusBoard
    private var seen: Int?

    init(board: StatusBoard) { self.board = board }

    /// Returns the newest state as soon as it is another than the last one; `nil` at the end.
    public mutating func next() async -> SyncStatus? {
      guard let (status, number) = await board.status(after: seen) else { return nil }
      seen = number
      return status
    }
  }
}

// Running/ holds what lets an engine run by itself: when a scope is due, how long to wait after a failure, what the app is told.
// Invariant: a reason for an exchange that comes during one leads to another one. Called by SyncEngine.

/// The newest status, and those who wait for another one.
final class StatusBoard: Sendable {
  private let state = Mutex((status: SyncStatus(), number: 0))
  private let signal = Signal()

  var status: SyncStatus { state.withLock { $0.status } }

  func update(_ change: (inout SyncStatus) -> Void) {
    state.withLock { state in
      change(&state.status)
      state.number += 1
    }
    signal.raise()
  }

  /// Ends the sequences.
  func finish() { signal.finish() }

  /// Returns the newest status with its number, as soon as that is another one; `nil` at the end, and when the task is cancelled.
  nonisolated(nonsending) func status(after seen: Int?) async -> (SyncStatus, Int)? {
    while !Task.isCancelled {
      let (moment, isFinished) = (signal.moment, signal.isFinished)
      let (status, number) = state.withLock { ($0.status, $0.number) }
      if number != seen { return (status, number) }
      if isFinished { return nil }
      await signal.wait(after: moment)
    }
    return nil
  }
}

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
