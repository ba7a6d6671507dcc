internal import Synchronization

/// Semaphore that limits concurrent callers, in all and for each identity, and admits waiting identities in rotation.
///
/// An identity with a hundred waiting calls therefore delays each other identity by one call only.
package final class FairSemaphore: Sendable {
  private struct State: Sendable {
    var freeCount: Int
    var running: [String?: Int] = [:]
    var waiting: [String?: [CheckedContinuation<Void, Never>]] = [:]
    /// Identities with waiting callers, the next one to be admitted first.
    var order: [String?] = []
  }

  private let state: Mutex<State>
  private let perIdentity: Int

  /// Creates a semaphore with a maximum of callers for all identities together and one for each.
  package init(total: Int, perIdentity: Int) {
    state = Mutex(State(freeCount: total))
    self.perIdentity = perIdentity
  }

  /// Number of waiting callers.
  package var waitingCount: Int { state.withLock { $0.waiting.values.reduce(0) { $0 + $1.count } } }

  /// Waits for a permit of the identity, runs work while it holds the permit, and returns the result of the work.
  ///
  /// Without an identity, only the total number of permits is a limit.
  package func withPermit<Value: Sendable, Failure: Error>(
    for identity: String?, _ work: () async throws(Failure) -> Value
  ) async throws(Failure) -> Value {
    await acquirePermit(for: identity)
    defer { releasePermit(of: identity) }
    return try await work()
  }

  private func acquirePermit(for identity: String?) async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let next = state.withLock { state in
        // One place for each identity, however many of its calls wait.
        if state.waiting[identity] == nil { state.order.append(identity) }
        state.waiting[identity, default: []].append(continuation)
        return admitNext(&state)
      }
      next?.resume()
    }
  }

  private func releasePermit(of identity: String?) {
    let next = state.withLock { state in
      state.freeCount += 1
      let running = state.running[identity, default: 1] - 1
      // Removed at zero, or the dictionary would grow with every identity that ever called.
      state.running[identity] = running == 0 ? nil : running
      return admitNext(&state)
    }
    next?.resume()
  }

  private func mayRun(_ identity: String?, _ state: State) -> Bool {
    identity == nil || state.running[identity, default: 0] < perIdentity
  }

  /// Admits at most one waiting caller and returns its continuation.
  ///
  /// One is enough, since each change makes room for one.
  private func admitNext(_ state: inout State) -> CheckedContinuation<Void, Never>? {
    guard state.freeCount > 0, let place = state.order.firstIndex(where: { mayRun($0, state) }) else { return nil }
    let identity = state.order.remove(at: place)
    guard var waiting = state.waiting.removeValue(forKey: identity), !waiting.isEmpty else { return nil }
    let first = waiting.removeFirst()
    // To the end of the order, so that the next permit goes to another identity.
    if !waiting.isEmpty {
      state.waiting[identity] = waiting
      state.order.append(identity)
    }
    state.freeCount -= 1
    state.running[identity, default: 0] += 1
    return first
  }
}
