internal import Synchronization

/// Rewrites a collection's records of older schema versions in batches, each of which is committed like any other write.
extension MigrationRun {
  func rewrite(_ old: [RecordSlot], isUrgent: Bool) async {
    // The records are reversed, so that each part is removed from the end of the array. Removing the end is cheap, and releases the
    // finished records.
    var rest = Array(old.reversed())
    do throws(RepositoryError) {
      while !rest.isEmpty {
        // An urgent migration runs on all cores. One batch is too small to keep all cores busy, so an urgent migration takes 16 batches at
        // a time.
        let part = Array(rest.suffix(isUrgent ? options.batchSize * 16 : options.batchSize).reversed())
        rest.removeLast(part.count)
        // The check for a closed store runs before each part, so that no part is migrated and then cannot be committed.
        let present = try openCore().state.collections[collection].records
        var records = await migrated(try resolved(part, in: present), isUrgent: isUrgent)[...]
        if !records.isEmpty { findCopyOfEarlierRun() }
        while !records.isEmpty {
          try await commit(Array(records.prefix(options.batchSize)))
          records = records.dropFirst(options.batchSize)
          // The progress after the last batch is reported by `end`.
          if !(records.isEmpty && rest.isEmpty) { options.progress?(progress) }
          await Task.yield()
        }
        if rest.isEmpty { rest = try await savedMeanwhile() }
      }
      guard let core else { throw .storeClosed }
      // The buffered batches are flushed before the end is reported. Without the flush of the batches, power loss could undo a migration
      // that was reported as finished.
      if progress.rewritten > 0 { try await core.flush() }
      end(nil)
    } catch {
      end(error)
    }
  }

  /// Commits a batch of migrated records, or its records one by one if one of them makes the batch fail.
  ///
  /// Records are committed one by one only after an error that a single record can cause.
  private func commit(_ records: [MigratedRecord]) async throws(RepositoryError) {
    let core = try openCore()
    do throws(RepositoryError) {
      let count = try await core.submit(.rewrite(records, in: collection), .buffered).recordCount
      state.withLock { state in
        state.progress.rewritten += count
        state.progress.skipped += records.count - count
      }
    } catch {
      // Errors with other codes, such as a full disk, would fail every record of the batch.
      guard [.uniqueViolation, .tooLarge, .encodingFailed].contains(error.code) else { throw error }
      if let only = records.first, records.count == 1 { return note(error, only.old) }
      for record in records { try await commit([record]) }
    }
  }

  /// Returns the records that an older version of the app has saved in a shared store since the rewrite began.
  ///
  /// The records are read within a write, so that no other process commits at the same time. Once the store has a record of the new schema
  /// version, older versions of the app are refused and save no more.
  private func savedMeanwhile() async throws(RepositoryError) -> [RecordSlot] {
    let core = try openCore()
    guard core.options.access == .shared else { return [] }
    let found = try await core.write(.buffered) { [self] pending throws(RepositoryError) in
      try untried(in: pending.collections[collection].records)
    }
    state.withLock { $0.progress.total += found.count }
    return found
  }

  /// Returns the open store, unless the migration must end.
  ///
  /// - Throws: `.closed` if the store was closed or released.
  private func openCore() throws(RepositoryError) -> StoreCore {
    guard let core, !state.withLock({ $0.isCancelled }) else { throw .storeClosed }
    return core
  }

  /// Adds the path of the store's copy that an earlier, interrupted run of the migration has made to the progress.
  private func findCopyOfEarlierRun() {
    // If the collection has no record of the new schema version, no earlier run has rewritten a record, and the first batch of this run
    // makes the copy of the store.
    guard progress.backupFile == nil, let core,
      core.state.collections[collection].records.newestSchemaVersion == coder.schemaVersion
    else { return }
    let key = MigrationKey(collection: collection, version: coder.schemaVersion)
    let known = core.migrations.knownCopies.files[key]
    if let file = known ?? core.copyOfEarlierRun(before: coder.schemaVersion, of: collection) { note(copy: file) }
  }

  /// Returns the records with their values, without stubs of records that were changed since the migration began.
  ///
  /// - Throws: The errors of reading the storage. Such an error must end the migration, because the record may be sound.
  private func resolved(_ slots: [RecordSlot], in records: RecordMap) throws(RepositoryError) -> [RecordSlot] {
    guard records.isPaged else { return slots }
    var resolved: [RecordSlot] = []
    for slot in slots {
      let found = slot.isStub ? try records[slot.key] : slot
      if let found, found.revision == slot.revision, found.schemaVersion == slot.schemaVersion { resolved.append(found) }
    }
    let (changed, count) = (slots.count - resolved.count, resolved.count)
    if count < slots.count { state.withLock { $0.progress.skipped += changed } }
    return resolved
  }

  /// Migrates records, on all cores if the migration is urgent, and adds the failures to the progress.
  private func migrated(_ slots: [RecordSlot], isUrgent: Bool) async -> [MigratedRecord] {
    isUrgent ? await ConcurrentMap.parts(slots) { $0.compactMap(self.migrated) }.flatMap(\.self) : slots.compactMap(migrated)
  }

  private func migrated(_ slot: RecordSlot) -> MigratedRecord? {
    do throws(RepositoryError) {
      let (value, data) = try slot.migrated(coder)
      let record = EncodedRecord(
        key: slot.key, schemaVersion: coder.schemaVersion, value: data, decoded: value, keepsEncoded: coder.keepsEncoded)
      return MigratedRecord(record: record, old: slot)
    } catch {
      note(error, slot)
      return nil
    }
  }

  private func note(_ error: RepositoryError, _ slot: RecordSlot) {
    state.withLock { state in
      state.failed[slot.key] = slot.revision
      state.progress.note(UndecodableRecord(slot, in: name, error))
    }
  }
}
