// Concurrency/ holds the means by which tasks wait, and the one way to spread work over the cores.
// Invariant: no continuation is resumed twice or under a lock, and nothing here blocks the cooperative pool unless its name says so.
// Called by every room.

internal import Synchronization

/// A value that is set once, and awaited by any number of tasks.
///
/// It settles a race: the first ``resolve(_:)`` holds, and every later one returns `false`. The cancellation of a task does not end its
/// wait. To end it, resolve the value in a cancellation handler. The result says whether the cancellation came in time.
package final class OneShot<Value: Sendable>: Sendable {
  private enum State: Sendable {
    case awaited([CheckedContinuation<Value, Never>])
    case resolved(Value)
  }

  private let state = Mutex(State.awaited([]))

  package init() {}

  /// Whether the value is set.
  package var isResolved: Bool { state.withLock { if case .resolved = $0 { true } else { false } } }

  /// Sets the value and resumes the tasks that await it.
  /// - Returns: Whether this value holds, or `false` if another one was set before.
  @discardableResult package func resolve(_ value: Value) -> Bool {
    let waiters: [CheckedContinuation<Value, Never>]? = state.withLock { state in
      guard case .awaited(let waiters) = state else { return nil }
      state = .resolved(value)
      return waiters
    }
    // Resumed without the lock, because a resumption calls the executor of the task.
    for waiter in waiters ?? [] { waiter.resume(returning: value) }
    return waiters != nil
  }

  /// Returns the value as soon as it is set.
  package nonisolated(nonsending) func value() async -> Value {
    await withCheckedContinuation { continuation in
      // Look and wait are one step under the lock, so that no value is set unseen between them.
      let value: Value? = state.withLock { state in
        switch state {
        case .resolved(let value): return value
        case .awaited(let waiters):
          state = .awaited(waiters + [continuation])
          return nil
        }
      }
      if let value { continuation.resume(returning: value) }
    }
  }
}
