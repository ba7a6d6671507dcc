import Synchronization

/// Work that many ask for at a time and that is done once.
///
/// A caller who is cancelled leaves and the others go on; when the last one leaves, the work is cancelled.
final class SingleFlight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct Flight {
    let key: Key
    var waiters: [Int: CheckedContinuation<Value?, Never>]
    var task: Task<Void, Never>?
  }

  private struct State {
    var numbers = 0
    /// The flight that a new caller of a key joins.
    var current: [Key: Int] = [:]
    var flights: [Int: Flight] = [:]
    var flightOfWaiter: [Int: Int] = [:]

    mutating func number() -> Int {
      numbers += 1
      return numbers
    }

    /// Takes a flight out; a later one of its key stays.
    mutating func remove(_ flight: Int) -> Flight? {
      guard let removed = flights.removeValue(forKey: flight) else { return nil }
      if current[removed.key] == flight { current[removed.key] = nil }
      for waiter in removed.waiters.keys { flightOfWaiter[waiter] = nil }
      return removed
    }
  }

  private let state = Mutex(State())

  /// Joins the work for a key or begins it; `nil` when the caller was cancelled before it was done.
  func value(for key: Key, _ work: @escaping @Sendable () async -> Value) async -> Value? {
    let waiter = state.withLock { $0.number() }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if let flight = join(key, waiter, continuation) { begin(flight, work) }
        // Cancelled before it joined: the handler has found no waiter to resume.
        if Task.isCancelled { leave(waiter) }
      }
    } onCancel: {
      leave(waiter)
    }
  }

  /// Lets later callers begin anew; those who wait now still get what they wait for.
  func forgetAll() { state.withLock { $0.current = [:] } }

  /// The number of waiting callers.
  var waiterCount: Int { state.withLock { $0.flightOfWaiter.count } }

  /// Returns the number of a flight that has to be begun.
  private func join(_ key: Key, _ waiter: Int, _ continuation: CheckedContinuation<Value?, Never>) -> Int? {
    state.withLock { state in
      if let flight = state.current[key] {
        state.flights[flight]?.waiters[waiter] = continuation
        state.flightOfWaiter[waiter] = flight
        return nil
      }
      let flight = state.number()
      state.current[key] = flight
      state.flights[flight] = Flight(key: key, waiters: [waiter: continuation])
      state.flightOfWaiter[waiter] = flight
      return flight
    }
  }

  private func begin(_ flight: Int, _ work: @escaping @Sendable () async -> Value) {
    let task = Task { end(flight, await work()) }
    let isAbandoned = state.withLock { state in
      state.flights[flight]?.task = task
      return state.flights[flight] == nil
    }
    // Done already, which makes this harmless, or left by the only one who wanted it.
    if isAbandoned { task.cancel() }
  }

  private func end(_ flight: Int, _ value: Value) {
    let waiters = state.withLock { state in
      state.remove(flight).map { Array($0.waiters.values) } ?? []
    }
    for waiter in waiters { waiter.resume(returning: value) }
  }

  private func leave(_ waiter: Int) {
    let (continuation, task) = state.withLock { state -> (CheckedContinuation<Value?, Never>?, Task<Void, Never>?) in
      guard let flight = state.flightOfWaiter.removeValue(forKey: waiter) else { return (nil, nil) }
      let continuation = state.flights[flight]?.waiters.removeValue(forKey: waiter)
      let isLast = state.flights[flight]?.waiters.isEmpty ?? false
      return (continuation, isLast ? state.remove(flight)?.task : nil)
    }
    task?.cancel()
    continuation?.resume(returning: nil)
  }
}
