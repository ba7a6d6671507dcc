internal import Foundation

/// Calls that read the whole store back: copying it, and `verify`.
extension JSONFileStore {
  /// Writes a main file of everything to a new file, durably, under another name first.
  func backup(to target: JSONFilePaths) throws(RepositoryError) {
    try checkHealth()
    try target.checkLength()
    try fileSystem.createDirectory(target.directory)
    for path in [target.mainFile, target.journal, target.previous] {
      guard try fileSystem.status(of: path) == nil else {
        throw RepositoryError(.alreadyExists, "a store or its journal already exists", file: path)
      }
    }
    removeInterruptedCopies(of: target)
    let fold = fold()
    var header = fold.header
    // No journal of this store continues the copy.
    (header.folded, header.journal) = (nil, MainFileHeader.newTag())
    let temporary = target.newCopy
    let file = try fileSystem.create(temporary)
    do throws(RepositoryError) {
      // A file without a lock was interrupted.
      try file.lock()
      if let owner = main.owner { try file.setOwner(owner) }
      var writer = MainFileWriter(file, header)
      try fold.write(to: &writer)
      try writer.finish()
      guard try fileSystem.status(of: target.mainFile) == nil else {
        throw RepositoryError(.alreadyExists, "a store already exists", file: target.mainFile)
      }
      try fileSystem.rename(temporary, to: target.mainFile)
      try file.close()
    } catch {
      // The failure is what the caller must hear of; a temporary file that stays is removed by the next copy to this name.
      do throws(RepositoryError) { try fileSystem.remove(temporary) } catch {}
      throw error
    }
    try fileSystem.syncDirectory(target.directory)
  }

  /// Removes what earlier copies to this name have left that were cut short; a copy that is being written is locked.
  private func removeInterruptedCopies(of target: JSONFilePaths) {
    // A file that cannot be read or removed does not prevent the new copy.
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
    guard let data = try fileSystem.contents(of: paths.journal) else {
      throw RepositoryError(.dataMissing, "the journal is gone while its store is open", file: paths.journal)
    }
    let reader = JournalReader(data: data, file: paths.journal)
    let contents = try reader.read { _ in }
    let isTailKnown = contents.tail == .clean || journal.hasBrokenFrame
    guard contents.header == journal.header, contents.lastCommit == journal.lastCommit, isTailKnown else {
      throw RepositoryError(
        .corrupted, "the journal ends at commit \(contents.lastCommit), not \(journal.lastCommit)", file: paths.journal,
        offset: UInt64(contents.end))
    }
  }
}
