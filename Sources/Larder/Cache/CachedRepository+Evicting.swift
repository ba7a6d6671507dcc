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
  nonisolated func openEviction(_ batch: inout StagedBatch, _ uptime: Duration) throws(RepositoryError) {
    guard isBounded, state.withLock({ $0.evictionIndex == nil }) else { return }
    try buildIndex(&batch, uptime)
  }

  /// Deletes what must go for an entry that is being stored, in the same commit.
  ///
  /// On the store's executor only.
  nonisolated func makeRoom(
    for entry: CachedEntry<Key, Value>, _ recordKey: RecordKey, _ uptime: Duration, in batch: inout StagedBatch
  ) throws(RepositoryError) -> [EvictionIndex<Key>.Victim] {
    guard isBounded else { return [] }
    let item = EvictionIndex<Key>.Item(byteCount: entry.byteCount, expiry: uptime + entry.usableLifetime, recordKey: recordKey)
    let victims = state.withLock { $0.evictionIndex?.insert(entry.key, item, eviction, now: uptime) ?? [] }
    try delete(victims, in: &batch)
    return victims
  }

  /// Makes the index of all entries, oldest first; those that cannot be read go.
  private nonisolated func buildIndex(_ batch: inout StagedBatch, _ uptime: Duration) throws(RepositoryError) {
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
    let present = start.wall.addingTimeInterval((uptime - start.uptime).inSeconds)
    state.withLock { state in
      var index = EvictionIndex<Key>()
      for (entry, slot) in entries {
        let known = state.known[entry.key].flatMap { $0.revision == slot.revision ? $0.age(at: uptime) : nil }
        let age = known ?? entry.age(at: present)
        let expiry = uptime + entry.usableLifetime - age
        _ = index.insert(entry.key, .init(byteCount: entry.byteCount, expiry: expiry, recordKey: slot.key), .none, now: uptime)
        if state.known[entry.key]?.wasAnswered == true { index.touch(entry.key) }
      }
      state.evictionIndex = index
    }
  }

  nonisolated func evict(under pressure: MemoryPressure) async {
    do {
      // Only if it must be: this reads entries that nobody has asked for.
      if state.withLock({ $0.evictionIndex == nil }) { _ = try await storage.loadAll() }
      let victims = try await storage.queue.write(nil) { [self] batch in
        let uptime = clock.uptime
        if state.withLock({ $0.evictionIndex == nil }) { try buildIndex(&batch, uptime) }
        let victims = state.withLock { $0.evictionIndex?.relieve(pressure, now: uptime) ?? [] }
        try delete(victims, in: &batch)
        return victims
      }
      state.withLock { $0.count(victims) }
    } catch {
      state.withLock { state in
        state.note(repositoryError(error))
        state.evictionIndex = nil
      }
    }
    // Without limits nobody keeps the index up to date.
    if !isBounded { state.withLock { $0.evictionIndex = nil } }
  }

  private nonisolated func delete(_ victims: [EvictionIndex<Key>.Victim], in batch: inout StagedBatch) throws(RepositoryError) {
    for victim in victims {
      _ = try batch.delete(victim.recordKey, in: storage.collection, schemaVersion: storage.schema.version)
    }
  }
}
