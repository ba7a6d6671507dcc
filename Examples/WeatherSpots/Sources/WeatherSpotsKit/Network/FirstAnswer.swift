import Synchronization

/// The first of several answers that race for one waiter; later ones are dropped.
final class FirstAnswer<Value: Sendable>: Sendable {
  private enum State {
    case open
    case waiting(CheckedContinuation<Value, Never>)
    case given(Value)
  }
  private let state = Mutex(State.open)

  func give(_ value: Value) {
    let waiter: CheckedContinuation<Value, Never>? = state.withLock { state in
      defer { if case .given = state {} else { state = .given(value) } }
      if case .waiting(let continuation) = state { return continuation }
      return nil
    }
    waiter?.resume(returning: value)
  }

  func result() async -> Value {
    await withCheckedContinuation { continuation in
      let value: Value? = state.withLock { state in
        if case .given(let value) = state { return value }
        state = .waiting(continuation)
        return nil
      }
      if let value { continuation.resume(returning: value) }
    }
  }
}
