internal import Foundation
internal import Synchronization

// The third stage: an entry is made of the answer, committed, and only then given to the waiters.

extension CachedRepository {
  /// Makes an entry of what the source has answered, stores it, and returns it as it decodes from what was stored.
  ///
  /// Storage that fails does not fail this: the entry is then in memory only.
  nonisolated func store(
    _ answer: Fetched<Value>, of key: Key, base: CachedEntry<Key, Value>?, _ flight: UInt64
  ) async throws -> CacheEntry<Key, Value> {
    let uptime = clock.uptime
    let entry: CachedEntry<Key, Value>
    switch answer {
    case .value(let value, let validator, let freshUntil):
      entry = makeEntry(key, .value(value), freshLifetime(freshUntil), freshness.usable, validator: validator)
    case .notModified(let freshUntil):
      guard let base else { throw CacheError.nothingToRevalidate }
      state.withLock { $0.statistics.notModified += 1 }
      entry = makeEntry(key, base.content, freshLifetime(freshUntil), freshness.usable, validator: base.validator)
    case .absent(let reason, let lifetime):
      let lifetime = (lifetime ?? freshness.negative).bounded
      entry = makeEntry(key, .absent(reason: reason), lifetime, lifetime, validator: nil)
    }
    return await commit(entry, uptime, flight)
  }

  /// Returns how long a value that comes now is fresh: as its provider says, else as the policy does, shortened by jitter.
  private nonisolated func freshLifetime(_ freshUntil: Date?) -> Duration {
    guard let lifetime = freshUntil?.timeIntervalSince(clock.now), !lifetime.isNaN else {
      return freshness.fresh * (1 - freshness.jitter * random())
    }
    return min(Duration(bounding: lifetime).bounded, freshness.usable)
  }

  private nonisolated func makeEntry(
    _ key: Key, _ content: CachedEntry<Key, Value>.Content, _ fresh: Duration, _ usable: Duration, validator: String?
  ) -> CachedEntry<Key, Value> {
    let now = clock.now
    return CachedEntry(
      key: key, content: content, fetchedAt: now, freshUntil: now.addingTimeInterval(fresh.inSeconds),
      usableUntil: now.addingTimeInterval(max(usable, fresh).inSeconds), validator: validator)
  }

  /// The result of a commit.
  private struct Commit: Sendable {
    let entry: CacheEntry<Key, Value>
    let revision: Revision
    let victims: [EvictionIndex<Key>.Victim]
  }

  /// Commits an entry, and the evictions that make room for it.
  private nonisolated func commit(
    _ entry: CachedEntry<Key, Value>, _ uptime: Duration, _ flight: UInt64
  ) async -> CacheEntry<Key, Value> {
    let notStored = CacheEntry(entry, .none, nil, uptime: uptime)
    let replaced = state.withLock { $0.entries[entry.key] }
    if isReadOnly { return holdUnsaved(notStored, uptime, nil, flight, replaced) }
    do {
      if let limit = eviction.byteLimit, entry.byteCount > limit {
        await refuse(entry.key, flight)
        return notStored
      }
      let record = try storage.coder.encode(entry, decoding: true)
      await prepareEviction()
      let decoded = (record.decoded as? DecodedValue<CachedEntry<Key, Value>>)?.item ?? entry
      let collection = storage.collection
      let commit: Commit? = try await storage.core.write(nil) { [self] batch throws(RepositoryError) in
        // Looked at here, where writes have an order: the deletion of an invalidation comes after that, and so after this.
        guard state.withLock({ $0.mayStore(flight) }) else { return nil }
        try openEviction(&batch, uptime)
        try batch.put(record, in: collection)
        let revision = batch.revision
        let committed = state.withLock { state in
          let committed = CacheEntry(decoded, .stored(revision), record.key, uptime: uptime, previous: state.entries[entry.key])
          state.entries[entry.key] = committed
          return committed
        }
        return Commit(entry: committed, revision: revision, victims: try makeRoom(for: entry, record.key, uptime, in: &batch))
      }
      guard let commit else { return CacheEntry(decoded, .none, nil, uptime: uptime) }
      let hadUnsaved = state.withLock { state in
        state.settle(entry.key, commit.revision)
        state.count(commit.victims, upTo: commit.revision)
        defer { state.unsaved.remove(entry.key) }
        return state.unsaved[entry.key] != nil
      }
      if hadUnsaved { wakeReaders(of: entry.key) }
      return commit.entry
    } catch  where error.code == .cancelled {
      return notStored
    } catch {
      return holdUnsaved(notStored, uptime, error, flight, replaced)
    }
  }

  /// Does not store an entry that is larger than everything may be together, and removes the one before it.
  ///
  /// It is not kept in memory either: it is larger than what may be. Storage that fails keeps the one before it.
  private nonisolated func refuse(_ key: Key, _ flight: UInt64) async {
    guard state.withLock({ $0.mayStore(flight) }) else { return }
    do throws(RepositoryError) {
      try await remove(key)
      state.withLock { $0.statistics.evictions[.bytes, default: 0] += 1 }
    } catch {
      if error.code != .cancelled { state.withLock { $0.note(error) } }
    }
  }

  /// Keeps an entry in memory that could not be stored, so that a full disk does not become a storm of requests.
  private nonisolated func holdUnsaved(
    _ entry: CacheEntry<Key, Value>, _ uptime: Duration, _ error: RepositoryError?, _ flight: UInt64,
    _ replaced: CacheEntry<Key, Value>?
  ) -> CacheEntry<Key, Value> {
    let key = entry.stored.key
    let held = state.withLock { state in
      if let error { state.note(error) }
      // What was planned to go is still there, and what came is not.
      state.evictionIndex = nil
      guard state.mayStore(flight) else { return entry }
      state.entries[key] = replaced
      return state.unsaved.insert(entry.stored, uptime, eviction)
    }
    wakeReaders(of: key)
    return held
  }
}
