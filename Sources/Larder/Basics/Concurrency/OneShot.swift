// Concurrency/ holds what tasks wait with, and the one way to spread work over the cores.
// Invariant: no continuation is resumed twice or under a lock, and nothing here blocks the cooperative pool unless its name says so.
// Called by every room.

internal import Synchronization

/// A value that is set once, and awaited by any number of tasks.
///
/// Settles a race: the first ``resolve(_:)`` holds, and every later one is told so. Waiting does not end with the task's cancellation;
/// where it should, a cancellation handler resolves the value, and finds out in the same step whether the cancellation came in time.
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
  /// - Returns: Whether this value holds; `false` when another one was set before.
  @discardableResult package func resolve(_ value: Value) -> Bool {
    let waiters: [CheckedContinuation<Value, Never>]? = state.withLock { state in
      guard case .awaited(let waiters) = state else { return nil }
      state = .resolved(value)
      return waiters
    }
    for waiter in waiters ?? [] { waiter.resume(returning: value) }
    return waiters != nil
  }

  /// Returns the value as soon as it is set.
  package nonisolated(nonsending) func value() async -> Value {
    await withCheckedContinuation { continuation in
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
