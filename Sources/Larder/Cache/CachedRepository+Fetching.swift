internal import Foundation
internal import Synchronization

extension CachedRepository {
  /// Requests the value of a key, retries as the ``RetryPolicy`` allows, and stores the answer.
  ///
  /// - Parameters:
  ///   - stored: The stored entry of the key, whose validator is sent with the request.
  ///   - flight: Number of the flight (the fetch that all callers of the key share) to which the request belongs.
  ///   - ticket: Membership of the key in its ``FetchGroup``, whose keys share one request.
  nonisolated func requestAndStore(
    _ key: Key, base stored: CachedEntry<Key, Value>?, flight: UInt64, ticket: FetchTicket
  ) async throws -> ResidentEntry<Key, Value> {
    var ticket = ticket
    // A request for the keys of a ``FetchGroup`` waits until each key has been added or its ticket was given up. Every exit of
    // `requestAndStore` gives the ticket up, so that the request does not wait in vain.
    defer { ticket.giveUp() }
    // The validator is sent only if a value is stored. Without a stored value, the answer "not modified" would leave the call without a
    // value.
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
        // The task of the fetch was cancelled because all callers had stopped waiting. If a caller or a refresh has joined the fetch since
        // then, a new task stores the answer, because a write in a cancelled task would fail.
        guard flights.isWanted(flight) else { throw CancellationError() }
        return try await Task { [self] in try await store(answer, of: key, base: base, flight: flight) }.value
      } catch {
        // The task of the fetch is cancelled when all callers have stopped waiting. If a caller has joined the fetch since then, an error
        // other than `CancellationError` counts as a failed fetch.
        let isGivenUp = Task.isCancelled && (error is CancellationError || !flights.isWanted(flight))
        guard !isGivenUp else { throw CancellationError() }
        state.withLock { $0.statistics.fetchErrors += 1 }
        // If ``HostLimits`` refuses a retry, the error of the previous attempt is thrown, because that error names the cause of the
        // failure.
        if let answered, (error as? CacheError)?.isOfLimits == true { throw answered }
        // Keys that failed in one request share one random number for the time until the retry. Keys with the same random number wait
        // equally long and are retried in one request again.
        let failure = ticket.failure
        let random = failure?.random(random) ?? random()
        guard !Task.isCancelled, let delay = retry.delay(after: attempt, ErrorTraits(error), random: random) else { throw error }
        answered = error
        // The ticket is given up before the wait, so that the request of the ``FetchGroup`` does not wait for the retry of this key.
        ticket.giveUp()
        ticket = failure?.ticket(after: delay) ?? FetchTicket()
        try await clock.sleep(for: delay)
        attempt += 1
      }
    }
  }
}

// The answer of the source becomes a cache entry, and the entry is committed before the waiting callers receive it.

extension CachedRepository {
  /// Makes an entry of the source's answer, stores the entry, and returns the entry as decoded from its stored bytes.
  ///
  /// If the storage fails, `store` does not throw, and keeps the entry in memory only.
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

  /// Returns the time for which a new value is fresh: until the provider's expiry, or else the policy's time, shortened by jitter.
  private nonisolated func freshLifetime(_ freshUntil: Date?) -> Duration {
    // A `freshUntil` that is NaN counts as missing. `Duration(bounding:)` would turn NaN into zero, and the value would be stale at once.
    guard let lifetime = freshUntil?.timeIntervalSince(clock.now), !lifetime.isNaN else {
      return freshness.fresh * (1 - freshness.jitter * random())
    }
    // The provider's expiry is cut to the usable time of the policy, so that a wrong expiry does not keep a value for longer.
    return min(Duration(bounding: lifetime).bounded, freshness.usable)
  }

  /// Makes an entry with the present date as the date of its fetch.
  private nonisolated func makeEntry(
    _ key: Key, _ content: CachedEntry<Key, Value>.Content, fresh: Duration, usable: Duration, validator: String?
  ) -> CachedEntry<Key, Value> {
    let now = clock.now
    return CachedEntry(
      key: key, content: content, fetchedAt: now, freshUntil: now.addingTimeInterval(fresh.inSeconds),
      usableUntil: now.addingTimeInterval(max(usable, fresh).inSeconds), validator: validator)
  }

  /// A committed entry, and the entries that its commit has evicted.
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
      // The entry is decoded again from its encoded bytes, so that the first answer equals the value that later launches read.
      let record = try storage.coder.encode(entry, decoding: true)
      // All stored entries are decoded before the write and not on the store's executor, where decoding them would block every other write.
      await prepareEviction()
      let decoded = (record.decoded as? DecodedValue<CachedEntry<Key, Value>>)?.item ?? entry
      let collection = storage.collection
      let commit: Commit? = try await storage.core.write(nil) { [self] batch throws(RepositoryError) in
        // An invalidation first marks the flight (the running fetch of the key) as invalidated and then deletes the record. The store's
        // executor runs one write at a time. If the flight is marked after the check of `mayStore`, the deletion is committed after the new
        // entry and removes it.
        guard flights.mayStore(flight) else { return nil }
        try openEviction(&batch, uptime: uptime)
        try batch.put(record, in: collection)
        let revision = batch.revision
        // The entry is put into memory before its commit is published, so that a lookup that finds the new record does not decode the
        // record.
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
        // The write has succeeded, so the unsaved entry of the key is older than the stored entry and is removed.
        defer { state.unsaved.remove(entry.key) }
        return state.unsaved[entry.key] != nil
      }
      // A reader of `updates(for:)` that the commit has woken may have read the unsaved entry before its removal, so the reader is woken
      // again.
      if hadUnsaved { wakeReaders(of: entry.key) }
      return commit.entry
    } catch  where error.code == .cancelled {
      // No caller waits for a cancelled write, and the cancellation is not a failure of the storage. For a cancelled write, no error is
      // counted and no unsaved entry is kept.
      return notStored
    } catch {
      return holdUnsaved(notStored, uptime: uptime, error: error, flight: flight, replaced: replaced)
    }
  }

  /// Removes the stored entry of a key whose new value is by itself larger than ``EvictionPolicy/byteLimit``.
  ///
  /// The new value is neither stored nor kept in memory. If the removal of the old entry fails, the old entry stays.
  private nonisolated func refuseOversized(_ key: Key, flight: UInt64) async {
    guard flights.mayStore(flight) else { return }
    do throws(RepositoryError) {
      try await removeEntry(of: key)
      state.withLock { $0.statistics.evictions[.bytes, default: 0] += 1 }
    } catch {
      if error.code != .cancelled { state.withLock { $0.countStorageError(error) } }
    }
  }

  /// Keeps an entry that could not be stored in memory, so that a full disk does not cause a request for every call.
  private nonisolated func holdUnsaved(
    _ entry: ResidentEntry<Key, Value>, uptime: Duration, error: RepositoryError?, flight: UInt64, replaced: ResidentEntry<Key, Value>?
  ) -> ResidentEntry<Key, Value> {
    let key = entry.stored.key
    // `checkingStorable` holds the lock of ``Flights``. Without the lock, an invalidation between the check and the insertion would leave
    // an invalidated value in memory.
    let held = flights.checkingStorable(flight) { mayStore in
      state.withLock { state in
        if let error { state.countStorageError(error) }
        // The failed commit has neither stored the new entry nor deleted the evicted entries, but the eviction index already contains both
        // changes. The eviction index is dropped, so that the next write builds it again.
        state.evictionIndex = nil
        guard mayStore else { return entry }
        // The entry that the failed commit was to replace is the current entry of the key again.
        state.entries[key] = replaced
        return state.unsaved.insert(entry.stored, uptime: uptime, policy: eviction)
      }
    }
    wakeReaders(of: key)
    return held
  }
}
