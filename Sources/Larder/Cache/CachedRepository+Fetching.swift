internal import Foundation
internal import Synchronization

extension CachedRepository {
  /// Requests the value of a key, retries as the policy allows, and stores the answer.
  ///
  /// - Parameters:
  ///   - stored: The stored entry of the key, whose validator the request carries.
  ///   - flight: Number of the flight that the request belongs to.
  ///   - ticket: Place of the key in its ``FetchGroup``.
  nonisolated func requestAndStore(
    _ key: Key, base stored: CachedEntry<Key, Value>?, flight: UInt64, ticket: FetchTicket
  ) async throws -> ResidentEntry<Key, Value> {
    var ticket = ticket
    // However the request ends, the other keys of the group must not wait for this one.
    defer { ticket.giveUp() }
    // Without a stored value, the answer "not modified" could not be turned into one.
    let base = stored?.value == nil || stored?.validator == nil ? nil : stored
    var attempt = 1
    var answered: (any Error)?
    while true {
      try Task.checkCancellation()
      state.withLock { $0.statistics.fetches += 1 }
      do {
        let answer = try await FetchTicket.$current.withValue(ticket) { try await source.fetch(key, validator: base?.validator) }
        ticket.giveUp()
        guard Task.isCancelled else { return try await store(answer, of: key, base: base, flight: flight) }
        // All callers have left. If a caller or a refresh joined since, a task that is not cancelled stores the answer.
        guard flights.isWanted(flight) else { throw CancellationError() }
        return try await Task { [self] in try await store(answer, of: key, base: base, flight: flight) }.value
      } catch {
        // All callers have left. If a caller joined since, this is a failure like any other, and is counted.
        let isGivenUp = Task.isCancelled && (error is CancellationError || !flights.isWanted(flight))
        guard !isGivenUp else { throw CancellationError() }
        state.withLock { $0.statistics.fetchErrors += 1 }
        // A limit that refuses a retry says less than the error of the attempt before, so that error is thrown.
        if let answered, (error as? CacheError)?.isOfLimits == true { throw answered }
        // Keys that failed in one request wait equally long, so that they are retried in one request. Random waits would separate them.
        let failure = ticket.failure
        let random = failure?.random(random) ?? random()
        guard !Task.isCancelled, let delay = retry.delay(after: attempt, ErrorTraits(error), random: random) else { throw error }
        answered = error
        // Before the wait, so that the group of the first attempt does not wait for this key's retry.
        ticket.giveUp()
        ticket = failure?.ticket(after: delay) ?? FetchTicket()
        try await clock.sleep(for: delay)
        attempt += 1
      }
    }
  }
}

// An answer becomes an entry, is committed, and only then reaches the waiters.

extension CachedRepository {
  /// Makes an entry of the source's answer, stores it, and returns it as it decodes from the stored bytes.
  ///
  /// A failure of the storage is not thrown. The entry is then kept in memory only.
  nonisolated func store(
    _ answer: Fetched<Value>, of key: Key, base: CachedEntry<Key, Value>?, flight: UInt64
  ) async throws -> ResidentEntry<Key, Value> {
    let uptime = clock.uptime
    let entry: CachedEntry<Key, Value>
    switch answer {
    case .value(let value, let validator, let freshUntil):
      entry = makeEntry(key, .value(value), fresh: freshLifetime(freshUntil), usable: freshness.usable, validator: validator)
    case .notModified(let freshUntil):
      guard let base else { throw CacheError.nothingToRevalidate }
      state.withLock { $0.statistics.notModified += 1 }
      entry = makeEntry(
        key, base.content, fresh: freshLifetime(freshUntil), usable: freshness.usable, validator: base.validator)
    case .absent(let reason, let lifetime):
      let lifetime = (lifetime ?? freshness.negative).bounded
      entry = makeEntry(key, .absent(reason: reason), fresh: lifetime, usable: lifetime, validator: nil)
    }
    return await commitEntry(entry, uptime: uptime, flight: flight)
  }

  /// Returns how long a new value is fresh: until the provider's expiry, or else as the policy says, shortened by jitter.
  private nonisolated func freshLifetime(_ freshUntil: Date?) -> Duration {
    // A date that is not a number counts as none. Its lifetime would be zero, and the value stale at once.
    guard let lifetime = freshUntil?.timeIntervalSince(clock.now), !lifetime.isNaN else {
      return freshness.fresh * (1 - freshness.jitter * random())
    }
    // At most the usable time, so that a wrong expiry of the provider does not keep a value past the policy.
    return min(Duration(bounding: lifetime).bounded, freshness.usable)
  }

  /// Makes an entry that was fetched now.
  private nonisolated func makeEntry(
    _ key: Key, _ content: CachedEntry<Key, Value>.Content, fresh: Duration, usable: Duration, validator: String?
  ) -> CachedEntry<Key, Value> {
    let now = clock.now
    return CachedEntry(
      key: key, content: content, fetchedAt: now, freshUntil: now.addingTimeInterval(fresh.inSeconds),
      usableUntil: now.addingTimeInterval(max(usable, fresh).inSeconds), validator: validator)
  }

  /// A committed entry and the entries that were evicted in its commit.
  private typealias Commit = (entry: ResidentEntry<Key, Value>, victims: [EvictionIndex<Key>.Victim])

  /// Commits an entry together with the evictions that make room for it.
  private nonisolated func commitEntry(
    _ entry: CachedEntry<Key, Value>, uptime: Duration, flight: UInt64
  ) async -> ResidentEntry<Key, Value> {
    let notStored = ResidentEntry(entry, version: .none, recordKey: nil, uptime: uptime)
    let replaced = state.withLock { $0.entries[entry.key] }
    if isReadOnly { return holdUnsaved(notStored, uptime: uptime, error: nil, flight: flight, replaced: replaced) }
    do {
      if let limit = eviction.byteLimit, entry.byteCount > limit {
        await refuseOversized(entry.key, flight: flight)
        return notStored
      }
      // Decoded again from its bytes, so that the first answer is the value that later launches read.
      let record = try storage.coder.encode(entry, decoding: true)
      // Before the write, since decoding every record would block the store's executor.
      await prepareEviction()
      let decoded = (record.decoded as? DecodedValue<CachedEntry<Key, Value>>)?.item ?? entry
      let collection = storage.collection
      let commit: Commit? = try await storage.core.write(nil) { [self] batch throws(RepositoryError) in
        // Checked on the executor, which orders writes: the deletion of an invalidation that comes later is committed after this entry.
        guard flights.mayStore(flight) else { return nil }
        try openEviction(&batch, uptime: uptime)
        try batch.put(record, in: collection)
        let revision = batch.revision
        // Before the commit is published, so that a reader that sees the new record finds its entry and does not decode the record.
        let committed = state.withLock { state in
          let committed = ResidentEntry(
            decoded, version: .stored(revision), recordKey: record.key, uptime: uptime, previous: state.entries[entry.key])
          state.entries[entry.key] = committed
          return committed
        }
        return (committed, try makeRoom(for: entry, recordKey: record.key, uptime: uptime, in: &batch))
      }
      guard let commit else { return ResidentEntry(decoded, version: .none, recordKey: nil, uptime: uptime) }
      let hadUnsaved = state.withLock { state in
        state.releasePrevious(of: entry.key, at: commit.entry.revision)
        state.countEvictions(commit.victims, upTo: commit.entry.revision)
        // The store works again, and the value that only memory held is older than this one.
        defer { state.unsaved.remove(entry.key) }
        return state.unsaved[entry.key] != nil
      }
      if hadUnsaved { wakeReaders(of: entry.key) }
      return commit.entry
    } catch  where error.code == .cancelled {
      // Nobody waits for a cancelled write, and the storage has not failed.
      return notStored
    } catch {
      return holdUnsaved(notStored, uptime: uptime, error: error, flight: flight, replaced: replaced)
    }
  }

  /// Refuses an entry that is larger than the limit of all entries together, and removes the entry before it.
  ///
  /// The refused entry is not kept in memory either. If the removal fails, the entry before it stays.
  private nonisolated func refuseOversized(_ key: Key, flight: UInt64) async {
    guard flights.mayStore(flight) else { return }
    do throws(RepositoryError) {
      try await removeEntry(of: key)
      state.withLock { $0.statistics.evictions[.bytes, default: 0] += 1 }
    } catch {
      if error.code != .cancelled { state.withLock { $0.countStorageError(error) } }
    }
  }

  /// Keeps an entry in memory that could not be stored, so that a full disk does not cause a request for every call.
  private nonisolated func holdUnsaved(
    _ entry: ResidentEntry<Key, Value>, uptime: Duration, error: RepositoryError?, flight: UInt64, replaced: ResidentEntry<Key, Value>?
  ) -> ResidentEntry<Key, Value> {
    let key = entry.stored.key
    // With the flights locked: an invalidation between the check and the insertion would leave an invalidated value in memory.
    let held = flights.checkingStorable(flight) { mayStore in
      state.withLock { state in
        if let error { state.countStorageError(error) }
        // The planned victims are still stored and the new entry is not, so the index is built again.
        state.evictionIndex = nil
        guard mayStore else { return entry }
        // The entry that the failed commit was to replace is the current one again.
        state.entries[key] = replaced
        return state.unsaved.insert(entry.stored, uptime: uptime, policy: eviction)
      }
    }
    wakeReaders(of: key)
    return held
  }
}
