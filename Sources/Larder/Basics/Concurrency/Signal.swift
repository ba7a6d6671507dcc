internal import Synchronization

/// A signal that wakes tasks that wait for a condition to change.
///
/// The condition lives elsewhere, behind its own lock. In a loop, a task reads the ``moment``, checks the condition, and waits for a change
/// after the moment. So it does not miss a change between the check and the wait:
///
/// ```swift
/// while !Task.isCancelled {
///   let moment = signal.moment
///   if let item = takeItem() { return item }
///   await signal.wait(after: moment)
/// }
/// ```
package final class Signal: Sendable {
  /// A point between two calls of ``raise()``.
  package struct Moment: Hashable, Sendable {
    fileprivate let number: UInt64
  }

  private struct State: Sendable {
    var moment = Moment(number: 0)
    var isFinished = false
    var waiters: [CheckedContinuation<Void, Never>] = []

    mutating func removeWaiters() -> [CheckedContinuation<Void, Never>] {
      // Removed as they are woken, so that none is resumed twice.
      defer { waiters = [] }
      return waiters
    }
  }

  private let state = Mutex(State())

  package init() {}

  /// The present moment, to be read before the condition is checked.
  package var moment: Moment { state.withLock { $0.moment } }

  /// Whether ``finish()`` was called.
  package var isFinished: Bool { state.withLock { $0.isFinished } }

  /// Whether a task waits, for tests.
  package var isAwaited: Bool { state.withLock { !$0.waiters.isEmpty } }

  /// Wakes all tasks that wait.
  ///
  /// Call it after the condition has changed, so that the tasks find the change.
  package func raise() {
    wake { state in state.moment = Moment(number: state.moment.number + 1) }
  }

  /// Wakes all tasks that wait, and lets no later wait suspend.
  package func finish() {
    wake { $0.isFinished = true }
  }

  /// Returns when the signal was raised after a moment, when it is finished, or when the task is cancelled.
  ///
  /// It may return early, because another task was cancelled. Check the condition again.
  package nonisolated(nonsending) func wait(after moment: Moment) async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        // A cancellation before this point is seen here. A later one finds the continuation.
        let isOver = state.withLock { state in
          if state.moment != moment || state.isFinished || Task.isCancelled { return true }
          state.waiters.append(continuation)
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      // Wakes all, since waiters have no identity. The others check their condition and wait again.
      wake { _ in }
    }
  }

  private func wake(_ change: (inout State) -> Void) {
    let waiters = state.withLock { state in
      change(&state)
      return state.removeWaiters()
    }
    // Resumed without the lock, because a resumption calls the executor of the task.
    for waiter in waiters { waiter.resume() }
  }
}
