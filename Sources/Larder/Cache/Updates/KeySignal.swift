internal import Synchronization

/// Wakes a reader when something happens to its key.
final class KeySignal: Sendable {
  private struct State: Sendable {
    var isSet = false
    var isFinished = false
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())

  /// Begins to look at what is there, so that what happens from now on wakes the next wait; `false` when the storage was closed.
  func begin() -> Bool {
    state.withLock { state in
      state.isSet = false
      return !state.isFinished
    }
  }

  func poke() { wake { $0.isSet = true } }
  func finish() { wake { $0.isFinished = true } }

  /// Returns when it is poked, at the end, or when the task is cancelled.
  nonisolated(nonsending) func wait() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          if state.isSet || state.isFinished || Task.isCancelled { return true }
          state.waiter = continuation
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      wake { _ in }
    }
  }

  private func wake(_ change: (inout State) -> Void) {
    let waiter = state.withLock { state in
      change(&state)
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume()
  }
}

/// A reader, for as long as it is there.
struct WeakSignal: Sendable {
  weak let signal: KeySignal?
}
