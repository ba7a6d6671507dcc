internal import Foundation
internal import Synchronization

extension CachedRepository {
  /// True if the cache has limits.
  ///
  /// Without them it keeps no eviction index.
  private nonisolated var isBounded: Bool { eviction != .none }

  /// Decodes all entries in parallel, before the eviction index is built from them on the store's executor.
  nonisolated func prepareEviction() async {
    guard isBounded, state.withLock({ $0.evictionIndex == nil }) else { return }
    do throws(RepositoryError) { _ = try await storage.loadAll() } catch {}  // the write that follows throws the same error
  }

  /// Builds the eviction index of the stored entries, unless there is one.
  ///
  /// Runs on the store's executor only.
  nonisolated func openEviction(_ batch: inout PendingState, uptime: Duration) throws(RepositoryError) {
    guard isBounded, state.withLock({ $0.evictionIndex == nil }) else { return }
    try buildIndex(&batch, uptime: uptime)
  }

  /// Deletes the entries that must make room for a new one, in the commit of the new one.
  ///
  /// Runs on the store's executor only.
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
  /// The age of an entry of an earlier run comes from one reading of the wall clock, which may be wrong. Two facts prove that such an entry
  /// has expired: its whole lifetime has passed in this process, or an earlier run has fetched another entry after its expiry.
  private nonisolated func buildIndex(_ batch: inout PendingState, uptime: Duration) throws(RepositoryError) {
    var entries: [(entry: CachedEntry<Key, Value>, slot: RecordSlot)] = []
    for slot in batch.collections[storage.collection].records.ordered() {
      do throws(RepositoryError) {
        entries.append((try slot.value(storage.coder), slot))
      } catch {
        state.withLock { $0.countStorageError(error) }
        // An unreadable record has no size or age, so no limit would ever remove it.
        _ = try batch.delete(slot.key, in: storage.collection, schemaVersion: storage.schema.version)
      }
    }
    entries.sort { $0.entry.fetchedAt < $1.entry.fetchedAt }
    let secondReading = entries.last { $0.slot.revision <= start.revision }?.entry.fetchedAt
    let known = state.withLock { state in entries.map { state.entries[$0.entry.key]?.at($0.slot.revision) } }
    // Outside the lock, which answers on the main actor take too.
    var index = EvictionIndex<Key>()
    for ((entry, slot), known) in zip(entries, known) {
      // The age that this process already counts with, or else one by the wall clock at the arrival of the record.
      let expiry =
        uptime + entry.usableLifetime - (known?.age(at: uptime) ?? entry.age(at: arrivals.present(for: slot.revision, at: uptime)))
      let isMeasured = known?.isMeasured == true || secondReading.map { entry.usableUntil <= $0 } == true
      let seen = slot.revision <= start.revision ? start.uptime : uptime
      let item = EvictionIndex<Key>.Item(
        byteCount: entry.byteCount, expiry: expiry, provenExpiry: isMeasured ? expiry : max(seen + entry.usableLifetime, expiry),
        recordKey: slot.key)
      _ = index.insert(entry.key, item, policy: .none, now: uptime)
    }
    state.withLock { state in
      // Uses were not counted while there was no index.
      for (entry, _) in entries where state.entries[entry.key]?.wasAnswered == true { index.touch(entry.key) }
      state.evictionIndex = index
    }
  }

  /// Removes the entries that are least worth keeping, on disk too, when the system asks for memory.
  ///
  /// Call it from the app's memory warning. If the storage fails, its entries stay and the error is counted.
  public nonisolated(nonsending) func relieve(_ pressure: MemoryPressure) async {
    guard !isReadOnly else { return }
    do {
      // Only without an index, since this reads all entries.
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
        // The index has lost the victims, which are still stored.
        state.evictionIndex = nil
      }
    }
    // Without limits nothing keeps the index up to date.
    if !isBounded { state.withLock { $0.evictionIndex = nil } }
  }

  /// Deletes the records of evicted entries, in the commit of `batch`.
  private nonisolated func delete(_ victims: [EvictionIndex<Key>.Victim], in batch: inout PendingState) throws(RepositoryError) {
    for victim in victims {
      _ = try batch.delete(victim.recordKey, in: storage.collection, schemaVersion: storage.schema.version)
    }
  }
}

// An entry is forgotten, in the map and among the unsaved ones, after its deletion is committed and not before. A deletion that fails
// thus leaves everything as it was, and the entry keeps its measured age.

extension CachedRepository {
  /// Removes the entry of a key from the storage and from memory.
  nonisolated(nonsending) func removeEntry(of key: Key) async throws(RepositoryError) {
    // Read first, so that an entry that becomes unsaved during the deletion stays.
    let serial = state.withLock { $0.unsaved.serial }
    let recordKey: RecordKey
    do throws(RepositoryError) {
      recordKey = try storage.coder.keys.key(for: key)
    } catch {
      // A key that does not encode has no record, only unsaved entries.
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

  /// Removes all entries, and keeps running fetches from being stored.
  ///
  /// It also works on a full disk, in the space that a store reserves for deletions: some 16 KiB in the journal of a JSON file, 256 KiB in
  /// SQLite. A store that is shared with other processes has no such space. A JSON file gives the space of the entries back to the system.
  /// - Throws: ``RepositoryError`` of ``LocalRepository/delete(_:ifRevision:durability:)``. All entries are then still there, also those
  ///   that only memory holds.
  public nonisolated(nonsending) func removeAll() async throws {
    flights.invalidateAllFlights()
    let serial = state.withLock { $0.unsaved.serial }
    let revision = try await commitDeletions { [self] batch throws(RepositoryError) in
      for slot in batch.collections[storage.collection].records.ordered() {
        _ = try batch.delete(slot.key, in: storage.collection, schemaVersion: storage.schema.version)
      }
      state.withLock { $0.evictionIndex = nil }
    }
    state.withLock { $0.forgetEntries(before: revision, unsavedUpTo: serial) }
    flights.releaseAllHolds()
  }

  /// Commits deletions and returns their revision.
  ///
  /// Entries that are stored later have at least this revision, earlier ones a lower one.
  private nonisolated(nonsending) func commitDeletions(
    _ deletions: @escaping @Sendable (inout PendingState) throws(RepositoryError) -> Void
  ) async throws(RepositoryError) -> Revision {
    do throws(RepositoryError) {
      // In a commit of their own: a full disk that refuses the entries of a shared commit would refuse the deletions with them.
      return try await storage.core.write(nil, size: .alone) { batch throws(RepositoryError) in
        try deletions(&batch)
        return batch.revision
      }
    } catch {
      // The index has lost the entries, which are still stored and count against the limits.
      state.withLock { $0.evictionIndex = nil }
      throw error
    }
  }
}
