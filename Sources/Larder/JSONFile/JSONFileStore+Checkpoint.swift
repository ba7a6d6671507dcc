internal import Dispatch
internal import Foundation

extension JSONFileStore {
  /// True if the journal is larger than 4 MiB and one and a half times the main file, or than 16 MiB if records stay in the files.
  ///
  /// If the journal is larger than one and a half times the main file, folding rewrites less than two thirds of a byte of the old main file
  /// for each byte of the journal.
  var wantsCheckpoint: Bool {
    guard let journal, folding == nil, !isPoisoned else { return false }
    let limit = max(4 << 20, main.size + main.size / 2)
    // A store that leaves its records in the files keeps the changes of its journal in memory, so their size is bounded.
    return journal.end > (paging.isActive ? min(limit, tuning.pagedJournal) : limit)
  }

  /// True if the main file is small or at most twice as large as the journal, or if the journal's oldest change is a day old.
  ///
  /// The store reads this property at a pause after a commit, and on close. If the store waited for a larger journal, folding would cost
  /// less per commit, but the next opening, which replays and copies the journal, would take longer. With a journal of half the main file's
  /// size, opening takes three times as long as without a journal.
  ///
  /// Commits and folds together write at most four times the bytes of the journal: the journal itself, at most twice its size for the old
  /// main file, and at most its size for inserted records. The bound of four times does not hold for a small main file, for requested
  /// checkpoints, for a change that is a day old, for a store that leaves its records in the files, and for the copy that
  /// `keepsPreviousSnapshot` makes.
  var isCheckpointWorthwhile: Bool {
    guard folding == nil, !isPoisoned else { return false }
    // Without new commits, a checkpoint is worthwhile only if a journal exists or if the main file's name may not be durable.
    guard let journal, commit > main.header.commit else { return !isMainDurable || journal != nil }
    let isOld = oldestChange.map { ContinuousClock.now - $0 >= .seconds(86_400) } ?? false
    return main.size <= max(tuning.smallFile, journal.end * 2) || isOld
  }

  /// Folds the journal into a new main file and begins a new journal.
  ///
  /// A checkpoint takes the files through five states. After a crash in any of the states, the next opening recovers the same records:
  /// - the old main file and the old journal,
  /// - the old main file and the old journal, with a temporary main file beside them,
  /// - the new main file with the old journal, whose commits are all in this main file,
  /// - the new main file with the old journal, with a temporary journal beside them,
  /// - the new main file and the new journal.
  func checkpoint() throws(RepositoryError) {
    try checkHealth()
    try checkFiles()
    // Without new commits, the main file is written again only if a power cut could bring back the previous main file.
    guard commit > main.header.commit || !isMainDurable else { return }
    try replaceMain()
    try createJournal()
  }

  /// Returns a description of the next main file, without the changes that a running checkpoint is folding.
  func draft() -> MainFileDraft {
    MainFileDraft(
      paths: paths, fileSystem: fileSystem, main: main, changes: changes, commit: commit,
      journalSalt: journal?.header.salt ?? MainFileHeader.noJournal, options: options, isIndexed: paging.isActive,
      indexes: paging.indexDrafts)
  }

  /// Returns the contents of the next main file with all changes, including the changes that a running checkpoint is folding.
  func fold() -> MainFileFold {
    var draft = draft()
    if case .mainFile(_, let box) = folding?.part, let begun = box.value { draft.changes = begun.changes.merging(changes) { $1 } }
    return draft.fold
  }

  /// Replaces the main file durably by a new main file with all records.
  ///
  /// The old journal keeps its name. All commits of the old journal are in the new main file, so replaying the old journal would change
  /// nothing.
  func replaceMain() throws(RepositoryError) {
    giveUpFolding()
    // If a sync of a background checkpoint has failed, `giveUpFolding()` has poisoned the store, and nothing more may be written.
    try checkHealth()
    let next = try putInPlace(draft())
    changes = [:]
    try install(next)
  }

  /// Writes the next main file and renames it into place.
  ///
  /// The rename becomes durable only with a sync of the directory.
  func putInPlace(_ draft: MainFileDraft) throws(RepositoryError) -> MainFile {
    let next = try draft.write()
    do throws(RepositoryError) {
      try renameMain(to: next)
    } catch {
      draft.discard(next)
      throw error
    }
    return next
  }

  /// Renames the next main file into place.
  ///
  /// The rename becomes durable only with a sync of the directory.
  ///
  /// The header of the next main file has the salt of the folded journal. The directory entry of the folded journal is made durable first,
  /// because a power cut must not bring back an earlier journal with another salt.
  func renameMain(to next: MainFile) throws(RepositoryError) {
    do throws(RepositoryError) { try syncJournalName() } catch { throw noted(error) }
    // The file attributes are copied again, because an app may have changed them while the next main file was written.
    try next.file.copyAttributes(of: main.file)
    try FileReplacement(path: paths.mainFile, fileSystem: fileSystem).rename()
  }

  /// Switches the store to a main file that was renamed into place, and makes the name of that file durable.
  ///
  /// Until the name of the new main file is durable, the journal must not be removed, even if the new main file has all its commits.
  func install(_ next: MainFile) throws(RepositoryError) {
    takeIntoUse(next)
    try fileSystem.syncDirectory(paths.directory)
    isMainDurable = true
  }

  /// Switches the store to a main file that was renamed into place.
  func takeIntoUse(_ next: MainFile) {
    let old = main
    use(next)
    // Changes that are not in the new main file were committed while that file was written, so the present time is close enough to the time
    // of the oldest of these changes.
    oldestChange = changes.isEmpty ? nil : .now
    isMainDurable = false
    // Another thread drops the last reference to the old main file, because the system then frees the file's space, which takes a while for
    // a large file.
    DispatchQueue.global(qos: .utility).async { withExtendedLifetime(old) {} }
  }

  /// Creates an empty journal for the main file, which replaces the old journal, whose commits are all in the main file.
  ///
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable`. If the call throws before the new journal is renamed into place, the
  ///   store continues the old journal. If the call throws after the rename, the next commit creates another journal.
  func createJournal() throws(RepositoryError) {
    let header = JournalHeader(continuing: main.header)
    let replacement = FileReplacement(path: paths.journal, fileSystem: fileSystem)
    let new = try replacement.write(like: main) { file throws(RepositoryError) in
      let contents = try JournalWriter.create(file, header, chunk: tuning.journalChunk)
      // The journal writer keeps the file descriptor with which the journal was created, because a process without free descriptors could
      // not open the journal after the rename.
      let new = try JournalWriter(continuing: file, contents, chunk: tuning.journalChunk, name: paths.journal, growingIn: fileSystem)
      try replacement.rename()
      return new
    }
    let old = journal
    // The new journal is not used until its name is durable, because a power cut could otherwise remove the name, and with it the commits
    // in the new journal.
    (journal, unusedJournal, hasUnusedJournal) = (nil, new.identity, true)
    isJournalDurable = false
    // The main file has all commits of the old journal, so an error of `close` is harmless.
    do throws(RepositoryError) { try old?.close() } catch {}
    try fileSystem.syncDirectory(paths.directory)
    isJournalDurable = true
    (journal, unusedJournal, hasUnusedJournal) = (new, nil, false)
  }
}
