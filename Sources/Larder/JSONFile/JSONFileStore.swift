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
  /// Commits with `.buffered` may be appended before the entry is durable.
  var isJournalDurable = true
  /// True if a journal may exist that is not in use, because a sync of the directory failed after its creation or removal.
  var hasUnusedJournal = false
  /// Identity (device and inode) of the journal that is not in use, or `nil` if unknown or if the file system has no identities.
  var unusedJournal: FileIdentity?
  /// Reason for giving up the background checkpoint, until `continueCheckpoint` throws it.
  var givenUp: RepositoryError?
  /// Newest record or tombstone of every address (collection and key) that commits have changed since the main file was written.
  var changes: [RecordAddress: StoredRecord]
  /// Newest record or tombstone of every address that other processes changed while the store was suspended, until the next commit.
  var foreignChanges: [RecordAddress: StoredRecord] = [:]
  /// Checkpoint that runs beside commits, if any.
  ///
  /// While the checkpoint writes its main file, the changes that go into the file are in its draft and not in ``changes``.
  var folding: FoldInProgress?
  /// Time of the oldest change in the journal, or of opening if the journal had a change already.
  var oldestChange: ContinuousClock.Instant?
  /// End of the journal at the last attempt to free space for a value that had no room.
  var triedToGiveBackAt: Int?
  /// Newest commit of the store.
  private(set) var commit: UInt64
  /// Failure of a sync, after which the store writes nothing more.
  private var poison: RepositoryError?

  init(
    _ recovery: JSONFileRecovery, options: StoreOptions, lock: any HeldLock, main: MainFile, journal: JournalWriter?,
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

  // A store that is dropped without `close` leaves its files as a crash does, but no thread uses the files and no lock is held any more.
  deinit { release() }

  /// Commits a batch, and tries once more after freeing space if the disk is full.
  func commit(_ batch: WriteBatch, isRetry: Bool = false) throws(RepositoryError) {
    try checkUse(of: batch)
    // A new store, and one whose journal was folded on a full disk, has no journal before its next commit.
    if journal == nil { try createJournal() }
    do throws(RepositoryError) {
      // If the journal's name is not durable, a power cut could bring back the previous journal and lose this durable commit.
      if batch.durability != .buffered { try syncJournalName() }
      try journal?.append(batch) { noteChanges(of: batch) }
    } catch {
      // A batch of deletions alone is not retried, because `commitOnFullDisk` has a reserve for deletions.
      guard error.code == .full, !isRetry, batch.records.contains(where: { $0.value != nil }), try giveBack() else { throw noted(error) }
      return try commit(batch, isRetry: true)
    }
    // The commit number is set only after the append has succeeded, because a failed commit must leave its number free.
    commit = batch.commits.upperBound
    if !foreignChanges.isEmpty { foreignChanges = [:] }
  }

  /// Throws after a failed sync, if the batch has wrong commit numbers or does not fit the format, or if the store's files are gone.
  func checkUse(of batch: WriteBatch) throws(RepositoryError) {
    try checkHealth()
    guard batch.commits.lowerBound == commit + 1, batch.commits.upperBound < .max else {
      throw .notConsecutive(batch, after: Revision(commit), file: paths.mainFile)
    }
    try check(batch)
    try checkFiles()
  }

  /// Updates the state in memory for a batch that was written to the files.
  func note(_ batch: WriteBatch) {
    noteChanges(of: batch)
    commit = batch.commits.upperBound
  }

  /// Adds the changes of an appended batch to memory.
  ///
  /// The caller sets ``commit`` only when the batch is as durable as its `durability` demands.
  private func noteChanges(of batch: WriteBatch) {
    // Reserving saves several growths of the dictionary. For a batch of a few records it could copy a large dictionary instead.
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
      // A broken frame is overwritten only so that the next opening finds no torn tail. If the device refuses, no commit becomes less
      // durable.
      do throws(RepositoryError) { try self.journal?.takeBackBrokenFrame() } catch {
        if error.code != .protectedDataUnavailable { throw error }
      }
    } catch {
      throw noted(error)
    }
  }

  /// Folds the journal if that is worth it, or else makes it durable, and releases the locks.
  ///
  /// The locks and the files are released even if the call throws.
  func close() throws(RepositoryError) {
    defer { release() }
    try checkHealth()
    // Without commits, a journal and an undurable name, there is nothing to fold and nothing to sync.
    guard commit > main.header.commit || journal != nil || !isMainDurable else { return }
    // A background checkpoint is given up: its unfinished main file must not stay, and its changes must be in the fold below.
    giveUpFolding()
    guard isCheckpointWorthwhile else { return try flush() }
    try checkFiles()
    if commit > main.header.commit || !isMainDurable { try replaceMain() }
    guard let journal else { return }
    // The journal is removed only after `replaceMain` has made the new main file durable, because until then a power cut may need the
    // journal.
    try journal.close()
    try fileSystem.remove(paths.journal)
    try fileSystem.syncDirectory(paths.directory)
  }

  /// Releases the locks and leaves the files as they are.
  func release() {
    giveUpFolding()
    // All writes have ended, so an error of `close` is harmless. The last reference closes a descriptor at the latest.
    do throws(RepositoryError) { try journal?.close() } catch {}
    do throws(RepositoryError) { try main.file.close() } catch {}
    lock.release()
  }

  // MARK: Checks before the store writes

  /// Throws if the format cannot hold a batch: a value is empty or has a line feed, or the batch is too large for a frame.
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
  /// Commits to a file that was removed from its path would be lost.
  ///
  /// Cost: two calls of `lstat`.
  /// - Throws: `.dataMissing`, or `.locked` for a journal that another process has made.
  func checkFiles() throws(RepositoryError) {
    try Self.checkMainFile(main, at: paths.mainFile, fileSystem)
    let found = try fileSystem.status(of: paths.journal)
    guard let journal else {
      // If the identity of the unused journal is unknown, a journal that is found is assumed to be the unused one.
      guard let found, !hasUnusedJournal || unusedJournal != nil && found.identity != unusedJournal else { return }
      throw RepositoryError(
        .locked, "expected no journal, found one of another process: close the store, and open it again", file: paths.journal)
    }
    guard let found else {
      throw RepositoryError(
        .dataMissing, "the journal is gone while its store is open; put it back, or close the store", file: paths.journal)
    }
    // A journal smaller than its allocated size was cut, and has lost its trailing zero bytes and perhaps commits.
    guard found.kind == .file, journal.identity == nil || found.identity == journal.identity, found.size >= journal.allocated else {
      throw RepositoryError(
        .dataMissing, "the journal was cut or replaced while its store is open; put it back, or close the store", file: paths.journal)
    }
  }

  /// Throws unless a path still leads to the open main file.
  ///
  /// - Throws: `.dataMissing` if the path leads to no file, to another file, or to a file of another size.
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
  /// If a checkpoint is syncing the directory, the call waits for that sync. A second sync succeeds even after a failed one, and proves
  /// nothing.
  /// - Throws: `.outcomeUnknown` if the sync fails. Another error if the directory could not be opened, which proves nothing about the
  ///   entry.
  func syncJournalName() throws(RepositoryError) {
    if isJournalDurable { return }
    do throws(RepositoryError) {
      if case .name(let work, _) = folding?.part {
        // `run()` syncs on this thread if the background thread has not begun. If the sync is running there, `run()` blocks on the mutex
        // until the sync has ended.
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

  /// Stops all writing if an error is `.outcomeUnknown`, the error of a failed sync, and returns the error.
  func noted(_ error: RepositoryError) -> RepositoryError {
    if error.code == .outcomeUnknown { poison = error }
    return error
  }
}
