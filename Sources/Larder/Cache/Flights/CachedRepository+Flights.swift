internal import Synchronization

// Single-flight: who comes and finds a fetch of its key under way waits for that one. Coming, leaving, landing and dooming are each one
// step under the lock, so there is no moment between them.
//
// A fetch that was cancelled because nobody waited any more goes on where the source does not hear of it. Beside one of these another is begun;
// beside two, who comes waits for the end of the newer one, takes what it brings, and begins another only if that is nothing.

extension CachedRepository {
  /// Takes part in the fetch of a key, which is begun if there is none.
  ///
  /// - Parameters:
  ///   - sight: What the caller has seen; if there is something else by now, no fetch is begun, and the outcome is `changed`.
  ///   - timeout: How long to wait; the fetch goes on after that.
  nonisolated(nonsending) func take(
    _ key: Key, after sight: Sight<Key, Value>?, _ timeout: Duration?
  ) async -> FlightOutcome<Key, Value> {
    if Task.isCancelled { return .cancelled }
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
    guard !Task.isCancelled, mayRefresh(key) else { return }
    enter(key, nil, after: sight)
  }

  /// Whether it is time to refresh a key of which nobody waits for anything new.
  nonisolated func mayRefresh(_ key: Key) -> Bool {
    let uptime = clock.uptime
    return state.withLock { state in
      state.current[key] != nil || state.holdOffs.error(key, uptime) == nil && state.backOffs.error(key, uptime) == nil
    }
  }

  @discardableResult private nonisolated func enter(
    _ key: Key, _ waiter: Waiter<FlightOutcome<Key, Value>>?, after sight: Sight<Key, Value>?
  ) -> UInt64? {
    let uptime = clock.uptime
    var isBegun = false
    defer { if !isBegun { FetchTicket.current?.endCall() } }
    return state.withLock { state in
      let id: UInt64
      if let current = state.current[key] {
        id = current
      } else {
        if let sight, version(key, sight.recordKey, state) != sight.version { return nil }
        if let old = state.rejoin(key, uptime) {
          id = old
        } else {
          state.doom(key)
          state.lastFlight += 1
          id = state.lastFlight
          let token = FlightToken()
          let ticket = FetchTicket.current?.taken() ?? FetchTicket()
          let task = Task { [self] in await fly(key, id, token, ticket) }
          isBegun = true
          state.flights[id] = Flight(token: token, task: task)
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

  /// Stops waiting; the last one to leave cancels the fetch.
  private nonisolated func leave(_ id: UInt64, _ key: Key, _ waiter: Waiter<FlightOutcome<Key, Value>>) {
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

  private nonisolated func timeOut(_ id: UInt64, _ waiter: Waiter<FlightOutcome<Key, Value>>) {
    state.withLock { state in
      guard state.flights[id]?.waiters.removeValue(forKey: ObjectIdentifier(waiter)) != nil else { return }
      state.flights[id]?.isKept = true
    }
    waiter.resolve(.timedOut)
  }

  /// One fetch from beginning to end, away from every actor.
  @concurrent private nonisolated func fly(_ key: Key, _ id: UInt64, _ token: FlightToken, _ ticket: FetchTicket) async {
    let result: Result<FoundEntry<Key, Value>, any Error>
    do { result = .success(try await fetchAndKeep(key, id, token, ticket)) } catch { result = .failure(error) }
    let uptime = clock.uptime
    let flight: Flight<Key, Value>? = state.withLock { state in
      if !token.isDoomed { note(result, key, uptime, &state) }
      return state.land(key, id)
    }
    guard let flight else { return }
    var outcome = FlightOutcome<Key, Value>.landed(result)
    if flight.abandonedAt != nil {
      if case .failure = result { outcome = .changed }
      if flight.isOutdated { outcome = .changed }
    }
    for waiter in flight.waiters.values { waiter.resolve(outcome) }
  }

  /// Notes until when a key is to be left alone after a fetch.
  private nonisolated func note(
    _ result: Result<FoundEntry<Key, Value>, any Error>, _ key: Key, _ uptime: Duration, _ state: inout CacheState<Key, Value>
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

  /// Asks the source, again if that may help, and stores what it answers.
  private nonisolated func fetchAndKeep(
    _ key: Key, _ id: UInt64, _ token: FlightToken, _ ticket: FetchTicket
  ) async throws -> FoundEntry<Key, Value> {
    var ticket = ticket
    defer { ticket.giveUp() }
    let base = look(key).found?.entry
    let validator = base?.value == nil ? nil : base?.validator
    var attempt = 1
    var answered: (any Error)?
    while true {
      try Task.checkCancellation()
      state.withLock { $0.statistics.fetches += 1 }
      do {
        let answer = try await FetchTicket.$current.withValue(ticket) { try await source.fetch(key, validator: validator) }
        ticket.giveUp()
        guard Task.isCancelled else { return try await keep(answer, of: key, base: validator == nil ? nil : base, token) }
        // Nobody waited any more; if somebody does again, or wants it without waiting, it is kept, by a task that was not cancelled.
        guard state.withLock({ $0.flights[id]?.isWanted ?? false }) else { throw CancellationError() }
        return try await Task { [self] in try await keep(answer, of: key, base: validator == nil ? nil : base, token) }.value
      } catch {
        // Nobody waited any more; if somebody does again, its failure is one like any other.
        let isGivenUp = Task.isCancelled && (error is CancellationError || !state.withLock { $0.flights[id]?.isWanted ?? false })
        guard !isGivenUp else { throw CancellationError() }
        state.withLock { $0.statistics.fetchErrors += 1 }
        // That a limit did not let another attempt through says less than what came of the one before.
        if let answered, (error as? CacheError)?.isOfLimits == true { throw answered }
        // What has failed in one request is tried again in one: after the same time, which it would not be at random.
        let failure = ticket.failure
        let random = failure?.random(random) ?? random()
        guard !Task.isCancelled, let delay = retry.delay(after: attempt, ErrorTraits(error), random: random) else { throw error }
        answered = error
        ticket.giveUp()
        ticket = failure?.ticket(after: delay) ?? FetchTicket()
        try await clock.sleep(for: delay)
        attempt += 1
      }
    }
  }
}
