internal import Foundation

extension JSONFileStore {
  /// Commits deletions on a full disk, and folds the journal into a new main file without the deleted records to free their space.
  ///
  /// After a crash at any moment, the next opening finds either all records before the batch or all records after it. The batch is written
  /// to the journal if the journal has room, and then to a new main file.
  func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError) {
    try checkUse(of: batch)
    // A background checkpoint is cancelled, because its unfinished main file takes space that the deletions need.
    giveUpFolding()
    _ = paging.shedIndexes()
    try checkHealth()
    var isAppended = false
    if journal != nil {
      do throws(RepositoryError) {
        if batch.durability != .buffered { try syncJournalName() }
        try journal?.append(batch)
        isAppended = true
      } catch {
        // If the deletions have no room in the journal, the call does not fail yet, because a new main file without the deleted records may
        // fit.
        guard error.code == .full else { throw noted(error) }
      }
    }
    if isAppended { note(batch) }
    // The journal's size is stored, so that the reserve for later deletions can be allocated again if the disk has no room for the new main
    // file.
    let allocated = journal?.allocated ?? 0
    do throws(RepositoryError) {
      // The unused space at the end of the journal is cut off, so that the new main file can use it.
      do throws(RepositoryError) { try journal?.cutGrowth() } catch { throw noted(error) }
      do throws(RepositoryError) {
        try replaceMain(with: isAppended ? nil : batch)
      } catch {
        // A main file without tombstones (records of deletions) may still fit on the disk. If tombstones were dropped, a request for the
        // deletions since an earlier commit throws `.unsupported`.
        guard error.code == .full else { throw error }
        try replaceMain(with: isAppended ? nil : batch, keepingTombstones: false)
      }
    } catch {
      // A batch that was appended to the journal is committed, even if no new main file could be written. Once the journal has the batch,
      // only the error of a failed sync is thrown.
      guard isAppended, error.code != .outcomeUnknown else { throw error }
      try keepReserve(allocated)
    }
  }

  /// Folds the journal to free space for a value that had no room, if records were deleted or overwritten.
  ///
  /// If the journal has no deletions and few overwritten values, folding it would free little, and the call does nothing. Cost if no space
  /// is freed: one main file is written until the disk is full, once for each length of the journal.
  /// - Returns: True if folding the journal or cancelling a background checkpoint has freed space.
  /// - Throws: `.outcomeUnknown` if a sync fails.
  func giveBack() throws(RepositoryError) -> Bool {
    if paging.closeReplaced() || paging.shedIndexes() { return true }
    // If folding has failed and the journal has the same length as then, folding would fail again, so that each value without room would
    // cost writing a main file.
    guard let journal, journal.end != triedToGiveBackAt else { return false }
    triedToGiveBackAt = journal.end
    if let folding {
      // The unfinished file of a background checkpoint may have taken the last space, so the checkpoint is cancelled.
      giveUpFolding()
      if case .mainFile = folding.part {
        givenUp = RepositoryError(.full, "the checkpoint was given up for a value that had no room", file: paths.mainFile)
      }
      try checkHealth()
      return true
    }
    let live = changes.values.reduce(0) { $0 + ($1.value?.count ?? 0) }
    // If overwritten values fill at least half of a journal of more than two chunks, folding frees about half of the journal's size or
    // more.
    let isOverwritten = live * 2 <= journal.end && journal.end > 2 * tuning.journalChunk
    guard isOverwritten || changes.values.contains(where: { $0.value == nil }) else { return false }
    do throws(RepositoryError) {
      try self.journal?.cutGrowth()
      do throws(RepositoryError) {
        try replaceMain(with: nil)
      } catch {
        try keepReserve(journal.allocated)
        throw error
      }
      triedToGiveBackAt = nil
      return true
    } catch {
      // If folding fails with `.outcomeUnknown`, the error of a failed sync, this error is thrown. After any other error the result is
      // `false`, and the caller throws `.full` for the value that had no room.
      guard error.code == .outcomeUnknown else { return false }
      throw noted(error)
    }
  }

  /// Allocates the journal's reserve for deletions again, which `cutGrowth()` has cut off.
  ///
  /// If the disk has no space for the reserve any more, later deletions are committed by writing a new main file.
  private func keepReserve(_ allocated: Int) throws(RepositoryError) {
    do throws(RepositoryError) { try journal?.growAgain(to: allocated) } catch {
      guard error.code != .outcomeUnknown else { throw noted(error) }
    }
  }

  /// Replaces the main file by a new main file with all records, and removes the journal.
  ///
  /// - Parameter batch: Deletions that the journal does not have, or `nil`.
  /// - Throws: `.full` if the disk has no room for the new main file, and the store is then unchanged. `.outcomeUnknown` if a sync failed.
  private func replaceMain(with batch: WriteBatch?, keepingTombstones: Bool = true) throws(RepositoryError) {
    _ = paging.closeReplaced()
    var draft = draft()
    // No copy of the previous main file is kept, because the copy would take space that the new main file needs.
    draft.options.keepsPreviousSnapshot = false
    if !keepingTombstones { draft.options.limits.tombstones = 0 }
    if let batch {
      for record in batch.records { draft.changes[record.address] = record }
      draft.commit = batch.commits.upperBound
      // The keys lack the batch, and the disk has no room.
      draft.indexes = []
    }
    let next = try putInPlace(draft)
    let old = main
    if let batch { note(batch) }
    changes = [:]
    do throws(RepositoryError) {
      try install(next)
    } catch {
      // If `batch` is `nil`, the journal still has every acknowledged commit, so nothing is lost if a power cut undoes the rename of the
      // new main file.
      guard batch != nil else { return }
      // Only the new main file has the batch, and after the failed sync of the directory, a power cut may undo the rename of the new main
      // file.
      throw noted(unsynced(error))
    }
    // The old main file is closed at once and not when its last reference is released, because its disk space is needed now.
    do throws(RepositoryError) { try old.file.close() } catch {}
    removeJournal()
  }

  /// Removes a journal whose commits are all in the main file.
  ///
  /// The store's next commit creates another journal. The removal of the journal is durable if the sync of the directory succeeds. After a
  /// durable removal, a journal that appears belongs to another process.
  private func removeJournal() {
    guard let old = journal else { return }
    // The journal is recorded as unused (no longer a part of the store) before its removal, because the file stays if the removal fails.
    (journal, unusedJournal, hasUnusedJournal) = (nil, old.identity, true)
    // Errors are ignored, because the main file has all commits of the journal, and a journal that stays does no harm.
    do throws(RepositoryError) {
      try old.close()
      try fileSystem.remove(paths.journal)
      try fileSystem.syncDirectory(paths.directory)
      (unusedJournal, hasUnusedJournal) = (nil, false)
    } catch {}
  }
}
