internal import Foundation

/// Backup and verification, which both read the whole store back.
extension JSONFileStore {
  /// Writes a main file with all records to a new file, durably, and renames it into place at the end.
  func backup(to target: JSONFilePaths) throws(RepositoryError) {
    try checkHealth()
    try target.checkLength()
    try fileSystem.createDirectory(target.directory)
    // The copy would be opened with a journal that is not its own.
    for path in [target.mainFile, target.journal, target.previous] {
      guard try fileSystem.status(of: path) == nil else {
        throw RepositoryError(.alreadyExists, "a store or its journal already exists", file: path)
      }
    }
    removeInterruptedCopies(of: target)
    let fold = fold()
    var header = fold.header
    // A new tag, so that no journal of this store continues the copy.
    (header.folded, header.journal) = (nil, MainFileHeader.newTag())
    let temporary = target.newCopy
    let file = try fileSystem.create(temporary)
    do throws(RepositoryError) {
      // The lock marks the copy as unfinished work: a temporary copy without a lock was interrupted, and may be removed.
      try file.lock()
      // A root process would leave a copy that the owner of the store cannot open.
      if let owner = main.owner { try file.setOwner(owner) }
      var writer = MainFileWriter(file, header)
      try fold.write(to: &writer)
      try writer.finish()
      // Checked again, since the copy may have taken long and `rename` replaces a file.
      guard try fileSystem.status(of: target.mainFile) == nil else {
        throw RepositoryError(.alreadyExists, "a store already exists", file: target.mainFile)
      }
      try fileSystem.rename(temporary, to: target.mainFile)
      try file.close()
    } catch {
      // The caller needs the first error. The next copy to this name removes a temporary file that stays.
      do throws(RepositoryError) { try fileSystem.remove(temporary) } catch {}
      throw error
    }
    try fileSystem.syncDirectory(target.directory)
  }

  /// Removes temporary files of interrupted copies to the same name.
  ///
  /// A copy that is still being written is locked, and stays.
  private func removeInterruptedCopies(of target: JSONFilePaths) {
    // An old file that cannot be read or removed is no reason to refuse the new copy.
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
    // A broken frame behind the end is known, and the next write removes it.
    let isTailKnown = contents.tail == .clean || journal.hasBrokenFrame
    guard contents.header == journal.header, contents.lastCommit == journal.lastCommit, isTailKnown else {
      throw RepositoryError(
        .corrupted, "the journal ends at commit \(contents.lastCommit), not \(journal.lastCommit)", file: paths.journal,
        offset: UInt64(contents.end))
    }
  }
}
