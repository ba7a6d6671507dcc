internal import Dispatch
internal import Foundation

extension JSONFileStore {
  /// True if the journal is larger than 4 MiB and than one and a half times the main file.
  ///
  /// Above one and a half times the main file, a fold rewrites at most two thirds of a byte of the old main file for each byte of the
  /// journal.
  var wantsCheckpoint: Bool {
    guard let journal, folding == nil, !isPoisoned else { return false }
    return journal.end > max(4 << 20, main.size + main.size / 2)
  }

  /// True if the main file is small or at most twice as large as the journal, or if the oldest change has waited for a day.
  ///
  /// The store reads this property at a pause after a commit, and on close. If the store waited for a larger journal, folding would cost
  /// less per commit, but the next opening, which replays and copies the journal, would take longer. With a journal of half the main file's
  /// size, opening takes three times as long as without a journal. With this rule, commits and folds together write at most four times the
  /// bytes of the journal: once the journal, at most twice its bytes for the old main file, and once for inserted records. The bound of
  /// four times does not hold for a small file, requested checkpoints, a change that has waited for a day, and the copy that
  /// `keepsPreviousSnapshot` makes.
  var isCheckpointWorthwhile: Bool {
    guard folding == nil, !isPoisoned else { return false }
    // Without new commits, a checkpoint is worthwhile only if a journal is left over or if the main file's name may not be durable.
    guard let journal, commit > main.header.commit else { return !isMainDurable || journal != nil }
    let isOld = oldestChange.map { ContinuousClock.now - $0 >= .seconds(86_400) } ?? false
    return main.size <= max(tuning.smallFile, journal.end * 2) || isOld
  }

  /// Folds the journal into a new main file and begins a new journal.
  ///
  /// The files pass through five states, and each state recovers to the same records:
  /// - the old main file and the old journal,
  /// - the old files, with a temporary main file beside them,
  /// - the new main file with the old journal, whose commits are all in this main file,
  /// - the new main file with the old journal, with a temporary journal beside them,
  /// - the new main file and the new journal.
  func checkpoint() throws(RepositoryError) {
    try checkHealth()
    try checkFiles()
    // Without new commits, the main file is written again only if a power cut could bring its predecessor back.
    guard commit > main.header.commit || !isMainDurable else { return }
    try replaceMain()
    try createJournal()
  }

  /// Returns the draft of the next main file, without the changes that a running checkpoint is folding.
  func draft() -> MainFileDraft {
    MainFileDraft(
      paths: paths, fileSystem: fileSystem, main: main, changes: changes, commit: commit,
      journalSalt: journal?.header.salt ?? MainFileHeader.noJournal, options: options)
  }

  /// Returns the contents of the main file with all changes, including the changes that a running checkpoint is folding.
  func fold() -> MainFileFold {
    var draft = draft()
    if case .mainFile(_, let box) = folding?.part, let begun = box.value { draft.changes = begun.changes.merging(changes) { $1 } }
    return draft.fold
  }

  /// Replaces the main file by one with all records, durably.
  ///
  /// The old journal stays in place. All its commits are in the new main file, so replaying it would change nothing.
  func replaceMain() throws(RepositoryError) {
    giveUpFolding()
    // If a sync in the background checkpoint has failed, giving up that checkpoint has poisoned the store, and nothing more may be written.
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
      draft.replacement.discard(next.file)
      throw error
    }
    return next
  }

  /// Renames the next main file into place.
  ///
  /// The rename becomes durable only with a sync of the directory.
  ///
  /// The header of the next main file names the folded journal. The name of that journal is made durable first, because a power cut must
  /// not bring back an earlier journal, which the header does not name.
  func renameMain(to next: MainFile) throws(RepositoryError) {
    do throws(RepositoryError) { try syncJournalName() } catch { throw noted(error) }
    // The attributes are copied again, because an app may have changed them while the next main file was written.
    try next.file.copyAttributes(of: main.file)
    try FileReplacement(path: paths.mainFile, fileSystem: fileSystem).rename()
  }

  /// Switches the store to the renamed main file and makes the name of that file durable.
  ///
  /// Until the name of the new main file is durable, neither changes in memory nor a journal may be dropped, even if the new main file
  /// contains their commits.
  func install(_ next: MainFile) throws(RepositoryError) {
    takeIntoUse(next)
    try fileSystem.syncDirectory(paths.directory)
    isMainDurable = true
  }

  /// Switches the store to the main file that was renamed into place.
  func takeIntoUse(_ next: MainFile) {
    let old = main
    main = next
    // Changes that are not in the new main file were committed while that file was written, so the present time is close enough as the time
    // of the oldest one.
    oldestChange = changes.isEmpty ? nil : .now
    isMainDurable = false
    // Another thread drops the last reference to the old main file, because the system then frees the file, which takes a while if it is
    // large.
    DispatchQueue.global(qos: .utility).async { withExtendedLifetime(old) {} }
  }

  /// Creates an empty journal for the present main file, and replaces the old journal, whose commits the main file has.
  ///
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable`. The store goes on with the old journal if that journal has kept its
  ///   name. If the old journal has lost its name, the next commit creates another journal.
  func createJournal() throws(RepositoryError) {
    let header = JournalHeader(continuing: main.header)
    let replacement = FileReplacement(path: paths.journal, fileSystem: fileSystem)
    let new = try replacement.write(like: main) { file throws(RepositoryError) in
      let contents = try JournalWriter.create(file, header, chunk: tuning.journalChunk)
      // The journal writer keeps the descriptor with which the file was created, because a process without free descriptors could not open
      // the journal after the rename.
      let new = try JournalWriter(continuing: file, contents, chunk: tuning.journalChunk, name: paths.journal, growingIn: fileSystem)
      try replacement.rename()
      return new
    }
    let old = journal
    // The new journal is not used until its name is durable, because a power cut before that would lose the new name and the commits in the
    // journal.
    (journal, unusedJournal, hasUnusedJournal) = (nil, new.identity, true)
    isJournalDurable = false
    // The main file has all commits of the old journal, so an error of `close` is harmless.
    do throws(RepositoryError) { try old?.close() } catch {}
    try fileSystem.syncDirectory(paths.directory)
    isJournalDurable = true
    (journal, unusedJournal, hasUnusedJournal) = (new, nil, false)
  }
}
