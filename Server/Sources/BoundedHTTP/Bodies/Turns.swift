internal import Synchronization

/// Fair semaphore that limits concurrent callers, in all and for each identity.
///
/// Identities are admitted in rotation. An identity with a hundred waiting calls therefore delays each other identity by one call only.
package final class Turns: Sendable {
  private struct State: Sendable {
    var left: Int
    var running: [String?: Int] = [:]
    var waiting: [String?: [CheckedContinuation<Void, Never>]] = [:]
    /// Identities with waiting callers, in the order of their turns.
    var order: [String?] = []
  }

  private let state: Mutex<State>
  private let each: Int

  /// - Parameter each: The number of turns that one identity may hold at once.
  package init(_ count: Int, each: Int) {
    state = Mutex(State(left: count))
    self.each = each
  }

  /// Number of waiting callers.
  package var waitingCount: Int { state.withLock { $0.waiting.values.reduce(0) { $0 + $1.count } } }

  /// Runs work while it holds a turn of the identity, after waiting for one.
  ///
  /// Without an identity, only the total number of turns is a limit.
  package func take<Value: Sendable, Failure: Error>(
    _ identity: String?, _ work: () async throws(Failure) -> Value
  ) async throws(Failure) -> Value {
    await begin(identity)
    defer { end(identity) }
    return try await work()
  }

  private func begin(_ identity: String?) async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let next = state.withLock { state in
        // One place for each identity, however many of its calls wait.
        if state.waiting[identity] == nil { state.order.append(identity) }
        state.waiting[identity, default: []].append(continuation)
        return admit(&state)
      }
      next?.resume()
    }
  }

  private func end(_ identity: String?) {
    let next = state.withLock { state in
      state.left += 1
      let running = state.running[identity, default: 1] - 1
      // Removed at zero, or the dictionary would grow with every identity that ever called.
      state.running[identity] = running == 0 ? nil : running
      return admit(&state)
    }
    next?.resume()
  }

  private func mayRun(_ identity: String?, _ state: State) -> Bool { identity == nil || state.running[identity, default: 0] < each }

  /// Admits at most one waiting caller and returns its continuation.
  ///
  /// One is enough, since each change makes room for one.
  private func admit(_ state: inout State) -> CheckedContinuation<Void, Never>? {
    guard state.left > 0, let place = state.order.firstIndex(where: { mayRun($0, state) }) else { return nil }
    let identity = state.order.remove(at: place)
    guard var waiting = state.waiting.removeValue(forKey: identity), !waiting.isEmpty else { return nil }
    let first = waiting.removeFirst()
    // To the end of the order, so that the next turn goes to another identity.
    if !waiting.isEmpty {
      state.waiting[identity] = waiting
      state.order.append(identity)
    }
    state.left -= 1
    state.running[identity, default: 0] += 1
    return first
  }
}
