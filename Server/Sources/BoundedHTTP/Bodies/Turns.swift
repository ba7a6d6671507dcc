internal import Synchronization

/// The turns of those who make something large, of which only some may be at it at once, and fewer of each identity.
///
/// Identities that wait have their turns one after another: whoever asks a hundred times is in front of others with the first only.
package final class Turns: Sendable {
  private struct State: Sendable {
    var left: Int
    var running: [String?: Int] = [:]
    var waiting: [String?: [CheckedContinuation<Void, Never>]] = [:]
    /// The identities that wait, in the order of their turns.
    var order: [String?] = []
  }

  private let state: Mutex<State>
  private let each: Int

  /// - Parameter each: The number of turns that one identity may have at once.
  package init(_ count: Int, each: Int) {
    state = Mutex(State(left: count))
    self.each = each
  }

  /// The number of those who wait.
  package var waitingCount: Int { state.withLock { $0.waiting.values.reduce(0) { $0 + $1.count } } }

  /// Runs work when it is the identity's turn; where nobody has one, all turns are everybody's.
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
      state.running[identity] = running == 0 ? nil : running
      return admit(&state)
    }
    next?.resume()
  }

  private func mayRun(_ identity: String?, _ state: State) -> Bool { identity == nil || state.running[identity, default: 0] < each }

  /// Returns who is next, if anybody is: each change lets one in at most.
  private func admit(_ state: inout State) -> CheckedContinuation<Void, Never>? {
    guard state.left > 0, let place = state.order.firstIndex(where: { mayRun($0, state) }) else { return nil }
    let identity = state.order.remove(at: place)
    guard var waiting = state.waiting.removeValue(forKey: identity), !waiting.isEmpty else { return nil }
    let first = waiting.removeFirst()
    if !waiting.isEmpty {
      state.waiting[identity] = waiting
      state.order.append(identity)
    }
    state.left -= 1
    state.running[identity, default: 0] += 1
    return first
  }
}
