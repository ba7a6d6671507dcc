internal import Foundation

extension JSONFileStore {
  /// Commits deletions on a full disk, and makes the files smaller by the deleted bytes.
  ///
  /// After a crash at any moment, the next opening finds the records before or after the batch. The batch is written to the journal if it
  /// fits, and then to a new main file.
  func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError) {
    try checkUse(of: batch)
    // A background checkpoint is given up, because its unfinished main file takes space that the deletions need.
    giveUpFolding()
    try checkHealth()
    var isAppended = false
    if journal != nil {
      do throws(RepositoryError) {
        if batch.durability != .buffered { try syncJournalName() }
        try journal?.append(batch)
        isAppended = true
      } catch {
        // Deletions without room in the journal are no failure yet, because the new main file can be written with them applied.
        guard error.code == .full else { throw noted(error) }
      }
    }
    if isAppended { note(batch) }
    // The size is noted, so that the reserve for later deletions can be allocated again if the new main file has no room.
    let allocated = journal?.allocated ?? 0
    do throws(RepositoryError) {
      // The journal's allocated zero bytes are cut, so that the new main file can use their space.
      do throws(RepositoryError) { try journal?.cutGrowth() } catch { throw noted(error) }
      do throws(RepositoryError) {
        try replaceMain(with: isAppended ? nil : batch)
      } catch {
        // A main file without tombstones may still fit on the disk. Without tombstones, a request for the deletions since an earlier commit
        // throws `.unsupported`.
        guard error.code == .full else { throw error }
        try replaceMain(with: isAppended ? nil : batch, keepingTombstones: false)
      }
    } catch {
      // A batch that was appended to the journal is committed, even if the files cannot become smaller. Once the journal has the batch,
      // only the error of a failed sync is thrown.
      guard isAppended, error.code != .outcomeUnknown else { throw error }
      try keepReserve(allocated)
    }
  }

  /// Folds the journal to free space for a value that had no room, if something was deleted or overwritten.
  ///
  /// Without deletions or overwritten values in the journal, a fold would free nothing. Cost if no space is freed: one main file is written
  /// until the disk is full, once for each length of the journal.
  /// - Returns: True if a fold or the end of a background checkpoint has freed space.
  /// - Throws: `.outcomeUnknown` if a sync fails.
  func giveBack() throws(RepositoryError) -> Bool {
    // A fold that has failed at this length of the journal would fail again. Without this check, each refused value would write a main
    // file.
    guard let journal, journal.end != triedToGiveBackAt else { return false }
    triedToGiveBackAt = journal.end
    if let folding {
      // The unfinished file of a background checkpoint may have taken the last space, so the checkpoint is given up.
      giveUpFolding()
      if case .mainFile = folding.part {
        givenUp = RepositoryError(.full, "the checkpoint was given up for a value that had no room", file: paths.mainFile)
      }
      try checkHealth()
      return true
    }
    let live = changes.values.reduce(0) { $0 + ($1.value?.count ?? 0) }
    // If at least half of a journal of more than two chunks is overwritten values, the fold frees more than it costs.
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
      // Of the errors of the fold, only that of a failed sync is thrown. After any other error the result is `false`, and the caller throws
      // `.full` for the value that had no room.
      guard error.code == .outcomeUnknown else { return false }
      throw noted(error)
    }
  }

  /// Allocates the journal's reserve for deletions again, which `cutGrowth()` has cut.
  ///
  /// If the disk has no space for the reserve any more, later deletions are written with a new main file.
  private func keepReserve(_ allocated: Int) throws(RepositoryError) {
    do throws(RepositoryError) { try journal?.growAgain(to: allocated) } catch {
      guard error.code != .outcomeUnknown else { throw noted(error) }
    }
  }

  /// Replaces the main file by one with all records, and removes the journal.
  ///
  /// - Parameter batch: Deletions that the journal does not have, or `nil`.
  /// - Throws: `.full`, after which the store is unchanged, and `.outcomeUnknown` if a sync failed.
  private func replaceMain(with batch: WriteBatch?, keepingTombstones: Bool = true) throws(RepositoryError) {
    var draft = draft()
    // No copy of the previous main file is kept, because the copy would take space that the new main file needs.
    draft.options.keepsPreviousSnapshot = false
    if !keepingTombstones { draft.options.limits.tombstones = 0 }
    if let batch {
      for record in batch.records { draft.changes[record.address] = record }
      draft.commit = batch.commits.upperBound
    }
    let next = try putInPlace(draft)
    let old = main
    if let batch { note(batch) }
    changes = [:]
    do throws(RepositoryError) {
      try install(next)
    } catch {
      // Without a batch, the journal still has every acknowledged commit, so nothing is lost if a power cut undoes the rename of the new
      // main file.
      guard batch != nil else { return }
      // Only the new main file has the batch, and after the failed sync of the directory, a power cut may undo the rename of that file.
      throw noted(unsynced(error))
    }
    // The old main file is closed here and not with its last reference, because its space is needed now.
    do throws(RepositoryError) { try old.file.close() } catch {}
    removeJournal()
  }

  /// Removes a journal whose commits are all in the main file.
  ///
  /// The next commit creates another journal. The removal is durable if the sync of the directory succeeds. After a durable removal, a
  /// journal that appears belongs to another process.
  private func removeJournal() {
    guard let old = journal else { return }
    // The journal is recorded as unused (no longer a part of the store) before its removal, because a removal that fails may leave the file
    // in the directory.
    (journal, unusedJournal, hasUnusedJournal) = (nil, old.identity, true)
    // Errors are ignored, since the main file already has all commits of a journal that stays.
    do throws(RepositoryError) {
      try old.close()
      try fileSystem.remove(paths.journal)
      try fileSystem.syncDirectory(paths.directory)
      (unusedJournal, hasUnusedJournal) = (nil, false)
    } catch {}
  }
}
