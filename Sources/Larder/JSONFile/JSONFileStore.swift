internal import Foundation

/// An open JSON store: the snapshot's header, the journal, and what the journal holds over the snapshot.
struct JSONFileStore: Sendable {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let tuning: JSONFileBackend.Tuning
  let options: StoreOptions
  let lock: any HeldLock
  var header: SnapshotHeader
  /// The size of the snapshot file, in bytes.
  var snapshotSize: Int
  /// Made by the first commit.
  var journal: JournalWriter?
  /// The newest record or tombstone of every address in the journal.
  var changes: [RecordAddress: StoredRecord]
  /// The newest commit.
  var commit: UInt64
  /// The failure of a sync, after which nothing is written any more.
  private var poison: RepositoryError?

  init(
    paths: JSONFilePaths, fileSystem: any FileSystem, tuning: JSONFileBackend.Tuning, options: StoreOptions, lock: any HeldLock,
    header: SnapshotHeader, snapshotSize: Int, journal: JournalWriter?, changes: [RecordAddress: StoredRecord], commit: UInt64
  ) {
    self.paths = paths
    self.fileSystem = fileSystem
    self.tuning = tuning
    self.options = options
    self.lock = lock
    self.header = header
    self.snapshotSize = snapshotSize
    self.journal = journal
    self.changes = changes
    self.commit = commit
  }

  mutating func commit(_ batch: WriteBatch) throws(RepositoryError) {
    try checkHealth()
    guard batch.commits.lowerBound == commit + 1 else {
      throw .notConsecutive(batch, after: Revision(commit), file: paths.snapshot)
    }
    try check(batch)
    try poisoning { store throws(RepositoryError) in
      if store.journal == nil { store.journal = try store.createJournal() }
      try store.journal?.append(batch)
    }
    for record in batch.records { changes[record.address] = record }
    commit = batch.commits.upperBound
  }

  mutating func flush() throws(RepositoryError) {
    try checkHealth()
    try poisoning { store throws(RepositoryError) in try store.journal?.sync() }
  }

  /// Whether the journal is larger than the snapshot, so that folding it costs no more than it has cost to write it.
  var wantsCheckpoint: Bool {
    guard let journal, poison == nil else { return false }
    return journal.end > max(4 << 20, snapshotSize)
  }

  /// Folds the journal into a new snapshot and begins a new journal.
  ///
  /// The states on the way, each of which recovers to the same records: the old pair; with a temporary snapshot beside it; the new snapshot
  /// with the old journal, whose commits it has all; with a temporary journal beside it; the new pair.
  mutating func checkpoint() throws(RepositoryError) {
    try checkHealth()
    guard commit > header.commit else { return }
    try replaceSnapshot()
    try poisoning { store throws(RepositoryError) in
      let old = store.journal
      store.journal = try store.createJournal()
      store.changes = [:]
      try old?.close()
    }
  }

  func verify() -> VerifyReport {
    var report = VerifyReport(commit: Revision(commit))
    do throws(RepositoryError) {
      let merge = try readMerged()
      report.recordCount = merge.entries.count - merge.tombstoneCount
      report.tombstoneCount = merge.tombstoneCount
      try verifyJournal()
    } catch {
      report.problems.append(error)
    }
    return report
  }

  func backup(to target: JSONFilePaths) throws(RepositoryError) {
    try checkHealth()
    try fileSystem.createDirectory(target.directory)
    for path in [target.snapshot, target.journal, target.previous] {
      guard try fileSystem.open(path, writable: false) == nil else {
        throw RepositoryError(.alreadyExists, "there is a store already, or what one has left", file: path)
      }
    }
    let merge = try readMerged()
    var copy = header
    copy.commit = commit
    copy.tombstonesSince = max(header.tombstonesSince, merge.tombstonesSince)
    _ = try writeSnapshot(copy, at: target.snapshot, mode: nil, from: merge)
    try fileSystem.syncDirectory(target.directory)
  }

  /// Folds the journal and removes it and the lock.
  ///
  /// Releases everything even when it throws.
  mutating func close() throws(RepositoryError) {
    defer { lock.release() }
    try checkHealth()
    if commit > header.commit { try replaceSnapshot() }
    guard let journal else { return }
    try journal.close()
    try fileSystem.remove(paths.journal)
    try fileSystem.syncDirectory(paths.directory)
  }

  /// Gives the store up as it is: for a store that is refused after it was opened.
  func abandon() { lock.release() }

  // MARK: -

  private func checkHealth() throws(RepositoryError) {
    guard let poison else { return }
    throw RepositoryError(.poisoned, "an earlier sync failed; reopen the store", file: paths.snapshot, underlying: poison)
  }

  /// Runs a step whose failed sync must be the last thing this store does.
  private mutating func poisoning(_ step: (inout Self) throws(RepositoryError) -> Void) throws(RepositoryError) {
    do throws(RepositoryError) {
      try step(&self)
    } catch {
      if error.code == .outcomeUnknown { poison = error }
      throw error
    }
  }

  /// What the format cannot hold.
  private func check(_ batch: WriteBatch) throws(RepositoryError) {
    var size = 0
    for record in batch.records {
      size += JournalFormat.operationHeaderSize + record.collection.utf8.count + record.key.byteCount + (record.value?.count ?? 0)
      guard let value = record.value else { continue }
      guard value.withUnsafeBytes({ $0.isOneLine }) else {
        throw RepositoryError(
          .encodingFailed, "a value is one line of JSON", file: paths.snapshot, keyHash: record.key.hash)
      }
    }
    guard size < 1 << 31, batch.records.count < 1 << 24 else {
      throw RepositoryError(.tooLarge, "a batch is at most 2 GiB and 16 million records", file: paths.snapshot)
    }
  }

  /// Makes an empty journal for the snapshot that is in place, and puts it in the place of the old one.
  private func createJournal() throws(RepositoryError) -> JournalWriter {
    let temporary = JSONFilePaths.temporary(for: paths.journal)
    try fileSystem.remove(temporary)
    let header = JournalHeader(
      storeID: header.storeID, generation: header.generation, base: header.commit, salt: .random(in: .min ... .max))
    let new = try fileSystem.create(temporary)
    let contents = try JournalWriter.create(new, header, chunk: tuning.journalChunk)
    try new.close()
    try fileSystem.rename(temporary, to: paths.journal)
    try syncDirectory()
    do throws(RepositoryError) {
      // Opened anew, so that errors name the file by the name that it has.
      guard let file = try fileSystem.open(paths.journal, writable: true) else {
        throw RepositoryError(.dataMissing, "the journal is gone", file: paths.journal)
      }
      return try JournalWriter(continuing: file, contents, chunk: tuning.journalChunk)
    } catch {
      // The old journal has lost its name: what would be appended to it could never be found again.
      throw RepositoryError(.outcomeUnknown, "the new journal could not be opened", file: paths.journal, underlying: error)
    }
  }

  /// Puts a snapshot of everything in the place of the old one, durably.
  ///
  /// The old journal stays, and adds nothing to it.
  private mutating func replaceSnapshot() throws(RepositoryError) {
    let merge = try readMerged()
    var next = header
    next.generation += 1
    next.commit = commit
    next.tombstonesSince = max(header.tombstonesSince, merge.tombstonesSince)
    if options.keepsPreviousSnapshot { try keepPreviousSnapshot(merge.old) }
    let size = try writeSnapshot(next, at: paths.snapshot, mode: merge.mode, from: merge)
    header = next
    snapshotSize = size
    try poisoning { store throws(RepositoryError) in try store.syncDirectory() }
  }

  /// Writes a snapshot under a temporary name and renames it into place; the directory still has to be synced.
  private func writeSnapshot(
    _ header: SnapshotHeader, at path: String, mode: UInt16?, from merge: SnapshotMerge
  ) throws(RepositoryError) -> Int {
    let temporary = JSONFilePaths.temporary(for: path)
    try fileSystem.remove(temporary)
    do throws(RepositoryError) {
      let file = try fileSystem.create(temporary)
      if let mode { try file.setMode(mode) }
      var writer = SnapshotWriter(file, header)
      for entry in merge.entries { try entry.write(to: &writer, from: merge.old) }
      let size = try writer.finish()
      try file.close()
      try fileSystem.rename(temporary, to: path)
      return size
    } catch {
      // The failure is what the caller must hear of; a temporary file that stays is removed by the next open.
      do throws(RepositoryError) { try fileSystem.remove(temporary) } catch {}
      throw error
    }
  }

  private func keepPreviousSnapshot(_ old: Data) throws(RepositoryError) {
    let temporary = JSONFilePaths.temporary(for: paths.previous)
    try fileSystem.remove(temporary)
    let file = try fileSystem.create(temporary)
    try old.lending { bytes throws(RepositoryError) in try file.write(bytes, at: 0) }
    try file.sync()
    try file.close()
    try fileSystem.rename(temporary, to: paths.previous)
  }

  /// After a rename: if this fails, nobody knows which file a crash would leave, so nothing more is built on it.
  private func syncDirectory() throws(RepositoryError) {
    do throws(RepositoryError) {
      try fileSystem.syncDirectory(paths.directory)
    } catch {
      throw RepositoryError(.outcomeUnknown, "the directory could not be synced", file: paths.directory, underlying: error)
    }
  }
}
