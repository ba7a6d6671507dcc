internal import Foundation
internal import Synchronization

// The first stage: what is there of a key, without waiting and without counting.

extension CachedRepository {
  /// Returns the entry of a fresh value that was answered with before, which most calls want and which must be cheap; `nil` for all else.
  ///
  /// Counts the answer. It says what ``lookup(_:)`` and ``answer(_:_:)`` would, with one reading of the clock and no decoding; and without
  /// a look at the records, as long as nothing was published since the entry was last seen to be of its record.
  nonisolated func freshEntry(_ key: Key, _ policy: FetchPolicy, at uptime: Duration) -> CacheEntry<Key, Value>? {
    switch policy {
    case .networkOnly, .networkFirst: return nil
    case .cacheFirst, .staleWhileRevalidate, .cacheOnly: break
    }
    guard let publication = storage.core.openPublication else { return nil }
    // Set from within, since the type of what a closure returns is looked up.
    var hit: CacheEntry<Key, Value>?
    state.withLock { state in
      guard let entry = state.entries[key], entry.isHit(at: uptime), state.unsaved.isEmpty else { return }
      guard entry.isConfirmed(at: publication) || confirms(entry) else { return }
      state.statistics.hits += 1
      state.evictionIndex?.touch(key)
      hit = entry
    }
    return hit
  }

  /// Returns whether an entry is that of the record that readers see now, and notes it in the entry.
  private nonisolated func confirms(_ entry: CacheEntry<Key, Value>) -> Bool {
    let (records, publication) = storage.core.publishedRecords(of: storage.collection)
    guard let recordKey = entry.recordKey, records[recordKey]?.revision == entry.revision else { return false }
    entry.confirm(at: publication)
    return true
  }

  /// Returns what is there of a key, without counting or touching anything.
  ///
  /// A record that cannot be read is none, and is counted as an error of storage.
  nonisolated func lookup(_ key: Key) -> Lookup<Key, Value> {
    let uptime = clock.uptime
    let (entry, unsaved) = state.withLock { ($0.entries[key], $0.unsaved[key]) }
    if let unsaved, !isSuperseded(unsaved, entry?.recordKey) { return Lookup(unsaved, at: uptime, entry?.recordKey) }
    var recordKey = entry?.recordKey
    var version = EntryVersion.none
    do throws(RepositoryError) {
      let address = if let recordKey { recordKey } else { try storage.coder.keys.key(for: key) }
      recordKey = address
      guard let slot = try storage.core.records(of: storage.collection)[address] else {
        if let entry { forget(entry, address) }
        return Lookup(nil, at: uptime, address)
      }
      version = .stored(slot.revision)
      if let entry = entry?.at(slot.revision) { return Lookup(entry, at: uptime, address) }
      return Lookup(arrived(try slot.value(storage.coder), slot.revision, address, entry, uptime), at: uptime, address)
    } catch {
      state.withLock { $0.note(error) }
      return Lookup(nil, at: uptime, recordKey, version)
    }
  }

  /// Whether another process has stored a newer value than the one that a cache over a read-only store keeps in memory, which then goes.
  ///
  /// A cache that writes removes it when it stores the next value.
  private nonisolated func isSuperseded(_ unsaved: CacheEntry<Key, Value>, _ recordKey: RecordKey?) -> Bool {
    guard isReadOnly else { return false }
    do throws(RepositoryError) {
      let address = if let recordKey { recordKey } else { try storage.coder.keys.key(for: unsaved.stored.key) }
      guard let slot = try storage.core.records(of: storage.collection)[address] else { return false }
      guard try slot.value(storage.coder).fetchedAt > unsaved.stored.fetchedAt else { return false }
    } catch {
      return false  // what cannot be read supersedes nothing
    }
    state.withLock { $0.unsaved.remove(unsaved.stored.key) }
    return true
  }

  /// Removes the entry of a record that was deleted by another cache or process; not of one whose commit is not visible yet.
  private nonisolated func forget(_ entry: CacheEntry<Key, Value>, _ recordKey: RecordKey) {
    let snapshot = storage.snapshot
    guard entry.revision <= snapshot.revision, snapshot.records[recordKey] == nil else { return }
    state.withLock { state in
      let key = entry.stored.key
      guard state.entries[key]?.version == entry.version else { return }
      state.entries[key] = nil
      state.evictionIndex?.remove(key)
    }
  }

  /// Returns the entry of a record that this cache did not store, with its age.
  private nonisolated func arrived(
    _ stored: CachedEntry<Key, Value>, _ revision: Revision, _ recordKey: RecordKey, _ older: CacheEntry<Key, Value>?, _ uptime: Duration
  ) -> CacheEntry<Key, Value> {
    let entry: CacheEntry<Key, Value>
    if let older, older.stored.fetchedAt == stored.fetchedAt {
      // The same fetch, written again by a migration or by another process: it goes on aging here.
      entry = CacheEntry(older, stored, at: revision)
    } else {
      // Of an earlier run, another process or another cache. The wall clock of its arrival counts, since it may have been set after that.
      let present = arrivals.present(for: revision, at: uptime)
      entry = CacheEntry(
        stored, .stored(revision), recordKey, age: stored.age(at: present), uptime: uptime, wasAnswered: false, isMeasured: false)
      if !isReadOnly, stored.needsFutureNote(at: present) { storeFutureNote(entry, recordKey, present) }
    }
    state.withLock { state in
      if let newer = state.entries[stored.key], newer.revision >= revision { return }
      state.entries[stored.key] = entry
    }
    return entry
  }

  /// Stores that an entry is from the future, unless it was replaced; in the background, since it matters at the next start only.
  private nonisolated func storeFutureNote(_ entry: CacheEntry<Key, Value>, _ recordKey: RecordKey, _ present: Date) {
    Task { [self] in
      let key = entry.stored.key
      do {
        let noted = entry.stored.noticedInFuture(at: present)
        let record = try storage.coder.encode(noted, decoding: true)
        let new = try await storage.core.write(nil) { [self] batch throws(RepositoryError) in
          try batch.put(record, in: storage.collection, expecting: .revision(entry.revision))
          let new = batch.revision
          state.withLock { state in
            guard let current = state.entries[key], current.version == entry.version else { return }
            state.entries[key] = CacheEntry(current, noted, at: new, previous: current)
          }
          return new
        }
        state.withLock { $0.settle(key, new) }
      } catch {
        // Without the note the entry lives until the next start at most as long as one does. The revision that it was to have may be
        // that of another record's commit now.
        state.withLock { state in
          if let current = state.entries[key], current.replaces(entry.version) { state.entries[key] = entry }
        }
      }
    }
  }

  /// Returns which version of a key there is now; asked with the state locked.
  nonisolated func version(_ key: Key, _ recordKey: RecordKey?, _ state: borrowing CacheState<Key, Value>) -> EntryVersion {
    if let unsaved = state.unsaved[key] { return unsaved.version }
    guard let recordKey else { return .none }
    do throws(RepositoryError) {
      let slot = try storage.core.records(of: storage.collection)[recordKey]
      return slot.map { .stored($0.revision) } ?? .none
    } catch {
      return .none  // closed: nothing is there any more
    }
  }
}
