import Synchronization

/// A single-flight: concurrent callers of one key share one run of the work.
///
/// A cancelled caller returns at once and the others go on. When the last caller is cancelled, the work is cancelled.
final class SingleFlight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct Flight {
    let key: Key
    let task: Task<Void, Never>
    var waiters: [ObjectIdentifier: FirstAnswer<Value?>]
  }

  private struct State {
    var last = 0
    /// Number of the flight, which is one run of the work, that a new caller of a key joins.
    var current: [Key: Int] = [:]
    var flights: [Int: Flight] = [:]

    /// Removes and returns a flight.
    ///
    /// A later flight of its key stays.
    mutating func remove(_ id: Int) -> Flight? {
      guard let flight = flights.removeValue(forKey: id) else { return nil }
      // After `forgetAll` the key may belong to a newer flight, whose callers must stay joined.
      if current[flight.key] == id { current[flight.key] = nil }
      return flight
    }
  }

  private let state = Mutex(State())

  /// Returns the result of the work for a key, which this call joins or starts, or `nil` if the caller was cancelled.
  func value(for key: Key, _ work: @escaping @Sendable () async -> Value) async -> Value? {
    let waiter = FirstAnswer<Value?>()
    let flight = join(key, waiter, work)
    // Joined before the handler is set: a caller that is cancelled already must find its waiter in order to leave.
    return await withTaskCancellationHandler {
      await waiter.result()
    } onCancel: {
      leave(flight, waiter)
    }
  }

  /// Makes later callers start the work again.
  ///
  /// The flights under way still return their results to their callers.
  func forgetAll() { state.withLock { $0.current = [:] } }

  /// Number of waiting callers.
  var waiterCount: Int { state.withLock { $0.flights.values.reduce(0) { $0 + $1.waiters.count } } }

  private func join(_ key: Key, _ waiter: FirstAnswer<Value?>, _ work: @escaping @Sendable () async -> Value) -> Int {
    state.withLock { state in
      if let flight = state.current[key] {
        state.flights[flight]?.waiters[ObjectIdentifier(waiter)] = waiter
        return flight
      }
      state.last += 1
      let flight = state.last
      state.current[key] = flight
      // The task is started under the lock: `end` takes the same lock, so it cannot run before the flight is stored.
      let task = Task { end(flight, await work()) }
      state.flights[flight] = Flight(key: key, task: task, waiters: [ObjectIdentifier(waiter): waiter])
      return flight
    }
  }

  private func end(_ flight: Int, _ value: Value) {
    // The flight is removed before its waiters resume, so that a caller of that moment starts new work.
    guard let flight = state.withLock({ $0.remove(flight) }) else { return }
    for waiter in flight.waiters.values { waiter.give(value) }
  }

  private func leave(_ flight: Int, _ waiter: FirstAnswer<Value?>) {
    // Decided under the lock: a caller that joins at the same time must not get a flight that is being cancelled.
    let abandoned: Flight? = state.withLock { state in
      state.flights[flight]?.waiters[ObjectIdentifier(waiter)] = nil
      return state.flights[flight]?.waiters.isEmpty == true ? state.remove(flight) : nil
    }
    abandoned?.task.cancel()
    waiter.give(nil)
  }
}
