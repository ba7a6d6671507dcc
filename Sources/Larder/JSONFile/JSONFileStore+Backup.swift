internal import Foundation

/// Backup and verification of a JSON store, which both read the whole main file.
extension JSONFileStore {
  /// Writes a main file with all records durably to a new file, which gets its final name after it is complete.
  func backup(to target: JSONFilePaths) throws(RepositoryError) {
    try checkHealth()
    try target.checkLength()
    try fileSystem.createDirectory(target.directory)
    // A journal that already exists beside the target does not continue the copy, and opening the copy would fail.
    for path in [target.mainFile, target.journal, target.previous] {
      guard try fileSystem.status(of: path) == nil else {
        throw RepositoryError(.alreadyExists, "a store or its journal already exists", file: path)
      }
    }
    removeInterruptedCopies(of: target)
    let fold = fold()
    var header = fold.header
    // The copy gets a new journal tag, so that no journal of this store continues the copy.
    (header.folded, header.journal) = (nil, MainFileHeader.newTag())
    let temporary = target.newCopy
    let file = try fileSystem.create(temporary)
    do throws(RepositoryError) {
      // The lock shows other backups that the copy is being written. A temporary copy without a lock was interrupted, and may be removed.
      try file.lock()
      // The copy gets the main file's owner. A copy that belongs to root could not be opened by the store's owner.
      if let owner = main.owner { try file.setOwner(owner) }
      var writer = MainFileWriter(file, header)
      try fold.write(to: &writer)
      try writer.finish()
      // The target path is checked again, because another process may have created a store at that path during the copy, and `rename` would
      // replace that store.
      guard try fileSystem.status(of: target.mainFile) == nil else {
        throw RepositoryError(.alreadyExists, "a store already exists", file: target.mainFile)
      }
      try fileSystem.rename(temporary, to: target.mainFile)
      try file.close()
    } catch {
      // The caller needs the error of the copy, so an error of `remove` is ignored. If the temporary file was not removed, the next backup
      // to the same target removes it.
      do throws(RepositoryError) { try fileSystem.remove(temporary) } catch {}
      throw error
    }
    try fileSystem.syncDirectory(target.directory)
  }

  /// Removes the temporary files that interrupted backups to the same target path have left.
  ///
  /// A temporary file that another backup is still writing is locked, and is not removed.
  private func removeInterruptedCopies(of target: JSONFilePaths) {
    // Errors are ignored, because a leftover file that cannot be read or removed is no reason to refuse the new copy.
    do throws(RepositoryError) {
      for name in try (fileSystem.entries(of: target.directory) ?? []).filter(target.isCopy) {
        let path = target.path(of: name)
        guard let file = try fileSystem.open(path, writable: false) else { continue }
        do throws(RepositoryError) { try file.lock() } catch { continue }
        try fileSystem.remove(path)
        try file.close()
      }
    } catch {}
  }

  // MARK: Verifying

  /// Reads the main file and the journal again, and compares every checksum.
  func verify() -> VerifyReport {
    var report = VerifyReport(commit: Revision(commit))
    do throws(RepositoryError) {
      try checkFiles()
      let fold = fold()
      let count = try fold.countLines()
      report.tombstoneCount = fold.tombstones.count
      report.recordCount = count - report.tombstoneCount
      try verifyJournal()
      report.damagedIndexes = try paging.verifyIndexes()
    } catch {
      report.problems.append(error)
    }
    return report
  }

  /// Reads the journal file again, and compares its header and its last commit with the values in memory.
  private func verifyJournal() throws(RepositoryError) {
    guard let journal else { return }
    guard let data = try fileSystem.contents(of: paths.journal) else {
      throw RepositoryError(.dataMissing, "the journal is gone while its store is open", file: paths.journal)
    }
    let reader = JournalReader(data: data, file: paths.journal)
    let contents = try reader.read { _ in }
    // An unfinished frame at the end of the journal is no damage if a failed write of this store has left it. `hasBrokenFrame` is true
    // after a failed write, and the next write overwrites the unfinished frame.
    let isTailKnown = contents.tail == .clean || journal.hasBrokenFrame
    guard contents.header == journal.header, contents.lastCommit == journal.lastCommit, isTailKnown else {
      throw RepositoryError(
        .corrupted, "the journal ends at commit \(contents.lastCommit), not \(journal.lastCommit)", file: paths.journal,
        offset: UInt64(contents.end))
    }
  }
}
