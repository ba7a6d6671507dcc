/// A fetch under way, with its task and its waiters.
struct Flight<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  typealias Waiter = OneShot<FlightOutcome<Key, Value>>

  let task: Task<Void, Never>
  /// Whether its result may not be stored any more.
  var isInvalidated = false
  var waiters: [ObjectIdentifier: Waiter] = [:]
  /// Whether it goes on without a waiter.
  var isKept = false
  /// Whether it has a waiter, or goes on without one.
  var isWanted: Bool { !waiters.isEmpty || isKept }
  /// The moment when the last caller left and it was cancelled; later callers may wait for its end nevertheless.
  var abandonedAt: Duration?
  /// Whether its result is of no use to those that wait for its end.
  var isOutdated = false
}

extension CacheState {
  /// The number of cancelled flights of a key that may still run beside another.
  private static var abandonedLimit: Int { 1 }
  /// The time after which a cancelled flight counts no more, though it may still run.
  private static var abandonedTime: Duration { .seconds(60) }

  /// Returns the cancelled flight of a key that a new caller must wait for; `nil` when another may be begun.
  mutating func rejoin(_ key: Key, _ uptime: Duration) -> UInt64? {
    guard let ids = abandoned[key] else { return nil }
    let counted = ids.filter { id in flights[id]?.abandonedAt.map { uptime - $0 < Self.abandonedTime } ?? false }
    guard counted.count > Self.abandonedLimit, let id = counted.last else { return nil }
    abandoned[key]?.removeAll { $0 == id }
    let isOutdated = !mayStore(id)
    flights[id]?.isOutdated = isOutdated
    return id
  }

  /// Returns whether the result of a flight may still be stored.
  func mayStore(_ id: UInt64) -> Bool { flights[id]?.isInvalidated == false }

  /// Removes a flight that has ended, and returns it.
  mutating func end(_ key: Key, _ id: UInt64) -> Flight<Key, Value>? {
    if current[key] == id { current[key] = nil }
    abandoned[key]?.removeAll { $0 == id }
    if abandoned[key]?.isEmpty == true { abandoned[key] = nil }
    return flights.removeValue(forKey: id)
  }
}

/// The end of waiting for a flight.
enum FlightOutcome<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  case ended(Result<CacheEntry<Key, Value>, any Error>)
  case timedOut
  case cancelled
  /// Something was stored since the caller's lookup, or a flight that was cancelled before has ended: the caller should look again.
  case changed
}
