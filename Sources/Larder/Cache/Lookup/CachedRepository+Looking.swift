internal import Foundation
internal import Synchronization

/// What is there of a key.
struct Sight<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  let found: FoundEntry<Key, Value>?
  let recordKey: RecordKey?
  var version: EntryVersion { found?.version ?? missing }
  /// The version of a record that is there but cannot be read.
  var missing = EntryVersion.none
}

extension CachedRepository {
  /// Looks at what is stored of a key, without counting or touching anything.
  ///
  /// A record that cannot be read is none, and is counted as an error of storage.
  nonisolated func look(_ key: Key) -> Sight<Key, Value> {
    let uptime = clock.uptime
    let (known, unsaved) = state.withLock { ($0.known[key], $0.unsaved[key]) }
    if let unsaved {
      let found = FoundEntry(
        entry: unsaved.entry, version: .unsaved(unsaved.serial), age: uptime - unsaved.uptime, origin: .memory)
      return Sight(found: found, recordKey: known?.recordKey)
    }
    var recordKey = known?.recordKey
    var version = EntryVersion.none
    do throws(RepositoryError) {
      let address = if let recordKey { recordKey } else { try storage.coder.keys.key(for: key) }
      recordKey = address
      guard let slot = try storage.queue.records(of: storage.collection)[address] else {
        if let known { forget(key, known) }
        return Sight(found: nil, recordKey: address)
      }
      version = .stored(slot.revision)
      let entry = try slot.value(storage.coder)
      return Sight(found: found(entry, slot.revision, address, known, uptime), recordKey: address)
    } catch {
      state.withLock { $0.note(error) }
      return Sight(found: nil, recordKey: recordKey, missing: version)
    }
  }

  /// Forgets what is known of an entry that somebody else has removed; not of one that is only on its way to being visible.
  private nonisolated func forget(_ key: Key, _ known: KnownEntry<Value>) {
    let snapshot = storage.snapshot
    guard known.revision <= snapshot.revision, snapshot.records[known.recordKey] == nil else { return }
    state.withLock { state in
      guard state.known[key]?.revision == known.revision else { return }
      state.known[key] = nil
      state.evictionIndex?.remove(key)
    }
  }

  private nonisolated func found(
    _ entry: CachedEntry<Key, Value>, _ revision: Revision, _ recordKey: RecordKey, _ known: KnownEntry<Value>?, _ uptime: Duration
  ) -> FoundEntry<Key, Value> {
    if let known = known?.at(revision) {
      return FoundEntry(
        entry: entry, version: .stored(revision), age: known.age(at: uptime), origin: known.wasAnswered ? .memory : .disk)
    }
    if let known, known.fetchedAt == entry.fetchedAt {
      // The same fetch, written again by a migration or by another process: it goes on aging here.
      let age = known.age(at: uptime)
      know(
        KnownEntry(
          entry, recordKey, revision, age: age, uptime: uptime, wasAnswered: known.wasAnswered, isMeasured: known.isMeasured), of: entry.key
      )
      return FoundEntry(entry: entry, version: .stored(revision), age: age, origin: known.wasAnswered ? .memory : .disk)
    }
    // Of an earlier run, another process or another cache: what the wall clock said when it arrived counts, since it may have been set after that.
    let present = arrivals.present(for: revision, at: uptime)
    let age = entry.age(at: present)
    know(KnownEntry(entry, recordKey, revision, age: age, uptime: uptime, wasAnswered: false, isMeasured: false), of: entry.key)
    if !isReadOnly, entry.needsFutureNote(at: present) { noteFuture(entry, revision, recordKey, present) }
    return FoundEntry(entry: entry, version: .stored(revision), age: age, origin: .disk)
  }

  /// Notes what is known of an entry, unless something newer is.
  private nonisolated func know(_ new: KnownEntry<Value>, of key: Key) {
    state.withLock { state in
      if let known = state.known[key], known.revision >= new.revision { return }
      state.known[key] = new
    }
  }

  /// Stores that an entry is from the future, unless it was replaced; in the background, since nobody needs it before the next start.
  private nonisolated func noteFuture(
    _ entry: CachedEntry<Key, Value>, _ revision: Revision, _ recordKey: RecordKey, _ present: Date
  ) {
    Task { [self] in
      do {
        let record = try storage.coder.encode(entry.noticedInFuture(at: present), decoding: true)
        let new = try await storage.queue.write(nil) { [self] batch in
          try batch.upsert(record, in: storage.collection, expecting: .revision(revision))
          let new = batch.revision
          state.withLock { state in
            guard let known = state.known[entry.key], known.revision == revision else { return }
            state.known[entry.key] = KnownEntry(known, at: new, previous: known)
          }
          return new
        }
        state.withLock { $0.settle(entry.key, new) }
      } catch {
        // Without the note the entry lives until the next start at most as long as one does.
      }
    }
  }

  /// Returns which version of a key there is now; asked with the state locked.
  nonisolated func version(_ key: Key, _ recordKey: RecordKey?, _ state: borrowing CacheState<Key, Value>) -> EntryVersion {
    if let unsaved = state.unsaved[key] { return .unsaved(unsaved.serial) }
    guard let recordKey else { return .none }
    do throws(RepositoryError) {
      let slot = try storage.queue.records(of: storage.collection)[recordKey]
      return slot.map { .stored($0.revision) } ?? .none
    } catch {
      return .none  // closed: nothing is there any more
    }
  }

  /// Gives a found entry out: counts it, and notes that it was used.
  nonisolated func serve(_ found: FoundEntry<Key, Value>, _ refreshError: (any Error)? = nil) -> Cached<Value>? {
    guard let cached = found.cached(refreshError) else { return nil }
    let key = found.entry.key
    state.withLock { state in
      if cached.state == .fresh { state.statistics.hits += 1 } else { state.statistics.staleServes += 1 }
      if cached.origin == .disk { state.known[key]?.noteAnswer() }
      state.evictionIndex?.touch(key)
    }
    return cached
  }
}
