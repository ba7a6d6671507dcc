internal import Foundation

/// Backup and verification, which both read the whole store back.
extension JSONFileStore {
  /// Writes a main file with all records to a new file, durably, and renames it into place at the end.
  func backup(to target: JSONFilePaths) throws(RepositoryError) {
    try checkHealth()
    try target.checkLength()
    try fileSystem.createDirectory(target.directory)
    // A journal that already exists beside the target would be opened with the copy, although it does not continue the copy.
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
      // The lock shows that the copy is being written. A temporary copy without a lock was interrupted, and may be removed.
      try file.lock()
      // The copy gets the main file's owner. Without the change of owner, a backup by root would be a file that the store's owner cannot
      // open.
      if let owner = main.owner { try file.setOwner(owner) }
      var writer = MainFileWriter(file, header)
      try fold.write(to: &writer)
      try writer.finish()
      // The target is checked again, because another process may have created a store there during the copy, and `rename` would replace it.
      guard try fileSystem.status(of: target.mainFile) == nil else {
        throw RepositoryError(.alreadyExists, "a store already exists", file: target.mainFile)
      }
      try fileSystem.rename(temporary, to: target.mainFile)
      try file.close()
    } catch {
      // The caller needs the error of the copy, so an error of `remove` is ignored. If a temporary file stays, the next backup to the same
      // target removes it.
      do throws(RepositoryError) { try fileSystem.remove(temporary) } catch {}
      throw error
    }
    try fileSystem.syncDirectory(target.directory)
  }

  /// Removes temporary files that interrupted backups to the same target have left.
  ///
  /// A copy that is still being written holds a lock, and is not removed.
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

  /// Reads main file and journal back, and compares every checksum.
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

  /// Reads the journal file again, and compares its header and its last commit with those in memory.
  private func verifyJournal() throws(RepositoryError) {
    guard let journal else { return }
    guard let data = try fileSystem.contents(of: paths.journal) else {
      throw RepositoryError(.dataMissing, "the journal is gone while its store is open", file: paths.journal)
    }
    let reader = JournalReader(data: data, file: paths.journal)
    let contents = try reader.read { _ in }
    // A torn tail (an unfinished frame) is no damage if it is from a failed write of this store. `hasBrokenFrame` marks such a write, and
    // the next write overwrites the tail.
    let isTailKnown = contents.tail == .clean || journal.hasBrokenFrame
    guard contents.header == journal.header, contents.lastCommit == journal.lastCommit, isTailKnown else {
      throw RepositoryError(
        .corrupted, "the journal ends at commit \(contents.lastCommit), not \(journal.lastCommit)", file: paths.journal,
        offset: UInt64(contents.end))
    }
  }
}
