internal import Synchronization

extension CachedRepository {
  /// Asks the source, again if that may help, and stores what it answers.
  nonisolated func requestAndStore(
    _ key: Key, _ id: UInt64, _ ticket: FetchTicket
  ) async throws -> CacheEntry<Key, Value> {
    var ticket = ticket
    defer { ticket.giveUp() }
    let stored = lookup(key).entry?.stored
    // Without a value to fall back on, "not modified" would be no answer.
    let base = stored?.value == nil || stored?.validator == nil ? nil : stored
    var attempt = 1
    var answered: (any Error)?
    while true {
      try Task.checkCancellation()
      state.withLock { $0.statistics.fetches += 1 }
      do {
        let answer = try await FetchTicket.$current.withValue(ticket) { try await source.fetch(key, validator: base?.validator) }
        ticket.giveUp()
        guard Task.isCancelled else { return try await store(answer, of: key, base: base, id) }
        // No caller was left. If one has come since, or a refresh wants it, it is stored, by a task that was not cancelled.
        guard state.withLock({ $0.flights[id]?.isWanted ?? false }) else { throw CancellationError() }
        return try await Task { [self] in try await store(answer, of: key, base: base, id) }.value
      } catch {
        // No caller was left. If one has come since, this is a failure like any other.
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
