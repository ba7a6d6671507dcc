import Synchronization

/// Work that many ask for at a time and that is done once.
///
/// A caller who is cancelled leaves and the others go on; when the last one leaves, the work is cancelled.
final class SingleFlight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct Flight {
    let key: Key
    let task: Task<Void, Never>
    var waiters: [ObjectIdentifier: FirstAnswer<Value?>]
  }

  private struct State {
    var last = 0
    /// The flight that a new caller of a key joins.
    var current: [Key: Int] = [:]
    var flights: [Int: Flight] = [:]

    /// Takes a flight out; a later one of its key stays.
    mutating func remove(_ id: Int) -> Flight? {
      guard let flight = flights.removeValue(forKey: id) else { return nil }
      if current[flight.key] == id { current[flight.key] = nil }
      return flight
    }
  }

  private let state = Mutex(State())

  /// Joins the work for a key or begins it; `nil` when the caller was cancelled before it was done.
  func value(for key: Key, _ work: @escaping @Sendable () async -> Value) async -> Value? {
    let waiter = FirstAnswer<Value?>()
    let flight = join(key, waiter, work)
    return await withTaskCancellationHandler {
      await waiter.result()
    } onCancel: {
      leave(flight, waiter)
    }
  }

  /// Lets later callers begin anew; those who wait now still get what they wait for.
  func forgetAll() { state.withLock { $0.current = [:] } }

  /// The number of waiting callers.
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
      // The lock is held until the flight is noted: its end waits for that.
      let task = Task { end(flight, await work()) }
      state.flights[flight] = Flight(key: key, task: task, waiters: [ObjectIdentifier(waiter): waiter])
      return flight
    }
  }

  private func end(_ flight: Int, _ value: Value) {
    guard let flight = state.withLock({ $0.remove(flight) }) else { return }
    for waiter in flight.waiters.values { waiter.give(value) }
  }

  private func leave(_ flight: Int, _ waiter: FirstAnswer<Value?>) {
    let abandoned: Flight? = state.withLock { state in
      state.flights[flight]?.waiters[ObjectIdentifier(waiter)] = nil
      return state.flights[flight]?.waiters.isEmpty == true ? state.remove(flight) : nil
    }
    abandoned?.task.cancel()
    waiter.give(nil)
  }
}
