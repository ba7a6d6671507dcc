internal import Foundation

/// An open JSON store: its main file (the document with all records up to a commit), its journal, and the changes in the journal.
final class JSONFileStore {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let tuning: JSONFileBackend.Tuning
  let options: StoreOptions
  var lock: any HeldLock
  var main: MainFile
  /// True if the directory entry of the main file is durable.
  var isMainDurable = true
  /// Open journal, or `nil` until recovery, a commit or a checkpoint creates it.
  var journal: JournalWriter?
  /// True if the directory entry of the journal is durable.
  ///
  /// Commits that are not durable may come before that.
  var isJournalDurable = true
  /// True if a journal may exist that is not in use, because a sync of the directory failed after its creation or removal.
  var hasUnusedJournal = false
  /// Identity of the journal that is not in use, or `nil` if unknown or if the file system has no identities.
  var unusedJournal: FileIdentity?
  /// Reason for giving up the background checkpoint, until `continueCheckpoint` throws it.
  var givenUp: RepositoryError?
  /// Newest record or tombstone of every address that the journal has and the main file does not.
  var changes: [RecordAddress: StoredRecord]
  /// Newest record or tombstone of every address that other processes changed while the store was suspended, until the next commit.
  var foreignChanges: [RecordAddress: StoredRecord] = [:]
  /// Checkpoint that runs beside commits, if any.
  ///
  /// The changes that it is folding are not in ``changes``.
  var folding: FoldInProgress?
  /// Time of the oldest change, or of opening if the change was there already.
  var oldestChange: ContinuousClock.Instant?
  /// End of the journal at the last attempt to free space for a value that had no room.
  var triedToGiveBackAt: Int?
  /// Newest commit of the store.
  private(set) var commit: UInt64
  /// Failure of a sync, after which the store writes nothing more.
  private var poison: RepositoryError?

  init(
    _ recovery: JSONFileRecovery, _ options: StoreOptions, _ lock: any HeldLock, _ main: MainFile, journal: JournalWriter?,
    changes: [RecordAddress: StoredRecord], commit: UInt64
  ) {
    paths = recovery.paths
    fileSystem = recovery.fileSystem
    tuning = recovery.tuning
    self.options = options
    self.lock = lock
    self.main = main
    self.journal = journal
    self.changes = changes
    self.commit = commit
    oldestChange = changes.isEmpty ? nil : .now
  }

  // A store that is dropped without `close` leaves its files as a crash does, but no thread uses them and no lock is held any more.
  deinit { release() }

  /// Commits a batch, and tries once more after freeing space if the disk is full.
  func commit(_ batch: WriteBatch, isRetry: Bool = false) throws(RepositoryError) {
    try checkUse(of: batch)
    if journal == nil { try createJournal() }
    do throws(RepositoryError) {
      // Otherwise a power cut could bring back the journal before this one, and lose a durable commit.
      if batch.durability != .buffered { try syncJournalName() }
      try journal?.append(batch) { noteChanges(of: batch) }
    } catch {
      // Deletions alone are not retried: `commitOnFullDisk` has a reserve for them.
      guard error.code == .full, !isRetry, batch.records.contains(where: { $0.value != nil }), try giveBack() else { throw noted(error) }
      return try commit(batch, isRetry: true)
    }
    // Only now: a commit that failed must leave its number free.
    commit = batch.commits.upperBound
    if !foreignChanges.isEmpty { foreignChanges = [:] }
  }

  /// Refuses a batch that the store cannot commit now.
  func checkUse(of batch: WriteBatch) throws(RepositoryError) {
    try checkHealth()
    guard batch.commits.lowerBound == commit + 1, batch.commits.upperBound < .max else {
      throw .notConsecutive(batch, after: Revision(commit), file: paths.mainFile)
    }
    try check(batch)
    try checkFiles()
  }

  /// Adds a batch that is in the files to the state in memory.
  func note(_ batch: WriteBatch) {
    noteChanges(of: batch)
    commit = batch.commits.upperBound
  }

  /// Adds the changes of an appended batch to memory.
  ///
  /// ``commit`` follows once the batch is as durable as it must be.
  private func noteChanges(of batch: WriteBatch) {
    // Spares several growths of the dictionary. For a few records it would copy a large dictionary instead.
    if batch.records.count > changes.count { changes.reserveCapacity(changes.count + batch.records.count) }
    for record in batch.records { changes[record.address] = record }
    if oldestChange == nil { oldestChange = .now }
  }

  /// Syncs the journal if it has a commit that is not durable.
  func flush() throws(RepositoryError) {
    try checkHealth()
    try checkFiles()
    do throws(RepositoryError) {
      try syncJournalName()
      // An ordered commit may still be lost in a power cut, so it counts as unsynced here.
      if let journal, journal.durableThrough < journal.lastCommit || journal.isOrderedOnly { try self.journal?.sync() }
      // Only so that the next opening finds no broken frame. If the device refuses, nothing becomes less durable.
      do throws(RepositoryError) { try self.journal?.takeBackBrokenFrame() } catch {
        if error.code != .protectedDataUnavailable { throw error }
      }
    } catch {
      throw noted(error)
    }
  }

  /// Folds the journal if that is worth it, or else makes it durable, and releases the locks.
  ///
  /// Releases everything even when it throws.
  func close() throws(RepositoryError) {
    defer { release() }
    try checkHealth()
    guard commit > main.header.commit || journal != nil || !isMainDurable else { return }
    // An unfinished new main file must not stay, and its changes belong to this fold.
    giveUpFolding()
    guard isCheckpointWorthwhile else { return try flush() }
    try checkFiles()
    if commit > main.header.commit || !isMainDurable { try replaceMain() }
    guard let journal else { return }
    // Only after `replaceMain` is durable: until then a power cut may need the journal.
    try journal.close()
    try fileSystem.remove(paths.journal)
    try fileSystem.syncDirectory(paths.directory)
  }

  /// Releases the locks and leaves the files as they are.
  func release() {
    giveUpFolding()
    // All writes have ended, so an error of `close` changes nothing. The descriptors are closed with their last reference at the latest.
    do throws(RepositoryError) { try journal?.close() } catch {}
    do throws(RepositoryError) { try main.file.close() } catch {}
    lock.release()
  }

  // MARK: Checks before the store writes

  /// Refuses a batch that the format cannot hold.
  func check(_ batch: WriteBatch) throws(RepositoryError) {
    var size = 0
    for record in batch.records {
      size += JournalFormat.operationHeaderSize + record.collection.utf8.count + record.key.byteCount + (record.value?.count ?? 0)
      guard let value = record.value else { continue }
      // A line feed inside a value would end its line in the main file, and an empty value would leave broken JSON.
      guard value.withUnsafeBytes({ $0.isOneLine }) else {
        throw RepositoryError(
          .encodingFailed, "expected one line of JSON, found a line feed or nothing", file: paths.mainFile, keyHash: record.key.hash)
      }
    }
    // The frame header has 32 bits for the size, and a reader on a 32-bit system must be able to address it.
    guard size <= JournalFormat.countLimit, batch.records.count < 1 << 24 else {
      throw RepositoryError(.tooLarge, "a batch is at most \(JournalFormat.countLimit) bytes and 16 million records", file: paths.mainFile)
    }
  }

  /// Throws unless the paths of main file and journal still lead to the open files.
  ///
  /// Commits to a removed file would be lost.
  ///
  /// Cost: two calls of `lstat`.
  /// - Throws: `.dataMissing`, or `.locked` for a journal that another process has made.
  func checkFiles() throws(RepositoryError) {
    try Self.checkMainFile(main, at: paths.mainFile, fileSystem)
    let found = try fileSystem.status(of: paths.journal)
    guard let journal else {
      // Without identities the unused journal is assumed to be the one that exists.
      guard let found, !hasUnusedJournal || unusedJournal != nil && found.identity != unusedJournal else { return }
      throw RepositoryError(
        .locked, "expected no journal, found one of another process: close the store, and open it again", file: paths.journal)
    }
    guard let found else {
      throw RepositoryError(
        .dataMissing, "the journal is gone while its store is open; put it back, or close the store", file: paths.journal)
    }
    // A journal that was cut has lost its terminator, and perhaps commits.
    guard found.kind == .file, journal.identity == nil || found.identity == journal.identity, found.size >= journal.allocated else {
      throw RepositoryError(
        .dataMissing, "the journal was cut or replaced while its store is open; put it back, or close the store", file: paths.journal)
    }
  }

  /// Throws unless a path still leads to the open main file.
  /// - Throws: `.dataMissing`.
  static func checkMainFile(_ main: MainFile, at path: String, _ fileSystem: any FileSystem) throws(RepositoryError) {
    guard let found = try fileSystem.status(of: path) else {
      throw RepositoryError(.dataMissing, "the main file is gone while its store is open; put it back, or close the store", file: path)
    }
    guard found.kind == .file, main.identity == nil || found.identity == main.identity, found.size == main.size else {
      throw RepositoryError(
        .dataMissing, "another file was put in the place of the main file while its store is open; put it back, or close the store",
        file: path)
    }
  }

  /// Makes the journal's directory entry durable, so that no power cut can bring the previous journal back.
  ///
  /// If a checkpoint is syncing the directory, waits for it: a second sync succeeds even after a failed one, and proves nothing.
  /// - Throws: `.outcomeUnknown`. Another error if the directory could not be opened, which proves nothing about the entry.
  func syncJournalName() throws(RepositoryError) {
    if isJournalDurable { return }
    do throws(RepositoryError) {
      if case .name(let work, _) = folding?.part {
        // Runs the sync here if its thread has not begun. Otherwise it waits for the mutex.
        work.run()
        if work.failure?.isOfOpening != true {
          try work.result()
          isJournalDurable = true
          return
        }
      }
      try fileSystem.syncDirectory(paths.directory)
    } catch {
      throw error.isOfOpening ? error : unsynced(error)
    }
    isJournalDurable = true
  }

  /// Returns the error for a directory whose sync failed.
  func unsynced(_ error: RepositoryError) -> RepositoryError {
    RepositoryError(.outcomeUnknown, "the directory could not be synced", file: paths.directory, underlying: error)
  }

  // MARK: Health

  /// Throws `.poisoned` after a failed sync, since later syncs report success without writing the lost pages.
  func checkHealth() throws(RepositoryError) {
    guard let poison else { return }
    throw RepositoryError(.poisoned, "an earlier sync failed; reopen the store", file: paths.mainFile, underlying: poison)
  }

  var isPoisoned: Bool { poison != nil }

  /// Stops all writing if an error is that of a failed sync, and returns the error.
  func noted(_ error: RepositoryError) -> RepositoryError {
    if error.code == .outcomeUnknown { poison = error }
    return error
  }
}
