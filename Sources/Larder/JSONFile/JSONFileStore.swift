internal import Foundation

/// An open JSON store: the main file that is in place, the journal, and what the journal holds over the main file.
final class JSONFileStore {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let tuning: JSONFileBackend.Tuning
  let options: StoreOptions
  var lock: any HeldLock
  var main: MainFile
  /// Whether the main file's name is durable too.
  var isMainDurable = true
  /// The journal; `nil` until recovery, a commit or a checkpoint has made it.
  var journal: JournalWriter?
  /// Whether the journal's name is durable too; commits that are not durable may come before it is.
  var isJournalDurable = true
  /// Whether a journal may be there that is not in use, because its name could not be made durable, or its removal.
  var hasUnusedJournal = false
  /// The identity of that journal; `nil` also where the file system tells no files apart.
  var unusedJournal: FileIdentity?
  /// The reason for giving up the checkpoint beside commits, until `continueCheckpoint` throws it.
  var givenUp: RepositoryError?
  /// The newest record or tombstone of every address that is in the journal and not in the main file.
  var changes: [RecordAddress: StoredRecord]
  /// The newest record or tombstone of every address that others have changed while the store was suspended, until the next commit.
  var foreignChanges: [RecordAddress: StoredRecord] = [:]
  /// The checkpoint that goes on beside commits, if one does; what it is at work on is not among the changes.
  var folding: FoldInProgress?
  /// The moment of the oldest change, or of opening if that found it.
  var oldestChange: ContinuousClock.Instant?
  /// The end of the journal at the last attempt to fold it for a value that had no room.
  var triedToGiveBackAt: Int?
  /// The newest commit.
  private(set) var commit: UInt64
  /// The failure of a sync, after which nothing is written any more.
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

  // A store that is dropped without being closed is left as by a crash, but no thread works on its files and no lock is held any more.
  deinit { release() }

  /// Commits a batch; where it has no room, once more with the space that was given back for it.
  func commit(_ batch: WriteBatch, isRetry: Bool = false) throws(RepositoryError) {
    try checkUse(of: batch)
    if journal == nil { try createJournal() }
    do throws(RepositoryError) {
      if batch.durability != .buffered { try syncJournalName() }
      try journal?.append(batch) { noteChanges(of: batch) }
    } catch {
      guard error.code == .full, !isRetry, batch.records.contains(where: { $0.value != nil }), try giveBack() else { throw noted(error) }
      return try commit(batch, isRetry: true)
    }
    commit = batch.commits.upperBound
    if !foreignChanges.isEmpty { foreignChanges = [:] }
  }

  /// Makes sure that a batch can be committed.
  func checkUse(of batch: WriteBatch) throws(RepositoryError) {
    try checkHealth()
    guard batch.commits.lowerBound == commit + 1, batch.commits.upperBound < .max else {
      throw .notConsecutive(batch, after: Revision(commit), file: paths.mainFile)
    }
    try check(batch)
    try checkFiles()
  }

  /// Notes a batch that is in the files.
  func note(_ batch: WriteBatch) {
    noteChanges(of: batch)
    commit = batch.commits.upperBound
  }

  /// Notes the changes of a batch that was appended; ``commit`` follows once it is durable, if it is to be.
  private func noteChanges(of batch: WriteBatch) {
    // Asked for where it spares several growths: for a few records it would copy a large dictionary.
    if batch.records.count > changes.count { changes.reserveCapacity(changes.count + batch.records.count) }
    for record in batch.records { changes[record.address] = record }
    if oldestChange == nil { oldestChange = .now }
  }

  func flush() throws(RepositoryError) {
    try checkHealth()
    try checkFiles()
    do throws(RepositoryError) {
      try syncJournalName()
      if let journal, journal.durableThrough < journal.lastCommit || journal.isOrderedOnly { try self.journal?.sync() }
      // Only so that the next opening finds none: a refusal makes nothing less durable.
      do throws(RepositoryError) { try self.journal?.takeBackBrokenFrame() } catch {
        if error.code != .protectedDataUnavailable { throw error }
      }
    } catch {
      throw noted(error)
    }
  }

  /// Folds the journal if that is worth it, else makes it durable, and gives up the locks.
  ///
  /// Releases everything even when it throws.
  func close() throws(RepositoryError) {
    defer { release() }
    try checkHealth()
    guard commit > main.header.commit || journal != nil || !isMainDurable else { return }
    giveUpFolding()
    guard isCheckpointWorthwhile else { return try flush() }
    try checkFiles()
    if commit > main.header.commit || !isMainDurable { try replaceMain() }
    guard let journal else { return }
    try journal.close()
    try fileSystem.remove(paths.journal)
    try fileSystem.syncDirectory(paths.directory)
  }

  /// Gives up the locks and leaves the files as they are.
  func release() {
    giveUpFolding()
    // What is in the files is settled; the descriptors are closed when they are released, at the latest.
    do throws(RepositoryError) { try journal?.close() } catch {}
    do throws(RepositoryError) { try main.file.close() } catch {}
    lock.release()
  }

  // MARK: Checks before the store writes

  /// Refuses what the format cannot hold.
  func check(_ batch: WriteBatch) throws(RepositoryError) {
    var size = 0
    for record in batch.records {
      size += JournalFormat.operationHeaderSize + record.collection.utf8.count + record.key.byteCount + (record.value?.count ?? 0)
      guard let value = record.value else { continue }
      guard value.withUnsafeBytes({ $0.isOneLine }) else {
        throw RepositoryError(
          .encodingFailed, "expected one line of JSON, found a line feed or nothing", file: paths.mainFile, keyHash: record.key.hash)
      }
    }
    guard size <= JournalFormat.countLimit, batch.records.count < 1 << 24 else {
      throw RepositoryError(.tooLarge, "a batch is at most \(JournalFormat.countLimit) bytes and 16 million records", file: paths.mainFile)
    }
  }

  /// Makes sure that the names of main file and journal still mean the files that are open: what is written to others could not be found
  /// again.
  ///
  /// Cost: two calls of `lstat`.
  /// - Throws: `.dataMissing`, or `.locked` for a journal that another process has made.
  func checkFiles() throws(RepositoryError) {
    try Self.checkMainFile(main, at: paths.mainFile, fileSystem)
    let found = try fileSystem.status(of: paths.journal)
    guard let journal else {
      // Where a file system tells no files apart, the journal that was not taken into use is taken for the one that is there.
      guard let found, !hasUnusedJournal || unusedJournal != nil && found.identity != unusedJournal else { return }
      throw RepositoryError(
        .locked, "expected no journal, found one of another process: close the store, and open it again", file: paths.journal)
    }
    guard let found else {
      throw RepositoryError(
        .dataMissing, "the journal is gone while its store is open; put it back, or close the store", file: paths.journal)
    }
    guard found.kind == .file, journal.identity == nil || found.identity == journal.identity, found.size >= journal.allocated else {
      throw RepositoryError(
        .dataMissing, "the journal was cut or replaced while its store is open; put it back, or close the store", file: paths.journal)
    }
  }

  /// Makes sure that a name still means the main file that is open.
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

  /// Makes the journal's name durable: otherwise a power cut could bring the journal before this one back.
  ///
  /// Waits for the checkpoint that sees to it, if one does: after a sync that failed, a second one that succeeds says nothing.
  /// - Throws: `.outcomeUnknown`; something else when the directory could not be opened, which says nothing of the name.
  func syncJournalName() throws(RepositoryError) {
    if isJournalDurable { return }
    do throws(RepositoryError) {
      if case .name(let work, _) = folding?.part {
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

  /// Returns the error for a directory whose sync has failed.
  func unsynced(_ error: RepositoryError) -> RepositoryError {
    RepositoryError(.outcomeUnknown, "the directory could not be synced", file: paths.directory, underlying: error)
  }

  // MARK: Health

  func checkHealth() throws(RepositoryError) {
    guard let poison else { return }
    throw RepositoryError(.poisoned, "an earlier sync failed; reopen the store", file: paths.mainFile, underlying: poison)
  }

  var isPoisoned: Bool { poison != nil }

  /// Returns the error, and stops all writing if it is that of a sync.
  func noted(_ error: RepositoryError) -> RepositoryError {
    if error.code == .outcomeUnknown { poison = error }
    return error
  }
}
