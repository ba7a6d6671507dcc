internal import Foundation

extension JSONFileStore {
  /// Commits deletions on a full disk, and makes the files smaller by what was deleted.
  ///
  /// The states on the way recover to what was there before or after the batch: the journal with the batch; then the new main file, which
  /// has the batch too.
  func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError) {
    try checkUse(of: batch)
    giveUpFolding()
    try checkHealth()
    var isAppended = false
    if journal != nil {
      do throws(RepositoryError) {
        if batch.durability != .buffered { try syncJournalName() }
        try journal?.append(batch)
        isAppended = true
      } catch {
        guard error.code == .full else { throw noted(error) }
      }
    }
    if isAppended { note(batch) }
    let allocated = journal?.allocated ?? 0
    do throws(RepositoryError) {
      do throws(RepositoryError) { try journal?.cutGrowth() } catch { throw noted(error) }
      do throws(RepositoryError) {
        try replaceMain(with: isAppended ? nil : batch)
      } catch {
        // Tombstones may have no room where deleting has: asking for the deletions since then throws `.unsupported`.
        guard error.code == .full else { throw error }
        try replaceMain(with: isAppended ? nil : batch, keepingTombstones: false)
      }
    } catch {
      // What was appended is committed, whatever prevents the files from becoming smaller.
      guard isAppended, error.code != .outcomeUnknown else { throw error }
      try keepReserve(allocated)
    }
  }

  /// Folds the journal for a value that has no room, if that promises space: something was deleted or overwritten, as by a store that was
  /// cleared before it was opened.
  ///
  /// Cost where it has no room: one main file up to the end of the disk, once for each end of the journal.
  /// - Returns: Whether there is more space now.
  /// - Throws: `.outcomeUnknown`.
  func giveBack() throws(RepositoryError) -> Bool {
    guard let journal, journal.end != triedToGiveBackAt else { return false }
    triedToGiveBackAt = journal.end
    if let folding {
      // Its unfinished file may have taken the last space.
      giveUpFolding()
      if case .mainFile = folding.part {
        givenUp = RepositoryError(.full, "the checkpoint was given up for a value that had no room", file: paths.mainFile)
      }
      try checkHealth()
      return true
    }
    let live = changes.values.reduce(0) { $0 + ($1.value?.count ?? 0) }
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
      // The caller hears that there is no room for the value.
      guard error.code == .outcomeUnknown else { return false }
      throw noted(error)
    }
  }

  /// Allocates again what was cut from the journal, because deletions need it.
  ///
  /// If the space is gone meanwhile, they are tried in a new main file.
  private func keepReserve(_ allocated: Int) throws(RepositoryError) {
    do throws(RepositoryError) { try journal?.growAgain(to: allocated) } catch {
      guard error.code != .outcomeUnknown else { throw noted(error) }
    }
  }

  /// Puts a main file of everything in the place of the old one, and removes the journal.
  ///
  /// - Parameter batch: Deletions that the journal does not have.
  /// - Throws: `.full` with nothing done; `.outcomeUnknown`.
  private func replaceMain(with batch: WriteBatch?, keepingTombstones: Bool = true) throws(RepositoryError) {
    var draft = draft()
    // A copy of the old one would take the space that is wanted.
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
      // The journal still has everything that was acknowledged.
      guard batch != nil else { return }
      // Whether the batch is there after a power cut, only that tells.
      throw noted(unsynced(error))
    }
    // Now, and not when the last reference goes: its space is wanted.
    do throws(RepositoryError) { try old.file.close() } catch {}
    removeJournal()
  }

  /// Removes a journal that the main file has everything of; the next commit makes another.
  ///
  /// Durably, if the disk lets it: one that is found later is another process's then.
  private func removeJournal() {
    guard let old = journal else { return }
    (journal, unusedJournal, hasUnusedJournal) = (nil, old.identity, true)
    do throws(RepositoryError) {
      try old.close()
      try fileSystem.remove(paths.journal)
      try fileSystem.syncDirectory(paths.directory)
      (unusedJournal, hasUnusedJournal) = (nil, false)
    } catch {}  // what is left of it adds nothing to the main file
  }
}
