internal import Synchronization

// The second stage, single-flight: a caller that finds a flight of its key under way waits for that one. Joining, leaving, ending and
// invalidating are each one step under the lock, so there is no moment between them.
//
// A flight that was cancelled because no caller was left goes on where the source ignores cancellation. Beside one of these another is
// begun; beside two, a new caller waits for the end of the newer one, takes what it brings, and begins another only if that is nothing.

extension CachedRepository {
  /// Joins the flight of a key, which is begun if there is none, and waits for its end.
  ///
  /// - Parameters:
  ///   - lookup: What the caller has found; if there is something else by now, no flight is begun, and the outcome is `changed`.
  ///   - timeout: How long to wait; the flight goes on after that.
  nonisolated(nonsending) func join(
    _ key: Key, after lookup: Lookup<Key, Value>?, _ timeout: Duration?
  ) async -> FlightOutcome<Key, Value> {
    if Task.isCancelled { return .cancelled }
    let waiter = Flight<Key, Value>.Waiter()
    guard let id = enter(key, waiter, after: lookup) else { return .changed }
    let timer = timeout.map { clock.after($0) { [self] in timeOut(id, waiter) } }
    defer { timer?.cancel() }
    return await withTaskCancellationHandler {
      await waiter.value()
    } onCancel: {
      leave(id, key, waiter)
    }
  }

  /// Begins a flight in the background, unless there is one, which then goes on without a caller.
  nonisolated func refresh(_ key: Key, _ lookup: Lookup<Key, Value>) {
    guard !Task.isCancelled, mayRefresh(key) else { return }
    enter(key, nil, after: lookup)
  }

  /// Returns whether it is time to refresh a key without a caller that waits.
  nonisolated func mayRefresh(_ key: Key) -> Bool {
    let uptime = clock.uptime
    return state.withLock { state in
      state.current[key] != nil || !state.isHeld(key, uptime)
    }
  }

  @discardableResult private nonisolated func enter(
    _ key: Key, _ waiter: Flight<Key, Value>.Waiter?, after lookup: Lookup<Key, Value>?
  ) -> UInt64? {
    let uptime = clock.uptime
    var isBegun = false
    defer { if !isBegun { FetchTicket.current?.endCall() } }
    return state.withLock { state in
      let id: UInt64
      if let current = state.current[key] {
        id = current
      } else {
        if let lookup, version(key, lookup.recordKey, state) != lookup.version { return nil }
        // A flight may have failed since the caller has asked whether it may refresh.
        if waiter == nil, state.isHeld(key, uptime) { return nil }
        if let old = state.rejoin(key, uptime) {
          id = old
        } else {
          state.invalidateFlights(of: key)
          state.lastFlight += 1
          id = state.lastFlight
          let ticket = FetchTicket.current?.taken() ?? FetchTicket()
          let task = Task { [self] in await fly(key, id, ticket) }
          isBegun = true
          state.flights[id] = Flight(task: task)
        }
        state.current[key] = id
      }
      if let waiter {
        state.flights[id]?.waiters[ObjectIdentifier(waiter)] = waiter
      } else {
        state.flights[id]?.isKept = true
      }
      return id
    }
  }

  /// Stops waiting; the last one to leave cancels the flight.
  private nonisolated func leave(_ id: UInt64, _ key: Key, _ waiter: Flight<Key, Value>.Waiter) {
    let uptime = clock.uptime
    let task: Task<Void, Never>? = state.withLock { state in
      guard state.flights[id]?.waiters.removeValue(forKey: ObjectIdentifier(waiter)) != nil else { return nil }
      guard let flight = state.flights[id], flight.waiters.isEmpty, !flight.isKept else { return nil }
      // Out of the way at once, unless there are too many such.
      if state.current[key] == id { state.current[key] = nil }
      state.flights[id]?.abandonedAt = flight.abandonedAt ?? uptime
      state.abandoned[key, default: []].append(id)
      return flight.task
    }
    task?.cancel()
    waiter.resolve(.cancelled)
  }

  private nonisolated func timeOut(_ id: UInt64, _ waiter: Flight<Key, Value>.Waiter) {
    state.withLock { state in
      guard state.flights[id]?.waiters.removeValue(forKey: ObjectIdentifier(waiter)) != nil else { return }
      state.flights[id]?.isKept = true
    }
    waiter.resolve(.timedOut)
  }

  /// Runs a flight from beginning to end, away from every actor: request, storing, and the outcome for its waiters.
  @concurrent private nonisolated func fly(_ key: Key, _ id: UInt64, _ ticket: FetchTicket) async {
    let result: Result<CacheEntry<Key, Value>, any Error>
    do { result = .success(try await requestAndStore(key, id, ticket)) } catch { result = .failure(error) }
    let uptime = clock.uptime
    let flight: Flight<Key, Value>? = state.withLock { state in
      if state.mayStore(id) { noteHolds(result, key, uptime, &state) }
      return state.end(key, id)
    }
    guard let flight else { return }
    var outcome = FlightOutcome<Key, Value>.ended(result)
    if flight.abandonedAt != nil {
      if case .failure = result { outcome = .changed }
      if flight.isOutdated { outcome = .changed }
    }
    for waiter in flight.waiters.values { waiter.resolve(outcome) }
  }

  /// Notes until when a key is to be left alone after a flight.
  private nonisolated func noteHolds(
    _ result: Result<CacheEntry<Key, Value>, any Error>, _ key: Key, _ uptime: Duration, _ state: inout CacheState<Key, Value>
  ) {
    switch result {
    case .success:
      state.holdOffs.remove(key)
      state.backOffs.remove(key)
    case .failure(let error):
      if error is CancellationError { return }
      if let wait = ErrorTraits(error).retryAfter { state.holdOffs.hold(key, until: uptime + wait, error, now: uptime) }
      state.backOffs.hold(key, until: uptime + max(retry.cap, .seconds(1)), error, now: uptime)
    }
  }
}
