import Synchronization

/// A one-shot result: the first value that is given resumes the single waiter, and later values are dropped.
final class FirstAnswer<Value: Sendable>: Sendable {
  private enum State {
    case open
    case waiting(CheckedContinuation<Value, Never>)
    case given(Value)
  }
  // One lock for value and waiter, so that a value given between the check and the suspension is not lost.
  private let state = Mutex(State.open)

  func give(_ value: Value) {
    // The continuation is resumed after the lock is released, so that no other code runs under the lock.
    let waiter: CheckedContinuation<Value, Never>? = state.withLock { state in
      // A continuation must be resumed once: a second value would trap.
      defer { if case .given = state {} else { state = .given(value) } }
      if case .waiting(let continuation) = state { return continuation }
      return nil
    }
    waiter?.resume(returning: value)
  }

  func result() async -> Value {
    await withCheckedContinuation { continuation in
      // The value may be there already: a cancelled task runs its handler before the caller waits.
      let value: Value? = state.withLock { state in
        if case .given(let value) = state { return value }
        state = .waiting(continuation)
        return nil
      }
      if let value { continuation.resume(returning: value) }
    }
  }
}
