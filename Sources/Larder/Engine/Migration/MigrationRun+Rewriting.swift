internal import Synchronization

/// Rewriting of records in batches, each of which is a write like any other.
extension MigrationRun {
  func rewrite(_ old: [RecordSlot], isUrgent: Bool) async {
    // Reversed, because only removing from the end is cheap, and releases finished records.
    var rest = Array(old.reversed())
    do throws(RepositoryError) {
      while !rest.isEmpty {
        // An urgent run migrates on all cores, which one batch would not keep busy.
        let part = Array(rest.suffix(isUrgent ? options.batchSize * 16 : options.batchSize).reversed())
        rest.removeLast(part.count)
        // Before each part, so that none is migrated for nothing once the store is being closed.
        _ = try openCore()
        var records = await migrated(part, isUrgent: isUrgent)[...]
        if !records.isEmpty { findCopyOfEarlierRun() }
        while !records.isEmpty {
          try await commit(Array(records.prefix(options.batchSize)))
          records = records.dropFirst(options.batchSize)
          // The last batch is reported with the end.
          if !(records.isEmpty && rest.isEmpty) { options.progress?(progress) }
          await Task.yield()
        }
        if rest.isEmpty { rest = try await savedMeanwhile() }
      }
      guard let core else { throw .storeClosed }
      // Before the end is reported, which power loss must not take back.
      if progress.rewritten > 0 { try await core.flush() }
      end(nil)
    } catch {
      end(error)
    }
  }

  /// Commits a batch of migrated records.
  ///
  /// If it fails with an error that a single record can cause, commits the records one by one.
  private func commit(_ records: [MigratedRecord]) async throws(RepositoryError) {
    let core = try openCore()
    do throws(RepositoryError) {
      let count = try await core.submit(.rewrite(records, in: collection), .buffered).recordCount
      state.withLock { state in
        state.progress.rewritten += count
        state.progress.skipped += records.count - count
      }
    } catch {
      // Any other error would fail every record of the batch.
      guard [.uniqueViolation, .tooLarge, .encodingFailed].contains(error.code) else { throw error }
      if let only = records.first, records.count == 1 { return note(error, only.old) }
      for record in records { try await commit([record]) }
    }
  }

  /// Returns the older records that a program of an older version has saved in a shared store since the rewrite began.
  ///
  /// Reads them in the turn of a write, so that no process commits meanwhile. Once there is a record of the new version, older programs
  /// write no more.
  private func savedMeanwhile() async throws(RepositoryError) -> [RecordSlot] {
    let core = try openCore()
    guard core.options.access == .shared else { return [] }
    let found = try await core.write(.buffered) { [self] pending throws(RepositoryError) in
      untried(in: pending.collections[collection].records)
    }
    state.withLock { $0.progress.total += found.count }
    return found
  }

  /// Returns the open store, unless the migration must end.
  /// - Throws: `.closed` if the store was closed or released.
  private func openCore() throws(RepositoryError) -> StoreCore {
    guard let core, !state.withLock({ $0.isCancelled }) else { throw .storeClosed }
    return core
  }

  /// Adds the store's copy of an earlier, interrupted migration to the progress.
  private func findCopyOfEarlierRun() {
    // Without a record of the new version, no earlier run has written one, and the first batch makes the copy itself.
    guard progress.backupFile == nil, let core,
      core.state.collections[collection].records.newestSchemaVersion == coder.schemaVersion
    else { return }
    let key = MigrationKey(collection: collection, version: coder.schemaVersion)
    let known = core.migrations.knownCopies.files[key]
    if let file = known ?? core.copyOfEarlierRun(before: coder.schemaVersion, of: collection) { note(copy: file) }
  }

  /// Migrates records, on all cores if it is urgent, and records the failures.
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
