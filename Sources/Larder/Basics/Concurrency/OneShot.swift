// Concurrency/ holds the types by which tasks wait for each other, and the functions that spread work over the cores.
// Invariant: no continuation is resumed twice or under a lock, and no function here blocks the cooperative pool unless its name says so.
// Called by every folder.

internal import Synchronization

/// A value that is set once, and awaited by any number of tasks.
///
/// The first call of ``resolve(_:)`` sets the value, and every later call of ``resolve(_:)`` changes nothing and returns `false`. The
/// cancellation of a task does not end its wait for the value. To end the wait, call ``resolve(_:)`` in a cancellation handler. If the
/// handler's call of ``resolve(_:)`` returns `true`, the cancellation came before any other value.
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
  ///
  /// - Returns: True if the value was set, or false if another value was set before.
  @discardableResult package func resolve(_ value: Value) -> Bool {
    let waiters: [CheckedContinuation<Value, Never>]? = state.withLock { state in
      guard case .awaited(let waiters) = state else { return nil }
      state = .resolved(value)
      return waiters
    }
    // The continuations are resumed without the lock, because resuming one calls the executor of its task, which is foreign code.
    for waiter in waiters ?? [] { waiter.resume(returning: value) }
    return waiters != nil
  }

  /// Returns the value as soon as it is set.
  package nonisolated(nonsending) func value() async -> Value {
    await withCheckedContinuation { continuation in
      // The state is checked and the waiter is added under one lock, so that `resolve` cannot set the value between the check and the
      // insertion.
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
