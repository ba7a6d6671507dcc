internal import Synchronization

// What is known of an entry, and what only memory has, goes when the deletion is committed and not before: a deletion that fails leaves
// everything as it was, and what is there goes on aging by the monotonic clock.

extension CachedRepository {
  /// Removes what is there of a key.
  nonisolated(nonsending) func remove(_ key: Key) async throws(RepositoryError) {
    let serial = state.withLock { $0.unsaved.serial }
    let recordKey: RecordKey
    do throws(RepositoryError) {
      recordKey = try storage.coder.keys.key(for: key)
    } catch {
      // Nothing can be stored of it.
      state.withLock { $0.forget(key, before: .zero, unsavedUpTo: serial) }
      throw error
    }
    let revision = try await write { [self] batch throws(RepositoryError) in
      _ = try batch.delete(recordKey, in: storage.collection, schemaVersion: storage.schema.version)
      state.withLock { $0.evictionIndex?.remove(key) }
    }
    state.withLock { $0.forget(key, before: revision, unsavedUpTo: serial) }
  }

  /// Removes everything, and keeps out what is being fetched.
  ///
  /// Works on a full disk too, in the space that a store keeps for it (the journal of a JSON file some 16 KiB, SQLite
  /// 256 KiB), unless it is shared with other processes; a JSON file gives back what the entries have taken.
  /// - Throws: ``RepositoryError`` of ``LocalRepository/delete(_:ifRevision:durability:)``; what there was is then
  ///   still there, also what only memory has.
  public nonisolated(nonsending) func removeAll() async throws {
    state.withLock { $0.invalidateAllFlights() }
    let serial = state.withLock { $0.unsaved.serial }
    let revision = try await write { [self] batch throws(RepositoryError) in
      for slot in batch.collections[storage.collection].records.ordered() {
        _ = try batch.delete(slot.key, in: storage.collection, schemaVersion: storage.schema.version)
      }
      state.withLock { $0.evictionIndex = nil }
    }
    state.withLock { $0.forgetAll(before: revision, unsavedUpTo: serial) }
  }

  /// Commits deletions, and returns a revision that what is stored later has at least, and what was stored before has not.
  private nonisolated(nonsending) func write(
    _ deletions: @escaping @Sendable (inout PendingState) throws(RepositoryError) -> Void
  ) async throws(RepositoryError) -> Revision {
    do throws(RepositoryError) {
      // By itself: together with an entry that a full disk refuses it would be refused too.
      return try await storage.core.write(nil, size: .alone) { batch throws(RepositoryError) in
        try deletions(&batch)
        return batch.revision
      }
    } catch {
      // What was to go is still there, and counts.
      state.withLock { $0.evictionIndex = nil }
      throw error
    }
  }
}
