internal import Dispatch
internal import Foundation

extension JSONFileStore {
  /// True if the journal is larger than 4 MiB and than one and a half times the main file.
  ///
  /// Folding then rewrites at most two thirds of a byte of the old file for each byte of the journal.
  var wantsCheckpoint: Bool {
    guard let journal, folding == nil, !isPoisoned else { return false }
    return journal.end > max(4 << 20, main.size + main.size / 2)
  }

  /// True if folding the journal rewrites at most twice its bytes, or a small file, or if the oldest change has waited for a day.
  ///
  /// Read at a pause after a commit, and on close. A larger journal would be cheaper still, but the next opening replays and copies it:
  /// with one of half the file's size, opening takes three times as long. In all at most four times the bytes of the journal are written,
  /// since inserted records are in the new file too. Exceptions are a small file, requested checkpoints, a change that has waited for a
  /// day, and the copy of `keepsPreviousSnapshot`.
  var isCheckpointWorthwhile: Bool {
    guard folding == nil, !isPoisoned else { return false }
    // Without new commits only a leftover journal or an undurable name is worth it.
    guard let journal, commit > main.header.commit else { return !isMainDurable || journal != nil }
    let isOld = oldestChange.map { ContinuousClock.now - $0 >= .seconds(86_400) } ?? false
    return main.size <= max(tuning.smallFile, journal.end * 2) || isOld
  }

  /// Folds the journal into a new main file and begins a new journal.
  ///
  /// Five states follow each other, and each recovers to the same records: the old pair, the old pair with a temporary main file, the new
  /// main file with the old journal (which adds nothing), the same with a temporary journal, and the new pair.
  func checkpoint() throws(RepositoryError) {
    try checkHealth()
    try checkFiles()
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

  /// Returns the contents of the main file with all changes, including those that a running checkpoint is folding.
  func fold() -> MainFileFold {
    var draft = draft()
    if case .mainFile(_, let box) = folding?.part, let begun = box.value { draft.changes = begun.changes.merging(changes) { $1 } }
    return draft.fold
  }

  /// Replaces the main file by one with all records, durably.
  ///
  /// The old journal stays, and adds nothing to the new file.
  func replaceMain() throws(RepositoryError) {
    giveUpFolding()
    // A failed sync in the checkpoint that was given up stops all writing.
    try checkHealth()
    let next = try putInPlace(draft())
    changes = [:]
    try install(next)
  }

  /// Writes a main file and renames it into place.
  ///
  /// The rename is not durable yet.
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
  /// The rename is not durable yet.
  ///
  /// Its header names the folded journal, whose own name must be durable first: a power cut must not bring back the journal before that
  /// one.
  func renameMain(to next: MainFile) throws(RepositoryError) {
    do throws(RepositoryError) { try syncJournalName() } catch { throw noted(error) }
    // Copied again: an app may have changed the attributes while the next file was written.
    try next.file.copyAttributes(of: main.file)
    try FileReplacement(path: paths.mainFile, fileSystem: fileSystem).rename()
  }

  /// Switches to the renamed main file and makes its name durable.
  ///
  /// Until then no change or journal that it contains may be dropped.
  func install(_ next: MainFile) throws(RepositoryError) {
    takeIntoUse(next)
    try fileSystem.syncDirectory(paths.directory)
    isMainDurable = true
  }

  /// Switches the store to the main file that was renamed into place.
  func takeIntoUse(_ next: MainFile) {
    let old = main
    main = next
    oldestChange = changes.isEmpty ? nil : .now
    isMainDurable = false
    // The system frees the old file when the last reference closes it. For a large file that takes a while.
    DispatchQueue.global(qos: .utility).async { withExtendedLifetime(old) {} }
  }

  /// Creates an empty journal for the main file in place, and replaces the old journal, whose commits the main file has.
  ///
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable`. The store goes on with the old journal if that has kept its name.
  ///   Otherwise the next commit creates another.
  func createJournal() throws(RepositoryError) {
    let header = JournalHeader(continuing: main.header)
    let replacement = FileReplacement(path: paths.journal, fileSystem: fileSystem)
    let new = try replacement.write(like: main) { file throws(RepositoryError) in
      let contents = try JournalWriter.create(file, header, chunk: tuning.journalChunk)
      // Opened before the rename and kept open: a process without free descriptors could not open it afterwards.
      let new = try JournalWriter(continuing: file, contents, chunk: tuning.journalChunk, name: paths.journal, growingIn: fileSystem)
      try replacement.rename()
      return new
    }
    let old = journal
    // No journal is in use until its name is durable: a power cut would take commits in it away.
    (journal, unusedJournal, hasUnusedJournal) = (nil, new.identity, true)
    isJournalDurable = false
    // Its commits are in the main file.
    do throws(RepositoryError) { try old?.close() } catch {}
    try fileSystem.syncDirectory(paths.directory)
    isJournalDurable = true
    (journal, unusedJournal, hasUnusedJournal) = (new, nil, false)
  }
}
