internal import Synchronization

/// The rewriting of the records, batch by batch, each of them a write like any other.
extension MigrationRun {
  func rewrite(_ old: [RecordSlot], isUrgent: Bool) async {
    var rest = Array(old.reversed())  // so that what is done can be released
    do throws(RepositoryError) {
      while !rest.isEmpty {
        let part = Array(rest.suffix(isUrgent ? options.batchSize * 16 : options.batchSize).reversed())
        rest.removeLast(part.count)
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
      if progress.rewritten > 0 { try await core.flush() }
      end(nil)
    } catch {
      end(error)
    }
  }

  /// Commits a batch; records that cannot be together are tried one by one.
  private func commit(_ records: [MigratedRecord]) async throws(RepositoryError) {
    let core = try openCore()
    do throws(RepositoryError) {
      let count = try await core.submit(.rewrite(records, in: collection), .buffered).recordCount
      state.withLock { state in
        state.progress.rewritten += count
        state.progress.skipped += records.count - count
      }
    } catch {
      guard [.uniqueViolation, .tooLarge, .encodingFailed].contains(error.code) else { throw error }
      if let only = records.first, records.count == 1 { return note(error, only.old) }
      for record in records { try await commit([record]) }
    }
  }

  /// Returns the older records that a program of an older version has put into a shared store since the rewrite began.
  ///
  /// Looks in the turn of a write, so that no process commits meanwhile. Once there is a record of the new version,
  /// older programs write no more.
  private func savedMeanwhile() async throws(RepositoryError) -> [RecordSlot] {
    let core = try openCore()
    guard core.options.access == .shared else { return [] }
    let found = try await core.write(.buffered) { [self] pending throws(RepositoryError) in
      untried(in: pending.collections[collection].records)
    }
    state.withLock { $0.progress.total += found.count }
    return found
  }

  /// - Throws: `.closed` when the store was closed or dropped.
  private func openCore() throws(RepositoryError) -> StoreCore {
    guard let core, !state.withLock({ $0.isCancelled }) else { throw .storeClosed }
    return core
  }

  /// Notes the copy that an earlier run has made which was interrupted after it.
  private func findCopyOfEarlierRun() {
    guard progress.backupFile == nil, let core,
      core.state.collections[collection].records.newestSchemaVersion == coder.schemaVersion
    else { return }
    let key = MigrationKey(collection: collection, version: coder.schemaVersion)
    let known = core.migrations.knownCopies.files[key]
    if let file = known ?? core.copyOfEarlierRun(before: coder.schemaVersion, of: collection) { note(copy: file) }
  }

  /// Brings records up, on every core if it is urgent; failures are noted.
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
