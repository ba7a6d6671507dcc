internal import Foundation

/// Checks before a store writes, and `verify`.
extension JSONFileStore {
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

  /// Makes sure that the names of main file and journal still mean the files that are open: what is written to others could not be found
  /// again.
  ///
  /// Cost: two calls of `lstat`.
  /// - Throws: `.dataMissing`, or `.locked` for a journal that another process has made.
  func checkFiles() throws(RepositoryError) {
    try main.check(paths.mainFile, fileSystem)
    let found = try fileSystem.status(of: paths.journal)
    guard let journal else {
      guard let found, unusedJournal == nil || found.identity != unusedJournal else { return }
      throw RepositoryError(.locked, "somebody else has made a journal while the store is open", file: paths.journal)
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
    guard size < 1 << 31, batch.records.count < 1 << 24 else {
      throw RepositoryError(.tooLarge, "a batch is at most 2 GiB and 16 million records", file: paths.mainFile)
    }
  }

  /// Reads main file and journal back.
  func verify() -> VerifyReport {
    var report = VerifyReport(commit: Revision(commit))
    do throws(RepositoryError) {
      try checkFiles()
      let fold = fold()
      let count = try fold.countLines()
      report.tombstoneCount = fold.tombstones.count
      report.recordCount = count - report.tombstoneCount
      try verifyJournal()
    } catch {
      report.problems.append(error)
    }
    return report
  }

  /// Reads the journal file again, and compares what it holds with what was committed.
  private func verifyJournal() throws(RepositoryError) {
    guard let journal else { return }
    guard let file = try fileSystem.open(paths.journal, writable: false) else {
      throw RepositoryError(.dataMissing, "the journal is gone while its store is open", file: paths.journal)
    }
    let data = try file.read(at: 0, count: file.size())
    try file.close()
    let reader = JournalReader(data: data, file: paths.journal)
    let contents = try reader.read { _ in }
    guard contents.header == journal.header, contents.lastCommit == journal.lastCommit, contents.tail == .clean else {
      throw RepositoryError(
        .corrupted, "the journal ends at commit \(contents.lastCommit), not \(journal.lastCommit)", file: paths.journal,
        offset: UInt64(contents.end))
    }
  }
}
