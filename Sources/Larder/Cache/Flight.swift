internal import Synchronization

/// A fetch under way, and those who wait for it.
struct Flight<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  typealias Outcome = FlightOutcome<Key, Value>

  let token: FlightToken
  var task: Task<Void, Never>?
  var waiters: [ObjectIdentifier: Waiter<Outcome>] = [:]
  /// Whether it goes on when nobody waits.
  var isKept = false
}

/// How waiting for a fetch ends.
enum FlightOutcome<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  case landed(Result<FoundEntry<Key, Value>, any Error>)
  case timedOut
  case cancelled
  /// Something was stored since the caller looked, so it should look again.
  case changed
}

/// Says whether the result of a fetch may still be stored.
final class FlightToken: Sendable {
  private let doomed = Atomic(false)
  var isDoomed: Bool { doomed.load(ordering: .acquiring) }
  func doom() { doomed.store(true, ordering: .releasing) }
}

/// One who waits for an outcome; the first one holds.
final class Waiter<Outcome: Sendable>: Sendable {
  private enum Phase: Sendable {
    case new
    case waiting(CheckedContinuation<Outcome, Never>)
    case resolved(Outcome)
  }

  private let phase = Mutex(Phase.new)

  func resolve(_ outcome: Outcome) {
    let continuation: CheckedContinuation<Outcome, Never>? = phase.withLock { phase in
      switch phase {
      case .new: phase = .resolved(outcome)
      case .waiting(let continuation):
        phase = .resolved(outcome)
        return continuation
      case .resolved: break
      }
      return nil
    }
    continuation?.resume(returning: outcome)
  }

  /// Waits; called once.
  nonisolated(nonsending) func wait() async -> Outcome {
    await withCheckedContinuation { continuation in
      let outcome: Outcome? = phase.withLock { phase in
        if case .resolved(let outcome) = phase { return outcome }
        phase = .waiting(continuation)
        return nil
      }
      if let outcome { continuation.resume(returning: outcome) }
    }
  }
}
