internal import Foundation
internal import Synchronization

extension CachedRepository {
  /// True if the eviction policy limits the size of the cache.
  ///
  /// A cache without size limits keeps no eviction index.
  private nonisolated var isBounded: Bool { eviction != .none }

  /// Decodes all stored entries in parallel, before the eviction index is built from them on the store's executor.
  nonisolated func prepareEviction() async {
    guard isBounded, state.withLock({ $0.evictionIndex == nil }) else { return }
    do throws(RepositoryError) { _ = try await storage.loadAll() } catch {}  // the write after `prepareEviction` throws the same error
  }

  /// Builds the eviction index of the stored entries, unless the index exists.
  ///
  /// `openEviction` must run on the store's executor.
  nonisolated func openEviction(_ batch: inout PendingState, uptime: Duration) throws(RepositoryError) {
    guard isBounded, state.withLock({ $0.evictionIndex == nil }) else { return }
    try buildIndex(&batch, uptime: uptime)
  }

  /// Deletes the entries that must be evicted for a new entry, in the commit that stores the new entry.
  ///
  /// `makeRoom` must run on the store's executor.
  nonisolated func makeRoom(
    for entry: CachedEntry<Key, Value>, recordKey: RecordKey, uptime: Duration, in batch: inout PendingState
  ) throws(RepositoryError) -> [EvictionIndex<Key>.Victim] {
    guard isBounded else { return [] }
    let expiry = uptime + entry.usableLifetime
    let item = EvictionIndex<Key>.Item(byteCount: entry.byteCount, expiry: expiry, provenExpiry: expiry, recordKey: recordKey)
    let victims = state.withLock { $0.evictionIndex?.insert(entry.key, item, policy: eviction, now: uptime) ?? [] }
    try delete(victims, in: &batch)
    return victims
  }

  /// Builds the eviction index of all stored entries, oldest first, and deletes records that cannot be read.
  ///
  /// The age of an entry that an earlier run of the app has stored comes from one reading of the wall clock, which may be wrong. An entry
  /// of an earlier run has provably expired in two cases: its whole lifetime has passed in this process, or an earlier run has fetched
  /// another entry after the entry's expiry.
  private nonisolated func buildIndex(_ batch: inout PendingState, uptime: Duration) throws(RepositoryError) {
    var entries: [(entry: CachedEntry<Key, Value>, slot: RecordSlot)] = []
    for slot in try batch.collections[storage.collection].records.ordered() {
      do throws(RepositoryError) {
        entries.append((try slot.value(storage.coder), slot))
      } catch {
        state.withLock { $0.countStorageError(error) }
        // An unreadable record has no size or age, so no limit would ever remove it.
        _ = try batch.delete(slot.key, in: storage.collection, schemaVersion: storage.schema.version)
      }
    }
    entries.sort { $0.entry.fetchedAt < $1.entry.fetchedAt }
    // The date of the newest fetch of an earlier run is a second reading of the wall clock. Entries whose usable window ended before the
    // newest fetch of an earlier run have provably expired.
    let secondReading = entries.last { $0.slot.revision <= start.revision }?.entry.fetchedAt
    let known = state.withLock { state in entries.map { state.entries[$0.entry.key]?.at($0.slot.revision) } }
    // The eviction index is built outside the lock of `state`, because answers on the main actor take the same lock.
    var index = EvictionIndex<Key>()
    for ((entry, slot), known) in zip(entries, known) {
      // An entry in memory keeps its measured age. An entry that is not in memory gets its age from the wall clock at the arrival of its
      // record.
      let expiry =
        uptime + entry.usableLifetime - (known?.age(at: uptime) ?? entry.age(at: arrivals.present(for: slot.revision, at: uptime)))
      let isMeasured = known?.isMeasured == true || secondReading.map { entry.usableUntil <= $0 } == true
      // A record of an earlier run existed when the cache was created, so the time since the creation counts towards the record's proven
      // expiry.
      let seen = slot.revision <= start.revision ? start.uptime : uptime
      let item = EvictionIndex<Key>.Item(
        byteCount: entry.byteCount, expiry: expiry, provenExpiry: isMeasured ? expiry : max(seen + entry.usableLifetime, expiry),
        recordKey: slot.key)
      _ = index.insert(entry.key, item, policy: .none, now: uptime)
    }
    state.withLock { state in
      // Uses of an entry are not counted while the cache has no eviction index. An entry that was returned before the index was built
      // counts as used once.
      for (entry, _) in entries where state.entries[entry.key]?.wasAnswered == true { index.touch(entry.key) }
      state.evictionIndex = index
    }
  }

  /// Evicts expired or rarely used entries, in memory and on disk, when the system asks for memory.
  ///
  /// Call `relieve(_:)` from the app's memory warning. If the deletion from the storage fails, the stored entries stay, and the cache's
  /// statistics count the error.
  public nonisolated(nonsending) func relieve(_ pressure: MemoryPressure) async {
    guard !isReadOnly else { return }
    do {
      // `loadAll` decodes all entries before the write, so that building the eviction index does not decode them on the store's executor.
      // An existing eviction index needs no decoded entries.
      if state.withLock({ $0.evictionIndex == nil }) { _ = try await storage.loadAll() }
      let (victims, revision) = try await storage.core.write(nil) { [self] batch throws(RepositoryError) in
        let uptime = clock.uptime
        if state.withLock({ $0.evictionIndex == nil }) { try buildIndex(&batch, uptime: uptime) }
        let victims = state.withLock { $0.evictionIndex?.relieve(pressure, now: uptime) ?? [] }
        try delete(victims, in: &batch)
        return (victims, batch.revision)
      }
      state.withLock { $0.countEvictions(victims, upTo: revision) }
    } catch {
      state.withLock { state in
        state.countStorageError(error)
        // The failed commit has deleted no record, but the eviction index no longer holds the entries to evict. The eviction index is
        // dropped, and the next write builds it again.
        state.evictionIndex = nil
      }
    }
    // Writes of a cache without size limits do not update an eviction index, so `relieve` drops the index after its use.
    if !isBounded { state.withLock { $0.evictionIndex = nil } }
  }

  /// Deletes the records of evicted entries, in the commit of `batch`.
  private nonisolated func delete(_ victims: [EvictionIndex<Key>.Victim], in batch: inout PendingState) throws(RepositoryError) {
    for victim in victims {
      _ = try batch.delete(victim.recordKey, in: storage.collection, schemaVersion: storage.schema.version)
    }
  }
}

// An entry is removed from memory only after the commit that deletes its record. If the commit fails, the entry stays in memory with its
// measured age.

extension CachedRepository {
  /// Removes the entry of a key from the storage and from memory.
  nonisolated(nonsending) func removeEntry(of key: Key) async throws(RepositoryError) {
    // The number of the newest unsaved entry is read before the deletion, so that an entry that becomes unsaved during the deletion stays
    // in memory.
    let serial = state.withLock { $0.unsaved.serial }
    let recordKey: RecordKey
    do throws(RepositoryError) {
      recordKey = try storage.coder.keys.key(for: key)
    } catch {
      // A key that does not encode has no record, but it may have an unsaved entry.
      state.withLock { $0.forgetEntry(of: key, before: .zero, unsavedUpTo: serial) }
      flights.releaseHolds(of: key)
      throw error
    }
    let revision = try await commitDeletions { [self] batch throws(RepositoryError) in
      _ = try batch.delete(recordKey, in: storage.collection, schemaVersion: storage.schema.version)
      state.withLock { $0.evictionIndex?.remove(key) }
    }
    state.withLock { $0.forgetEntry(of: key, before: revision, unsavedUpTo: serial) }
    flights.releaseHolds(of: key)
  }

  /// Removes all entries, and prevents running fetches from storing their results.
  ///
  /// `removeAll()` also works on a full disk, because a store reserves disk space for deletions. For deletions, a JSON file reserves some
  /// 16 KiB in its journal, and SQLite keeps 256 KiB and a 500th of the file's size free on the disk. A store that is shared with other
  /// processes reserves no space for deletions. On a full disk, a JSON file gives the space of the deleted entries back to the system.
  /// - Throws: ``RepositoryError`` of ``LocalRepository/delete(_:ifRevision:durability:)``. After an error of `removeAll()`, all entries
  ///   are still in the cache, also the entries that only memory holds. After the error `.outcomeUnknown`, however, the entries may be
  ///   missing when the store is opened again.
  public nonisolated(nonsending) func removeAll() async throws {
    flights.invalidateAllFlights()
    let serial = state.withLock { $0.unsaved.serial }
    let revision = try await commitDeletions { [self] batch throws(RepositoryError) in
      for slot in try batch.collections[storage.collection].records.ordered() {
        _ = try batch.delete(slot.key, in: storage.collection, schemaVersion: storage.schema.version)
      }
      state.withLock { $0.evictionIndex = nil }
    }
    state.withLock { $0.forgetEntries(before: revision, unsavedUpTo: serial) }
    flights.releaseAllHolds()
  }

  /// Commits deletions and returns the revision of their commit.
  ///
  /// An entry that is stored after the deletions has the returned revision or a higher one. An entry that was stored before the deletions
  /// has a lower revision. Callers of `commitDeletions` compare the returned revision with the revision of each entry in memory, and keep
  /// the newer entries.
  private nonisolated(nonsending) func commitDeletions(
    _ deletions: @escaping @Sendable (inout PendingState) throws(RepositoryError) -> Void
  ) async throws(RepositoryError) -> Revision {
    do throws(RepositoryError) {
      // The deletions get a commit of their own, because a full disk that refuses new entries would also refuse deletions in the same
      // commit.
      return try await storage.core.write(nil, size: .alone) { batch throws(RepositoryError) in
        try deletions(&batch)
        return batch.revision
      }
    } catch {
      // The failed commit has deleted no record, but the deleted entries are missing in the eviction index. The eviction index is dropped,
      // and the next write builds it again.
      state.withLock { $0.evictionIndex = nil }
      throw error
    }
  }
}
