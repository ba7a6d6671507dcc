internal import Synchronization

// Single-flight: who comes and finds a fetch of its key under way waits for that one. Coming, leaving, landing and dooming are each one
// step under the lock, so there is no moment between them.

extension CachedRepository {
  /// Takes part in the fetch of a key, which is begun if there is none.
  ///
  /// - Parameters:
  ///   - sight: What the caller has seen; if there is something else by now, no fetch is begun, and the outcome is `changed`.
  ///   - timeout: How long to wait; the fetch goes on after that.
  nonisolated(nonsending) func take(
    _ key: Key, after sight: Sight<Key, Value>?, _ timeout: Duration?
  ) async -> FlightOutcome<Key, Value> {
    let waiter = Waiter<FlightOutcome<Key, Value>>()
    guard let id = enter(key, waiter, after: sight) else { return .changed }
    let timer = timeout.map { timeout in
      Task { [self] in
        do {
          try await clock.sleep(for: timeout)
          timeOut(id, waiter)
        } catch {}  // the fetch was faster
      }
    }
    defer { timer?.cancel() }
    return await withTaskCancellationHandler {
      await waiter.wait()
    } onCancel: {
      leave(id, key, waiter)
    }
  }

  /// Begins a fetch in the background, unless there is one, which then goes on when nobody waits for it any more.
  nonisolated func refresh(_ key: Key, _ sight: Sight<Key, Value>) {
    let uptime = clock.uptime
    guard state.withLock({ $0.holdOffs.error(key, uptime) }) == nil else { return }
    enter(key, nil, after: sight)
  }

  @discardableResult private nonisolated func enter(
    _ key: Key, _ waiter: Waiter<FlightOutcome<Key, Value>>?, after sight: Sight<Key, Value>?
  ) -> UInt64? {
    state.withLock { state in
      let id: UInt64
      if let current = state.current[key] {
        id = current
      } else {
        if let sight, version(key, sight.recordKey, state) != sight.version { return nil }
        state.lastFlight += 1
        id = state.lastFlight
        let token = FlightToken()
        let task = Task { [self] in await fly(key, id, token) }
        state.current[key] = id
        state.flights[id] = Flight(token: token, task: task)
      }
      if let waiter {
        state.flights[id]?.waiters[ObjectIdentifier(waiter)] = waiter
      } else {
        state.flights[id]?.isKept = true
      }
      return id
    }
  }

  /// Stops waiting; the last one to leave cancels the fetch.
  private nonisolated func leave(_ id: UInt64, _ key: Key, _ waiter: Waiter<FlightOutcome<Key, Value>>) {
    let task: Task<Void, Never>? = state.withLock { state in
      guard state.flights[id]?.waiters.removeValue(forKey: ObjectIdentifier(waiter)) != nil else { return nil }
      guard let flight = state.flights[id], flight.waiters.isEmpty, !flight.isKept else { return nil }
      // Out of the way at once: who comes now begins anew.
      state.flights[id] = nil
      if state.current[key] == id { state.current[key] = nil }
      flight.token.doom()
      return flight.task
    }
    task?.cancel()
    waiter.resolve(.cancelled)
  }

  private nonisolated func timeOut(_ id: UInt64, _ waiter: Waiter<FlightOutcome<Key, Value>>) {
    state.withLock { state in
      guard state.flights[id]?.waiters.removeValue(forKey: ObjectIdentifier(waiter)) != nil else { return }
      state.flights[id]?.isKept = true
    }
    waiter.resolve(.timedOut)
  }

  /// One fetch from beginning to end, away from every actor.
  @concurrent private nonisolated func fly(_ key: Key, _ id: UInt64, _ token: FlightToken) async {
    let result: Result<FoundEntry<Key, Value>, any Error>
    do { result = .success(try await fetchAndKeep(key, token)) } catch { result = .failure(error) }
    let uptime = clock.uptime
    let waiters = state.withLock { state in
      if state.current[key] == id { state.current[key] = nil }
      if !token.isDoomed {
        switch result {
        case .success: state.holdOffs.remove(key)
        case .failure(let error):
          if let wait = ErrorTraits(error).retryAfter { state.holdOffs.hold(key, until: uptime + wait, error, now: uptime) }
        }
      }
      return state.flights.removeValue(forKey: id)?.waiters ?? [:]
    }
    for waiter in waiters.values { waiter.resolve(.landed(result)) }
  }

  /// Asks the source, again if that may help, and stores what it answers.
  private nonisolated func fetchAndKeep(_ key: Key, _ token: FlightToken) async throws -> FoundEntry<Key, Value> {
    let base = look(key).found?.entry
    let validator = base?.value == nil ? nil : base?.validator
    var attempt = 1
    while true {
      state.withLock { $0.statistics.fetches += 1 }
      do {
        return try await keep(try await source.fetch(key, validator: validator), of: key, base: validator == nil ? nil : base, token)
      } catch {
        guard !Task.isCancelled else { throw CancellationError() }
        state.withLock { $0.statistics.fetchErrors += 1 }
        guard let delay = retry.delay(after: attempt, ErrorTraits(error), random: random()) else { throw error }
        try await clock.sleep(for: delay)
        attempt += 1
      }
    }
  }
}
