public import Foundation
internal import Larder
internal import LarderWire
internal import Synchronization

/// The state of a store's sync, for an app to show.
///
/// Read the status from ``SyncEngine/status``. Show ``isSaved`` and not `pending == 0` to tell the user that everything is saved.
public struct SyncStatus: Sendable {
  /// The activity of the engine.
  public enum Phase: Sendable, Hashable {
    /// The engine was not started, or was stopped.
    case stopped
    /// No exchange is under way or to be retried, and the engine waits for edits and for newer commits of the server.
    case idle
    /// An exchange of at least one scope is under way.
    case exchanging
    /// An exchange has failed and will be retried.
    ///
    /// ``SyncStatus/lastError`` is the error of the failed exchange.
    case waiting
  }

  /// The activity of the engine.
  public var phase = Phase.stopped
  /// Number of records with edits that the server has not accepted, without refused edits and without records of ``otherScopes``.
  public var pending = 0
  /// Number of records with unsent edits in each scope that this engine was not created with.
  ///
  /// Edits of another scope are not sent until an engine is created with their scope. A misspelled scope name appears in ``otherScopes``.
  public var otherScopes: [String: Int] = [:]
  /// Number of records that were sent and whose outcome is not known yet.
  public var inFlight = 0
  /// Number of records of this device that the server has accepted, in the current or the last exchange of each scope.
  public var pushed = 0
  /// Number of records of other devices that were received, in the current or the last exchange of each scope.
  public var pulled = 0
  /// Number of records to receive in total, or `nil` until the server has counted them.
  public var total: Int?
  /// Time of the last successful exchange since the engine was created, or `nil` before the first.
  public var lastExchange: Date?
  /// Error of the last failed exchange, or `nil` if the last exchange of every scope has succeeded.
  ///
  /// The error is a `SyncProblem`, a `RepositoryError`, or an error of the credentials closure.
  public var lastError: (any Error)?
  /// Scope whose exchange has failed with ``lastError``, or `nil` without an error.
  public var lastErrorScope: String?
  /// Only record of the push that had no outcome at the time of ``lastError``, or `nil` if there was no such push or it had more records.
  public var lastErrorRecord: SyncPendingRecord?
  /// Number of stored rejections in ``SyncEngine/rejected``.
  public var rejected = 0
  /// Number of stored conflicts.
  public var conflicts = 0
  /// Number of pushes since the engine was created that contained only a part of a transaction.
  ///
  /// Other devices may receive a transaction in parts if it was pushed in parts. A push holds at most 500 records and 1 MiB of values, or
  /// less if the server accepts less. A push with a part of a transaction is counted when its outcome is known.
  public var dividedTransactions = 0

  /// Removes the last error with its scope and record.
  mutating func forgetError() { (lastError, lastErrorScope, lastErrorRecord) = (nil, nil, nil) }

  /// True if the records that existed before their collection was synced have outbox entries.
  ///
  /// The first exchange adds missing outbox entries.
  var isNoted = true

  /// Whether the server has every edit of this device, including edits of scopes without an engine.
  public var isSaved: Bool { pending == 0 && rejected == 0 && otherScopes.isEmpty && isNoted }
}

/// An asynchronous sequence of sync states: the current one, then the newest one after each change.
///
/// A slow reader receives only the newest state. The sequence ends when the task that reads it is cancelled, or when its engine is
/// released.
public struct SyncStatuses: AsyncSequence, Sendable {
  let board: StatusBoard
  let counts: StatusCounts

  /// Current state, including every write that has returned.
  public var current: SyncStatus {
    var status = board.status
    // The last commits may not have been announced to the engine yet, so only an exact count includes every write that has returned.
    counts.count(into: &status, isExact: true)
    return status
  }

  /// Returns an iterator that starts with the current state.
  public func makeAsyncIterator() -> Iterator { Iterator(board: board) }

  /// An iterator over sync states.
  public struct Iterator: AsyncIteratorProtocol {
    let board: StatusBoard
    private var seen: Int?

    init(board: StatusBoard) { self.board = board }

    /// Waits for a state that was published after the last returned one and returns it, or returns `nil` at the end of the sequence.
    public mutating func next() async -> SyncStatus? {
      guard let (status, number) = await board.status(after: seen) else { return nil }
      seen = number
      return status
    }
  }
}

/// The newest status, and a signal for the sequences that wait for another one.
final class StatusBoard: Sendable {
  private let state = Mutex((status: SyncStatus(), number: 0))
  private let signal = Signal()

  /// Newest status.
  var status: SyncStatus { state.withLock { $0.status } }

  /// Changes the status, and wakes the sequences that wait for another status.
  func update(_ change: (inout SyncStatus) -> Void) {
    state.withLock { state in
      change(&state.status)
      state.number += 1
    }
    // The signal is raised after the lock was released, or a woken task would wait for the lock.
    signal.raise()
  }

  /// Ends the sequences of sync states.
  func finish() { signal.finish() }

  /// Waits for another status than the one numbered `seen`, and returns it with its number.
  ///
  /// `status(after:)` returns `nil` if the task is cancelled, or if no newer status was published before ``finish()``.
  nonisolated(nonsending) func status(after seen: Int?) async -> (SyncStatus, Int)? {
    while !Task.isCancelled {
      // The signal's moment is read before the status, so that a change between the two reads is not missed.
      let (moment, isFinished) = (signal.moment, signal.isFinished)
      let (status, number) = state.withLock { ($0.status, $0.number) }
      if number != seen { return (status, number) }
      if isFinished { return nil }
      await signal.wait(after: moment)
    }
    return nil
  }
}

/// The counts of unsent edits, rejections and conflicts of a status, which are read from the store.
struct StatusCounts: Sendable {
  let dirty: DirtyEntries
  let conflicts: LocalRepository<SyncConflict>
  let rejected: LocalRepository<SyncRejection>
  /// Scopes of the engine.
  let scopes: Set<String>

  /// Writes the counts into a status.
  ///
  /// - Parameter isExact: Whether to include commits that were not announced to observers yet.
  func count(into status: inout SyncStatus, isExact: Bool) {
    let unsent = dirty.counts(isExact: isExact)
    status.pending = unsent.filter { scopes.contains($0.key) }.values.reduce(0, +)
    status.otherScopes = unsent.filter { !scopes.contains($0.key) }
    (status.rejected, status.conflicts) = (rejected.snapshot.count, conflicts.snapshot.count)
  }
}
