internal import Dispatch
internal import Foundation

extension JSONFileStore {
  /// Whether the journal is half as large again as the main file, so that folding it rewrites at most two thirds of a byte of the old file
  /// for each byte of the journal.
  var wantsCheckpoint: Bool {
    guard let journal, folding == nil, !isPoisoned else { return false }
    return journal.end > max(4 << 20, main.size + main.size / 2)
  }

  /// Whether folding the journal is worth what it rewrites of the old file: at most twice the bytes in the journal, or a small file; or the
  /// oldest of the changes has waited for a day.
  ///
  /// Asked at a pause after a commit, and on close. A larger journal would be cheaper still, but the next opening replays and copies it:
  /// one of half the file's size makes that three times as long. What is written in all is at most four times what goes into the journal,
  /// since what was inserted is in the new file, too; unless the file is small, checkpoints are requested, a change has waited for a day,
  /// or `keepsPreviousSnapshot` writes a copy besides.
  var isCheckpointWorthwhile: Bool {
    guard folding == nil, !isPoisoned else { return false }
    guard let journal, commit > main.header.commit else { return !isMainDurable || journal != nil }
    let isOld = oldestChange.map { ContinuousClock.now - $0 >= .seconds(86_400) } ?? false
    return main.size <= max(tuning.smallFile, journal.end * 2) || isOld
  }

  /// Folds the journal into a new main file and begins a new journal.
  ///
  /// The states on the way, each of which recovers to the same records: the old pair; with a temporary main file beside it; the new main
  /// file with the old journal, whose commits it has all; with a temporary journal beside it; the new pair.
  func checkpoint() throws(RepositoryError) {
    try checkHealth()
    try checkFiles()
    guard commit > main.header.commit || !isMainDurable else { return }
    try replaceMain()
    try createJournal()
  }

  /// Returns the draft of the next main file, with all changes that no checkpoint is at work on.
  func draft() -> MainFileDraft {
    MainFileDraft(
      paths: paths, fileSystem: fileSystem, main: main, changes: changes, commit: commit,
      journalSalt: journal?.header.salt ?? MainFileHeader.noJournal, options: options)
  }

  /// Returns the contents of the main file with all changes, also those that a checkpoint is at work on.
  func fold() -> MainFileFold {
    var draft = draft()
    if case .mainFile(_, let box) = folding?.part, let begun = box.value { draft.changes = begun.changes.merging(changes) { $1 } }
    return draft.fold
  }

  /// Puts a main file of everything in the place of the old one, durably.
  ///
  /// The old journal stays, and adds nothing to it.
  func replaceMain() throws(RepositoryError) {
    giveUpFolding()
    try checkHealth()
    let next = try putInPlace(draft())
    changes = [:]
    try install(next)
  }

  /// Writes a main file and gives it its name, which is not durable yet.
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

  /// Gives the next main file its name, which is not durable yet.
  ///
  /// The header names the journal that was folded: a power cut must not bring the one before that back beside it.
  func renameMain(to next: MainFile) throws(RepositoryError) {
    do throws(RepositoryError) { try syncJournalName() } catch { throw noted(error) }
    // An app may have changed them while the next file was written, which takes long beside commits.
    try next.file.copyAttributes(of: main.file)
    try FileReplacement(path: paths.mainFile, fileSystem: fileSystem).rename()
  }

  /// Takes the main file into use that has got its name, and makes the name durable: before that, nothing may be dropped that is in it.
  func install(_ next: MainFile) throws(RepositoryError) {
    takeIntoUse(next)
    try fileSystem.syncDirectory(paths.directory)
    isMainDurable = true
  }

  /// Takes the main file into use that has got its name.
  func takeIntoUse(_ next: MainFile) {
    let old = main
    main = next
    oldestChange = changes.isEmpty ? nil : .now
    isMainDurable = false
    // The old file is closed, and with it freed by the system, once nothing refers to it any more: for a large file that takes a while.
    DispatchQueue.global(qos: .utility).async { withExtendedLifetime(old) {} }
  }

  /// Makes an empty journal for the main file that is in place, and puts it in the place of the old one, which has nothing of its own.
  ///
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable`; the store goes on with the old journal if that has kept its name,
  ///   else the next commit makes another.
  func createJournal() throws(RepositoryError) {
    let header = JournalHeader(continuing: main.header)
    let replacement = FileReplacement(path: paths.journal, fileSystem: fileSystem)
    let new = try replacement.write(like: main) { file throws(RepositoryError) in
      let contents = try JournalWriter.create(file, header, chunk: tuning.journalChunk)
      // The file stays open while it is renamed: it could not be opened again where there are no descriptors left.
      let new = try JournalWriter(continuing: file, contents, chunk: tuning.journalChunk, name: paths.journal, growingIn: fileSystem)
      try replacement.rename()
      return new
    }
    let old = journal
    (journal, unusedJournal, hasUnusedJournal) = (nil, new.identity, true)
    isJournalDurable = false
    do throws(RepositoryError) { try old?.close() } catch {}  // what was in it is in the main file
    try fileSystem.syncDirectory(paths.directory)
    isJournalDurable = true
    (journal, unusedJournal, hasUnusedJournal) = (new, nil, false)
  }
}
