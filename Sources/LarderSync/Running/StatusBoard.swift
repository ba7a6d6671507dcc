internal import Larder
internal import Synchronization

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
