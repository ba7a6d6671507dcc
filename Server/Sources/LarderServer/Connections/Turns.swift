internal import Synchronization

/// The turns of those who make something large, of which only some may be at it at once.
final class Turns: Sendable {
  private struct State: Sendable {
    var left: Int
    var waiting: [CheckedContinuation<Void, Never>] = []
    var first = 0
  }

  private let state: Mutex<State>

  init(_ count: Int) { state = Mutex(State(left: count)) }

  /// Runs work when it is its turn, in the order of asking.
  func take<Value: Sendable, Failure: Error>(_ work: () async throws(Failure) -> Value) async throws(Failure) -> Value {
    await begin()
    defer { end() }
    return try await work()
  }

  private func begin() async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let isFree = state.withLock { state in
        if state.left == 0 {
          state.waiting.append(continuation)
          return false
        }
        state.left -= 1
        return true
      }
      if isFree { continuation.resume() }
    }
  }

  private func end() {
    let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard state.first < state.waiting.count else {
        state.left += 1
        return nil
      }
      state.first += 1
      defer {
        // The head of the list goes in large pieces, so that a long one costs no more than a short one.
        if state.first * 2 > state.waiting.count {
          state.waiting.removeFirst(state.first)
          state.first = 0
        }
      }
      return state.waiting[state.first - 1]
    }
    next?.resume()
  }
}
