internal import Foundation
internal import Synchronization

extension FoundEntry {
  /// The error for an entry that says that there is no value.
  var absence: CacheError {
    if case .absent(let reason) = entry.content { .absent(reason: reason, since: entry.fetchedAt) } else { .notCached }
  }
}

extension CachedRepository {
  /// Makes an entry of what the source has answered, stores it, and returns it as it was read back.
  ///
  /// Storage that fails does not fail this.
  nonisolated func keep(
    _ answer: Fetched<Value>, of key: Key, base: CachedEntry<Key, Value>?, _ token: FlightToken
  ) async throws -> FoundEntry<Key, Value> {
    let uptime = clock.uptime
    let entry: CachedEntry<Key, Value>
    switch answer {
    case .value(let value, let validator, let freshUntil):
      entry = made(key, .value(value), freshLifetime(freshUntil), freshness.usable, validator: validator)
    case .notModified(let freshUntil):
      guard let base else { throw CacheError.nothingToRevalidate }
      state.withLock { $0.statistics.notModified += 1 }
      entry = made(key, base.content, freshLifetime(freshUntil), freshness.usable, validator: base.validator)
    case .absent(let reason, let lifetime):
      let lifetime = (lifetime ?? freshness.negative).bounded
      entry = made(key, .absent(reason: reason), lifetime, lifetime, validator: nil)
    }
    let (stored, version) = await store(entry, uptime, token)
    return FoundEntry(entry: stored, version: version, age: clock.uptime - uptime, origin: .remote)
  }

  /// Returns how long a value that comes now is fresh: as its provider says, else as the policy does, shortened by jitter.
  private nonisolated func freshLifetime(_ freshUntil: Date?) -> Duration {
    guard let lifetime = freshUntil?.timeIntervalSince(clock.now), !lifetime.isNaN else {
      return freshness.fresh * (1 - freshness.jitter * random())
    }
    return min(Duration(bounding: lifetime).bounded, freshness.usable)
  }

  private nonisolated func made(
    _ key: Key, _ content: CachedEntry<Key, Value>.Content, _ fresh: Duration, _ usable: Duration, validator: String?
  ) -> CachedEntry<Key, Value> {
    let now = clock.now
    return CachedEntry(
      key: key, content: content, fetchedAt: now, freshUntil: now.addingTimeInterval(fresh.inSeconds),
      usableUntil: now.addingTimeInterval(max(usable, fresh).inSeconds), validator: validator)
  }

  /// What a commit has done.
  private struct Kept: Sendable {
    let revision: Revision
    let victims: [EvictionIndex<Key>.Victim]
  }

  /// Stores an entry, and makes room for it in the same commit; returns what was read back, or the entry itself when it cannot be stored.
  private nonisolated func store(
    _ entry: CachedEntry<Key, Value>, _ uptime: Duration, _ token: FlightToken
  ) async -> (CachedEntry<Key, Value>, EntryVersion) {
    let known = state.withLock { $0.known[entry.key] }
    if isReadOnly { return (entry, holdUnsaved(entry, uptime, nil, token, known)) }
    do {
      if let limit = eviction.byteLimit, entry.byteCount > limit {
        await refuse(entry.key, token)
        return (entry, .none)
      }
      let record = try storage.coder.encode(entry, decoding: true)
      await prepareEviction()
      let decoded = (record.decoded as? DecodedValue<CachedEntry<Key, Value>>)?.item ?? entry
      let collection = storage.collection
      let kept: Kept? = try await storage.queue.write(nil) { [self] batch in
        // Looked at here, where writes have an order: the deletion of whoever dooms it comes after that, and so after this.
        guard !token.isDoomed else { return nil }
        try openEviction(&batch, uptime)
        try batch.upsert(record, in: collection)
        let revision = batch.revision
        state.withLock { state in
          state.known[entry.key] = KnownEntry(
            decoded, record.key, revision, age: .zero, uptime: uptime, wasAnswered: true, isMeasured: true, previous: state.known[entry.key]
          )
        }
        return Kept(revision: revision, victims: try makeRoom(for: entry, record.key, uptime, in: &batch))
      }
      guard let kept else { return (decoded, .none) }
      let hadUnsaved = state.withLock { state in
        state.settle(entry.key, kept.revision)
        state.count(kept.victims, upTo: kept.revision)
        defer { state.unsaved.remove(entry.key) }
        return state.unsaved[entry.key] != nil
      }
      if hadUnsaved { poke(entry.key) }
      return (try readBack(record.key, kept.revision) ?? decoded, .stored(kept.revision))
    } catch let error as RepositoryError where error.code == .cancelled {
      return (entry, .none)
    } catch {
      return (entry, holdUnsaved(entry, uptime, repositoryError(error), token, known))
    }
  }

  private nonisolated func readBack(_ key: RecordKey, _ revision: Revision) throws(RepositoryError) -> CachedEntry<Key, Value>? {
    guard let slot = try storage.queue.records(of: storage.collection)[key], slot.revision == revision else { return nil }
    return try slot.value(storage.coder)
  }

  /// Does not store an entry that is larger than everything may be together, and removes the one before it.
  ///
  /// It is not kept in memory either: it is larger than what may be. Storage that fails keeps the one before it.
  private nonisolated func refuse(_ key: Key, _ token: FlightToken) async {
    guard !token.isDoomed else { return }
    do {
      try await remove(key)
      state.withLock { $0.statistics.evictions[.bytes, default: 0] += 1 }
    } catch {
      let error = repositoryError(error)
      if error.code != .cancelled { state.withLock { $0.note(error) } }
    }
  }

  /// Keeps an entry in memory that could not be stored, so that a full disk does not become a storm of requests.
  private nonisolated func holdUnsaved(
    _ entry: CachedEntry<Key, Value>, _ uptime: Duration, _ error: RepositoryError?, _ token: FlightToken, _ known: KnownEntry<Value>?
  ) -> EntryVersion {
    let version: EntryVersion = state.withLock { state in
      if let error { state.note(error) }
      // What was planned to go is still there, and what came is not.
      state.evictionIndex = nil
      guard !token.isDoomed else { return .none }
      state.known[entry.key] = known
      return state.unsaved.insert(entry, uptime, eviction)
    }
    poke(entry.key)
    return version
  }
}

/// An error of storage as what it is.
func repositoryError(_ error: any Error) -> RepositoryError {
  error as? RepositoryError ?? RepositoryError(.inputOutput, "an unexpected kind of error", underlying: error)
}
