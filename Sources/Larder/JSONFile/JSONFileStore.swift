internal import Foundation

/// An open JSON store: its main file (the document with all records up to one commit), its journal, and the journal's changes.
final class JSONFileStore {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let tuning: JSONFileBackend.Tuning
  let options: StoreOptions
  var lock: any HeldLock
  var main: MainFile
  /// True if the directory entry of the main file is durable.
  var isMainDurable = true
  /// Open journal, or `nil` until recovery, a commit or a checkpoint opens or creates one.
  var journal: JournalWriter?
  /// True if the directory entry of the journal is durable.
  ///
  /// Commits with the durability `.buffered` may be appended before the journal's directory entry is durable.
  var isJournalDurable = true
  /// True if a journal file may exist that is not in use, because a step after its creation or during its removal has failed.
  var hasUnusedJournal = false
  /// Identity (device and inode) of the journal file that is not in use, or `nil` if there is none or its identity is unknown.
  var unusedJournal: FileIdentity?
  /// The error with which a background checkpoint was cancelled, until `continueCheckpoint` throws this error.
  var givenUp: RepositoryError?
  /// Newest record or tombstone of every address (collection and key) that commits have changed since the main file was written.
  var changes: [RecordAddress: StoredRecord]
  /// Newest record or tombstone of every address that other processes changed during a suspension, until this store's next commit.
  var foreignChanges: [RecordAddress: StoredRecord] = [:]
  /// The index of the main file and the counts of the collections, if the records stay in the files.
  var paging: JSONFilePaging
  /// The background checkpoint that is running, or `nil` if none is running.
  ///
  /// While the background checkpoint writes a new main file, the changes that go into that file are in `FoldInProgress` and not in
  /// ``changes``.
  var folding: FoldInProgress?
  /// Time of the oldest change in the journal, or the time of the opening if the journal had changes at the opening.
  var oldestChange: ContinuousClock.Instant?
  /// Offset of the journal's end at the last attempt to free space for a value, or `nil` after an attempt that has folded the journal.
  var triedToGiveBackAt: Int?
  /// Number of the store's newest commit.
  private(set) var commit: UInt64
  /// Error of a failed sync, after which the store writes nothing more, or `nil`.
  private var poison: RepositoryError?

  init(
    _ recovery: JSONFileRecovery, options: StoreOptions, lock: any HeldLock, main: MainFile, journal: JournalWriter?,
    changes: [RecordAddress: StoredRecord], commit: UInt64, paging: JSONFilePaging
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
    self.paging = paging
    oldestChange = changes.isEmpty ? nil : .now
  }

  // A store that is released without `close` leaves its files as a crash does, but with no thread at work on the files and with no lock
  // held.
  deinit { release() }

  /// Commits a batch, and if the disk is full, frees space and tries once more.
  func commit(_ batch: WriteBatch, isRetry: Bool = false) throws(RepositoryError) {
    try checkUse(of: batch)
    // A new store, a store that was closed cleanly, and a store whose journal was folded on a full disk have no journal before the next
    // commit.
    if journal == nil {
      do throws(RepositoryError) { try createJournal() } catch {
        guard error.code == .full, paging.closeReplaced() || paging.shedIndexes() else { throw error }
        try createJournal()
      }
    }
    do throws(RepositoryError) {
      // While the journal's name is not durable, a power cut could bring back the previous journal and lose a commit that was acknowledged
      // as durable.
      if batch.durability != .buffered { try syncJournalName() }
      try journal?.append(batch) { noteChanges(of: batch) }
    } catch {
      // A batch of only deletions is not retried, because `commitOnFullDisk` commits deletions in the journal's reserve.
      guard error.code == .full, !isRetry, batch.records.contains(where: { $0.value != nil }), try giveBack() else { throw noted(error) }
      return try commit(batch, isRetry: true)
    }
    // The commit number is set only after the append has succeeded, because a failed commit must leave its number free.
    commit = batch.commits.upperBound
    if !foreignChanges.isEmpty { foreignChanges = [:] }
    if paging.count(batch) { saveCounts() }
  }

  /// Throws after a failed sync, for a batch with wrong commit numbers or that the format cannot hold, and if the store's files are gone.
  func checkUse(of batch: WriteBatch) throws(RepositoryError) {
    try checkHealth()
    guard batch.commits.lowerBound == commit + 1, batch.commits.upperBound < .max else {
      throw .notConsecutive(batch, after: Revision(commit), file: paths.mainFile)
    }
    try check(batch)
    try checkFiles()
  }

  /// Updates the changes and the commit number in memory after a batch was written to the files.
  func note(_ batch: WriteBatch) {
    noteChanges(of: batch)
    commit = batch.commits.upperBound
    _ = paging.count(batch)
  }

  /// Adds the changes of an appended batch to memory.
  ///
  /// The caller sets ``commit`` only when the batch is as durable as its `durability` demands.
  private func noteChanges(of batch: WriteBatch) {
    // For a large batch, reserving capacity saves several growths of the dictionary. For a small batch, reserving could copy a large
    // dictionary.
    if batch.records.count > changes.count { changes.reserveCapacity(changes.count + batch.records.count) }
    for record in batch.records { changes[record.address] = record }
    paging.note(batch.records)
    if oldestChange == nil { oldestChange = .now }
  }

  /// Syncs the journal if any of its commits is not durable.
  func flush() throws(RepositoryError) {
    try checkHealth()
    try checkFiles()
    do throws(RepositoryError) {
      try syncJournalName()
      // A commit that was only ordered by a write barrier may still be lost in a power cut, so the journal is synced for it too.
      if let journal, journal.durableThrough < journal.lastCommit || journal.isOrderedOnly { try self.journal?.sync() }
      // A broken frame (of a failed write) is overwritten only so that the next opening finds no unfinished write. If a locked device
      // refuses to overwrite it, no commit becomes less durable.
      do throws(RepositoryError) { try self.journal?.takeBackBrokenFrame() } catch {
        if error.code != .protectedDataUnavailable { throw error }
      }
    } catch {
      throw noted(error)
    }
    saveCounts()
  }

  /// Folds the journal if a checkpoint is worthwhile, or else makes the journal durable, and then releases the locks.
  ///
  /// The locks are released and the files are closed even if the call throws.
  func close() throws(RepositoryError) {
    defer { release() }
    try checkHealth()
    // Without unfolded commits, without a journal and with a durable main file, there is nothing to fold and nothing to sync.
    guard commit > main.header.commit || journal != nil || !isMainDurable else { return }
    // A background checkpoint is cancelled, because its unfinished main file must not stay, and `replaceMain()` must write its changes.
    giveUpFolding()
    guard isCheckpointWorthwhile else { return try flush() }
    try checkFiles()
    if commit > main.header.commit || !isMainDurable { try replaceMain() }
    guard let journal else { return }
    // The journal is removed only after `replaceMain` has made the new main file durable. Before the new main file is durable, recovery
    // after a power cut may need the journal.
    try journal.close()
    try fileSystem.remove(paths.journal)
    try fileSystem.syncDirectory(paths.directory)
  }

  /// Releases the locks and closes the files without writing to them.
  func release() {
    giveUpFolding()
    // All writes have ended, so an error of `close` is harmless. A descriptor is closed at the latest when its last reference is released.
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
      // A line feed inside a value would end the value's line in the main file, and an empty value would make the main file invalid JSON.
      guard value.withUnsafeBytes({ $0.isOneLine }) else {
        throw RepositoryError(
          .encodingFailed, "expected one line of JSON, found a line feed or nothing", file: paths.mainFile, keyHash: record.key.hash)
      }
    }
    // The header of a frame has 32 bits for the frame's size, and a reader on a 32-bit system must be able to address the whole frame.
    guard size <= JournalFormat.countLimit, batch.records.count < 1 << 24 else {
      throw RepositoryError(.tooLarge, "a batch is at most \(JournalFormat.countLimit) bytes and 16 million records", file: paths.mainFile)
    }
  }

  /// Throws unless the paths of the main file and the journal still lead to the files that the store has open.
  ///
  /// Commits to a file that was removed from its path would be lost.
  ///
  /// Cost: two calls of `lstat`.
  /// - Throws: `.dataMissing` if a file is gone, cut or replaced, or `.locked` if another process has created a journal.
  func checkFiles() throws(RepositoryError) {
    try Self.checkMainFile(main, at: paths.mainFile, fileSystem)
    let found = try fileSystem.status(of: paths.journal)
    guard let journal else {
      // If the identity of the unused journal is unknown, any journal that exists is assumed to be the unused journal.
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

  /// Throws unless a path still leads to the main file that the store has open.
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
  /// If a background checkpoint has begun to sync the directory, the call waits for the end of that sync. If the background checkpoint is
  /// about to sync the directory, the call makes that sync itself. A second sync succeeds even after a failed sync, and proves nothing.
  /// - Throws: `.outcomeUnknown` if the sync of the directory fails. Another error if the directory could not be opened, and a later call
  ///   may then succeed.
  func syncJournalName() throws(RepositoryError) {
    if isJournalDurable { return }
    do throws(RepositoryError) {
      if case .name(let work, _) = folding?.part {
        // `run()` syncs on the current thread if the background thread has not begun the sync. If the background thread is syncing, `run()`
        // blocks until that sync has ended.
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

  /// Throws `.poisoned` after a failed sync, because a later sync may succeed without writing the pages that the failed sync has lost.
  func checkHealth() throws(RepositoryError) {
    guard let poison else { return }
    throw RepositoryError(.poisoned, "an earlier sync failed; reopen the store", file: paths.mainFile, underlying: poison)
  }

  var isPoisoned: Bool { poison != nil }

  /// Stops all later writing if an error is `.outcomeUnknown`, the error of a failed sync, and returns the error.
  func noted(_ error: RepositoryError) -> RepositoryError {
    if error.code == .outcomeUnknown { poison = error }
    return error
  }
}
