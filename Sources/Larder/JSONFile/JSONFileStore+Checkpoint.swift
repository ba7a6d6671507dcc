internal import Dispatch
internal import Foundation

extension JSONFileStore {
  /// Whether the journal is larger than the snapshot, so that folding it costs no more than it has cost to write it.
  var wantsCheckpoint: Bool {
    guard let journal, folding == nil, !isPoisoned else { return false }
    return journal.end > max(4 << 20, main.size)
  }

  /// Whether folding the journal is worth what it rewrites: at most eight times the bytes in the journal, or a small file; or the oldest of the
  /// changes has waited for a day.
  ///
  /// So one lone save does not rewrite a large file, and what is written in all is at most ten times what was saved.
  var isCheckpointWorthwhile: Bool {
    guard folding == nil, !isPoisoned else { return false }
    guard let journal, commit > main.header.commit else { return !isMainDurable || journal != nil }
    let isOld = oldestChange.map { ContinuousClock.now - $0 >= .seconds(86_400) } ?? false
    return main.size <= max(tuning.smallFile, journal.end * 8) || isOld
  }

  /// Folds the journal into a new snapshot and begins a new journal.
  ///
  /// The states on the way, each of which recovers to the same records: the old pair; with a temporary snapshot beside it; the new snapshot
  /// with the old journal, whose commits it has all; with a temporary journal beside it; the new pair.
  func checkpoint() throws(RepositoryError) {
    try checkHealth()
    try checkFiles()
    guard commit > main.header.commit || !isMainDurable else { return }
    try replaceMain()
    try createJournal()
  }

  /// The next snapshot, with all changes that no checkpoint is at work on.
  func draft() -> SnapshotDraft {
    SnapshotDraft(
      paths: paths, fileSystem: fileSystem, main: main, changes: changes, commit: commit, journalSalt: journal?.header.salt ?? unusedSalt,
      options: options, comparesChecksums: tuning.comparesChecksums)
  }

  /// The snapshot with all changes, also those that a checkpoint is at work on.
  func fold() -> SnapshotFold {
    var changes = changes
    if case .snapshot(_, let draft) = folding?.part { changes = draft.changes.merging(changes) { $1 } }
    return SnapshotFold(
      main, changes: changes, commit: commit, tombstoneLimit: options.limits.tombstones, path: paths.snapshot,
      comparesChecksums: tuning.comparesChecksums)
  }

  /// Puts a snapshot of everything in the place of the old one, durably.
  ///
  /// The old journal stays, and adds nothing to it.
  func replaceMain() throws(RepositoryError) {
    giveUpFolding()
    try checkHealth()
    let draft = draft()
    let next = try draft.write()
    do throws(RepositoryError) {
      try renameMain()
    } catch {
      draft.discard(next.file)
      throw error
    }
    changes = [:]
    try install(next)
  }

  /// Gives the next snapshot its name, which is not durable yet.
  ///
  /// It says which journal was folded: a power cut must not bring the one before that back beside it.
  func renameMain() throws(RepositoryError) {
    do throws(RepositoryError) { try syncJournalName() } catch { throw noted(error) }
    try fileSystem.rename(JSONFilePaths.temporary(for: paths.snapshot), to: paths.snapshot)
  }

  /// Takes the snapshot into use that has got its name, and makes the name durable.
  func install(_ next: MainFile) throws(RepositoryError) {
    takeIntoUse(next)
    try syncMainName()
  }

  /// Makes the name of the snapshot durable: before that, nothing may be dropped that is in it.
  func syncMainName() throws(RepositoryError) {
    try fileSystem.syncDirectory(paths.directory)
    isMainDurable = true
  }

  /// Takes the snapshot into use that has got its name.
  func takeIntoUse(_ next: MainFile) {
    let old = main
    main = next
    oldestChange = changes.isEmpty ? nil : .now
    isMainDurable = false
    // The old file is closed, and with it freed by the system, once nobody holds it any more: for a large file that takes a while.
    DispatchQueue.global(qos: .utility).async { withExtendedLifetime(old) {} }
  }

  /// Makes an empty journal for the snapshot that is in place, and puts it in the place of the old one, which has nothing of its own.
  ///
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable`; the store goes on with the old journal if that has kept its name, else the
  ///   next commit makes another.
  func createJournal() throws(RepositoryError) {
    let temporary = JSONFilePaths.temporary(for: paths.journal)
    let header = JournalHeader(
      storeID: main.header.storeID, generation: main.header.generation, base: main.header.commit,
      salt: .random(in: .min ... .max), tag: main.header.journal ?? 0)
    try fileSystem.remove(temporary)
    let file = try fileSystem.create(temporary)
    let new: JournalWriter
    do throws(RepositoryError) {
      if let owner = main.owner { try file.setOwner(owner) }
      let contents = try JournalWriter.create(file, header, chunk: tuning.journalChunk)
      // The file stays open while it is renamed: it could not be opened again where there are no descriptors left.
      new = try JournalWriter(
        continuing: file, contents, chunk: tuning.journalChunk, name: paths.journal, growingIn: fileSystem)
      try fileSystem.rename(temporary, to: paths.journal)
    } catch {
      // The failure is what the caller must hear of; a temporary file that stays is removed by the next open.
      do throws(RepositoryError) { try fileSystem.remove(temporary) } catch {}
      throw error
    }
    let old = journal
    (journal, unusedJournal, unusedSalt) = (nil, new.identity, header.salt)
    isJournalDurable = false
    do throws(RepositoryError) { try old?.close() } catch {}  // what was in it is in the snapshot
    try fileSystem.syncDirectory(paths.directory)
    isJournalDurable = true
    (journal, unusedJournal, unusedSalt) = (new, nil, nil)
  }
}

// MARK: A full disk

extension JSONFileStore {
  /// Commits deletions on a full disk, and makes the files smaller by what was deleted.
  ///
  /// The states on the way recover to what was there before or after the batch: the journal with the batch; then the new snapshot, which has the batch too.
  func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError) {
    try checkUse(of: batch)
    giveUpFolding()
    try checkHealth()
    var isAppended = false
    if journal != nil {
      do throws(RepositoryError) {
        if batch.durability == .durable { try syncJournalName() }
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
        // Tombstones may have no room where deleting has: whoever asks for the deletions since then is told to load everything again.
        guard error.code == .full else { throw error }
        try replaceMain(with: isAppended ? nil : batch, keepingTombstones: false)
      }
    } catch {
      // What was appended is committed, whatever prevents the files from becoming smaller.
      guard isAppended, error.code != .outcomeUnknown else { throw error }
      try keepReserve(allocated)
    }
  }

  /// Folds the journal for a value that has no room, if that promises space: something was deleted or overwritten, as by a store that was cleared
  /// before it was opened.
  ///
  /// Cost where it has no room: one snapshot up to the end of the disk, once for each end of the journal.
  /// - Returns: Whether there is more space now.
  /// - Throws: `.outcomeUnknown`.
  func giveBack() throws(RepositoryError) -> Bool {
    guard let journal, journal.end != triedToGiveBackAt else { return false }
    triedToGiveBackAt = journal.end
    if let folding {
      // Its unfinished file may have taken the last space.
      giveUpFolding()
      if case .snapshot = folding.part {
        givenUp = RepositoryError(.full, "the checkpoint was given up for a value that had no room", file: paths.snapshot)
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
  /// Where it is gone meanwhile, they are tried in a new snapshot.
  private func keepReserve(_ allocated: Int) throws(RepositoryError) {
    do throws(RepositoryError) { try journal?.growAgain(to: allocated) } catch {
      guard error.code != .outcomeUnknown else { throw noted(error) }
    }
  }

  /// Puts a snapshot of everything in the place of the old one, and removes the journal.
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
    let next = try draft.write()
    do throws(RepositoryError) {
      try renameMain()
    } catch {
      draft.discard(next.file)
      throw error
    }
    let old = main
    if let batch { note(batch) }
    changes = [:]
    do throws(RepositoryError) {
      try install(next)
    } catch {
      // The journal still has everything that was acknowledged.
      guard batch != nil else { return }
      // Whether the batch is there after a power cut, only that tells.
      throw noted(RepositoryError(.outcomeUnknown, "the directory could not be synced", file: paths.directory, underlying: error))
    }
    // Now, and not when nobody holds it any more: its space is wanted.
    do throws(RepositoryError) { try old.file.close() } catch {}
    removeJournal()
  }

  /// Removes a journal that the snapshot has everything of; the next commit makes another.
  private func removeJournal() {
    guard let old = journal else { return }
    (journal, unusedJournal, unusedSalt) = (nil, old.identity, old.header.salt)
    do throws(RepositoryError) {
      try old.close()
      try fileSystem.remove(paths.journal)
    } catch {}  // what is left of it adds nothing to the snapshot
  }
}
