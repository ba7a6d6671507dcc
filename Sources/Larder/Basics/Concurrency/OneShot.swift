// Concurrency/ holds the types by which tasks wait for each other, and the functions that spread work over the cores.
// Invariant: no continuation is resumed twice or under a lock. No function blocks the cooperative pool unless its name says so.
// Called by the code of every folder of the package.

internal import Synchronization

/// A value that is set once, and awaited by any number of tasks.
///
/// The first call of ``resolve(_:)`` sets the value, and every later call of ``resolve(_:)`` changes nothing and returns `false`. The
/// cancellation of a task does not end its wait for the value. To end the wait of a cancelled task, call ``resolve(_:)`` in a cancellation
/// handler. If the handler's call of ``resolve(_:)`` returns `true`, the cancellation came before any other value.
package final class OneShot<Value: Sendable>: Sendable {
  private enum State: Sendable {
    case awaited([CheckedContinuation<Value, Never>])
    case resolved(Value)
  }

  private let state = Mutex(State.awaited([]))

  package init() {}

  /// Whether a call of ``resolve(_:)`` has set the value.
  package var isResolved: Bool { state.withLock { if case .resolved = $0 { true } else { false } } }

  /// Sets the value and resumes the tasks that await it.
  ///
  /// - Returns: True if the call of `resolve` has set the value, or false if an earlier call had set a value.
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

  /// Waits until ``resolve(_:)`` has set the value, and returns the value.
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
