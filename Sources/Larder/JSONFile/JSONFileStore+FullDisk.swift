internal import Foundation

extension JSONFileStore {
  /// Commits deletions on a full disk, and makes the files smaller by the deleted bytes.
  ///
  /// Each state on the way recovers to the records before or after the batch: the journal with the batch, then a new main file that has the
  /// batch too.
  func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError) {
    try checkUse(of: batch)
    // The unfinished file of a checkpoint has the space that the deletions need.
    giveUpFolding()
    try checkHealth()
    var isAppended = false
    if journal != nil {
      do throws(RepositoryError) {
        if batch.durability != .buffered { try syncJournalName() }
        try journal?.append(batch)
        isAppended = true
      } catch {
        // A full journal is no failure yet: the new main file can have the deletions instead.
        guard error.code == .full else { throw noted(error) }
      }
    }
    if isAppended { note(batch) }
    let allocated = journal?.allocated ?? 0
    do throws(RepositoryError) {
      // Frees the allocated zero bytes for the new main file.
      do throws(RepositoryError) { try journal?.cutGrowth() } catch { throw noted(error) }
      do throws(RepositoryError) {
        try replaceMain(with: isAppended ? nil : batch)
      } catch {
        // Without tombstones there may be room. A request for the deletions since then throws `.unsupported`.
        guard error.code == .full else { throw error }
        try replaceMain(with: isAppended ? nil : batch, keepingTombstones: false)
      }
    } catch {
      // The appended batch is committed, even if the files cannot become smaller.
      guard isAppended, error.code != .outcomeUnknown else { throw error }
      try keepReserve(allocated)
    }
  }

  /// Folds the journal to free space for a value that had no room, if something was deleted or overwritten.
  ///
  /// That is so in a store that was cleared before it was opened. Cost without success: one main file up to the end of the disk, once for
  /// each end of the journal.
  /// - Returns: True if there is more space now.
  /// - Throws: `.outcomeUnknown`.
  func giveBack() throws(RepositoryError) -> Bool {
    // A fold that has failed at this length fails again. Each refused value would write a main file.
    guard let journal, journal.end != triedToGiveBackAt else { return false }
    triedToGiveBackAt = journal.end
    if let folding {
      // The unfinished file of the checkpoint may have taken the last space.
      giveUpFolding()
      if case .mainFile = folding.part {
        givenUp = RepositoryError(.full, "the checkpoint was given up for a value that had no room", file: paths.mainFile)
      }
      try checkHealth()
      return true
    }
    let live = changes.values.reduce(0) { $0 + ($1.value?.count ?? 0) }
    // Half of the journal is dead, and it is long enough for the fold to free more than it costs.
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
      // The caller throws `.full` for the value.
      guard error.code == .outcomeUnknown else { return false }
      throw noted(error)
    }
  }

  /// Allocates the reserve for deletions again, which was cut from the journal.
  ///
  /// If its space is gone meanwhile, deletions are tried in a new main file.
  private func keepReserve(_ allocated: Int) throws(RepositoryError) {
    do throws(RepositoryError) { try journal?.growAgain(to: allocated) } catch {
      guard error.code != .outcomeUnknown else { throw noted(error) }
    }
  }

  /// Replaces the main file by one with all records, and removes the journal.
  ///
  /// - Parameter batch: Deletions that the journal does not have.
  /// - Throws: `.full` with nothing done, `.outcomeUnknown`.
  private func replaceMain(with batch: WriteBatch?, keepingTombstones: Bool = true) throws(RepositoryError) {
    var draft = draft()
    // A copy of the previous main file would take the space that is needed.
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
      // The journal still has every acknowledged commit.
      guard batch != nil else { return }
      // Only this sync could have shown whether the batch survives a power cut.
      throw noted(unsynced(error))
    }
    // Closed here and not with the last reference: its space is needed now.
    do throws(RepositoryError) { try old.file.close() } catch {}
    removeJournal()
  }

  /// Removes a journal whose commits are all in the main file.
  ///
  /// The next commit creates another.
  ///
  /// The removal is durable if the disk allows it. Once it is, a journal that appears belongs to another process.
  private func removeJournal() {
    guard let old = journal else { return }
    // Set before the removal, which may fail in the middle.
    (journal, unusedJournal, hasUnusedJournal) = (nil, old.identity, true)
    // Errors are ignored, since a journal that stays adds nothing to the main file.
    do throws(RepositoryError) {
      try old.close()
      try fileSystem.remove(paths.journal)
      try fileSystem.syncDirectory(paths.directory)
      (unusedJournal, hasUnusedJournal) = (nil, false)
    } catch {}
  }
}
