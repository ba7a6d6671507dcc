internal import Foundation

/// An open JSON store: the main file that is in place, the journal, and what the journal holds over the main file.
final class JSONFileStore {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let tuning: JSONFileBackend.Tuning
  let options: StoreOptions
  let lock: any HeldLock
  var main: MainFile
  /// Whether the main file's name is durable too.
  var isMainDurable = true
  /// Made by the first commit.
  var journal: JournalWriter?
  /// Whether the journal's name is durable too; commits that are not durable may come before it is.
  var isJournalDurable = true
  /// A new journal that was not taken into use, because its name could not be made durable.
  var unusedJournal: FileIdentity?
  /// The salt of that journal: the next main file must name it, or it would be refused beside it.
  var unusedSalt: UInt32?
  /// The reason for giving up the checkpoint beside commits, until `continueCheckpoint` throws it.
  var givenUp: RepositoryError?
  /// The newest record or tombstone of every address that is in the journal and not in the main file.
  var changes: [RecordAddress: StoredRecord]
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

  func commit(_ batch: WriteBatch) throws(RepositoryError) {
    try checkUse(of: batch)
    do throws(RepositoryError) {
      try append(batch)
    } catch {
      guard error.code == .full, batch.records.contains(where: { $0.value != nil }), try giveBack() else { throw error }
      try append(batch)
    }
    note(batch)
  }

  private func append(_ batch: WriteBatch) throws(RepositoryError) {
    if journal == nil { try createJournal() }
    do throws(RepositoryError) {
      if batch.durability == .durable { try syncJournalName() }
      try journal?.append(batch)
    } catch {
      throw noted(error)
    }
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

  /// Notes the changes of a batch that was appended.
  func note(_ batch: WriteBatch) {
    for record in batch.records { changes[record.address] = record }
    if oldestChange == nil { oldestChange = .now }
    commit = batch.commits.upperBound
  }

  func flush() throws(RepositoryError) {
    try checkHealth()
    try checkFiles()
    do throws(RepositoryError) {
      try syncJournalName()
      try journal?.sync()
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
