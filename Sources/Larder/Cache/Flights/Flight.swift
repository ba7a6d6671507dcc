internal import Synchronization

/// A fetch under way, and those who wait for it.
struct Flight<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  typealias Outcome = FlightOutcome<Key, Value>

  let token: FlightToken
  var task: Task<Void, Never>?
  var waiters: [ObjectIdentifier: Waiter<Outcome>] = [:]
  /// Whether it goes on when nobody waits.
  var isKept = false
  /// Whether somebody waits for it, or has asked that it goes on.
  var isWanted: Bool { !waiters.isEmpty || isKept }
  /// When the last one who waited has left, and it was cancelled; who comes later may wait for its end nevertheless.
  var abandonedAt: Duration?
  /// Whether what it brings is of no use to those who wait for its end.
  var isOutdated = false
}

extension CacheState {
  /// How many fetches of a key that were cancelled and have not ended are borne beside another.
  private static var abandonedLimit: Int { 1 }
  /// After how long a fetch that was cancelled counts no more, though it may still run.
  private static var abandonedTime: Duration { .seconds(60) }

  /// The cancelled fetch of a key that somebody who comes now must wait for; `nil` when another may be begun.
  mutating func rejoin(_ key: Key, _ uptime: Duration) -> UInt64? {
    guard let ids = abandoned[key] else { return nil }
    let counted = ids.filter { id in flights[id]?.abandonedAt.map { uptime - $0 < Self.abandonedTime } ?? false }
    guard counted.count > Self.abandonedLimit, let id = counted.last else { return nil }
    abandoned[key]?.removeAll { $0 == id }
    let isDoomed = flights[id]?.token.isDoomed ?? false
    flights[id]?.isOutdated = isDoomed
    return id
  }

  /// Takes out a fetch that has ended.
  mutating func land(_ key: Key, _ id: UInt64) -> Flight<Key, Value>? {
    if current[key] == id { current[key] = nil }
    abandoned[key]?.removeAll { $0 == id }
    if abandoned[key]?.isEmpty == true { abandoned[key] = nil }
    return flights.removeValue(forKey: id)
  }
}

/// How waiting for a fetch ends.
enum FlightOutcome<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  case landed(Result<FoundEntry<Key, Value>, any Error>)
  case timedOut
  case cancelled
  /// Something was stored since the caller looked, or a fetch that was cancelled before has ended, so it should look again.
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
