internal import Foundation
internal import Synchronization

extension CachedRepository {
  private nonisolated var isBounded: Bool { eviction != .none }

  /// Decodes the entries in parallel before the index of them is made, so that making it does not hold up the store.
  nonisolated func prepareEviction() async {
    guard isBounded, state.withLock({ $0.evictionIndex == nil }) else { return }
    do throws(RepositoryError) { _ = try await storage.loadAll() } catch {}  // the write that follows finds the same
  }

  /// Makes sure that there is an index of what was there before an entry comes.
  ///
  /// On the store's executor only.
  nonisolated func openEviction(_ batch: inout PendingState, _ uptime: Duration) throws(RepositoryError) {
    guard isBounded, state.withLock({ $0.evictionIndex == nil }) else { return }
    try buildIndex(&batch, uptime)
  }

  /// Deletes what must go for an entry that is being stored, in the same commit.
  ///
  /// On the store's executor only.
  nonisolated func makeRoom(
    for entry: CachedEntry<Key, Value>, _ recordKey: RecordKey, _ uptime: Duration, in batch: inout PendingState
  ) throws(RepositoryError) -> [EvictionIndex<Key>.Victim] {
    guard isBounded else { return [] }
    let expiry = uptime + entry.usableLifetime
    let item = EvictionIndex<Key>.Item(byteCount: entry.byteCount, expiry: expiry, provenExpiry: expiry, recordKey: recordKey)
    let victims = state.withLock { $0.evictionIndex?.insert(entry.key, item, eviction, now: uptime) ?? [] }
    try delete(victims, in: &batch)
    return victims
  }

  /// Makes the index of all entries, oldest first; those that cannot be read go.
  ///
  /// The age of an entry of an earlier run comes from one reading of the wall clock, which may be wrong. It is
  /// proven that one has expired when all of its time has passed in this process, or when an earlier run has fetched
  /// something after it had expired: a second reading.
  private nonisolated func buildIndex(_ batch: inout PendingState, _ uptime: Duration) throws(RepositoryError) {
    var entries: [(entry: CachedEntry<Key, Value>, slot: RecordSlot)] = []
    for slot in batch.collections[storage.collection].records.ordered() {
      do throws(RepositoryError) {
        entries.append((try slot.value(storage.coder), slot))
      } catch {
        state.withLock { $0.note(error) }
        _ = try batch.delete(slot.key, in: storage.collection, schemaVersion: storage.schema.version)
      }
    }
    entries.sort { $0.entry.fetchedAt < $1.entry.fetchedAt }
    let secondReading = entries.last { $0.slot.revision <= start.revision }?.entry.fetchedAt
    let known = state.withLock { state in entries.map { state.entries[$0.entry.key]?.at($0.slot.revision) } }
    // Outside the lock, which answers on the main actor take.
    var index = EvictionIndex<Key>()
    for ((entry, slot), known) in zip(entries, known) {
      let expiry =
        uptime + entry.usableLifetime - (known?.age(at: uptime) ?? entry.age(at: arrivals.present(for: slot.revision, at: uptime)))
      let isMeasured = known?.isMeasured == true || secondReading.map { entry.usableUntil <= $0 } == true
      let seen = slot.revision <= start.revision ? start.uptime : uptime
      let item = EvictionIndex<Key>.Item(
        byteCount: entry.byteCount, expiry: expiry, provenExpiry: isMeasured ? expiry : max(seen + entry.usableLifetime, expiry),
        recordKey: slot.key)
      _ = index.insert(entry.key, item, .none, now: uptime)
    }
    state.withLock { state in
      for (entry, _) in entries where state.entries[entry.key]?.wasAnswered == true { index.touch(entry.key) }
      state.evictionIndex = index
    }
  }

  /// Removes what is least worth keeping, on disk too, because the system asks for memory.
  ///
  /// Call it from the app's memory warning. Storage that fails keeps its entries, and the error is counted.
  public nonisolated(nonsending) func relieve(_ pressure: MemoryPressure) async {
    guard !isReadOnly else { return }
    do {
      // Only if it must be: this reads all entries.
      if state.withLock({ $0.evictionIndex == nil }) { _ = try await storage.loadAll() }
      let (victims, revision) = try await storage.core.write(nil) { [self] batch throws(RepositoryError) in
        let uptime = clock.uptime
        if state.withLock({ $0.evictionIndex == nil }) { try buildIndex(&batch, uptime) }
        let victims = state.withLock { $0.evictionIndex?.relieve(pressure, now: uptime) ?? [] }
        try delete(victims, in: &batch)
        return (victims, batch.revision)
      }
      state.withLock { $0.count(victims, upTo: revision) }
    } catch {
      state.withLock { state in
        state.note(error)
        state.evictionIndex = nil
      }
    }
    // Without limits the index is not kept up to date.
    if !isBounded { state.withLock { $0.evictionIndex = nil } }
  }

  private nonisolated func delete(_ victims: [EvictionIndex<Key>.Victim], in batch: inout PendingState) throws(RepositoryError) {
    for victim in victims {
      _ = try batch.delete(victim.recordKey, in: storage.collection, schemaVersion: storage.schema.version)
    }
  }
}
