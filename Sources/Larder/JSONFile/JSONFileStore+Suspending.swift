internal import Foundation

extension JSONFileStore {
  /// Makes every commit durable, and releases the locks of the main file and of the lock file.
  ///
  /// Main file and journal stay open, so that the system does not give their inodes to other files. A background checkpoint is cancelled.
  ///
  /// - Throws: The first error that occurs. The locks are released even if `suspend` throws.
  func suspend() throws(RepositoryError) {
    if case .mainFile = folding?.part { givenUp = .storeSuspended }
    giveUpFolding()
    // Background growth of the journal is cancelled, because the system is about to stop the process, and no thread may write any more.
    journal?.stopGrowing()
    var failure: RepositoryError?
    do throws(RepositoryError) {
      try flush()
      // Closing the main file's descriptor releases the lock on the main file. The main file is opened a second time without a lock, so
      // that closing the first descriptor releases the lock.
      guard let file = try fileSystem.open(paths.mainFile, writable: false) else { throw .noMainFile(paths.mainFile) }
      try take(file)
    } catch {
      failure = error
      // The main file is closed, because that releases its lock. An error of closing is ignored, because the caller needs the first error.
      do throws(RepositoryError) { try main.file.close() } catch {}
    }
    // The lock file's lock is released even after an error, because iOS ends a suspended process that holds a lock in a shared container.
    lock.release()
    if let failure { throw failure }
  }

  /// Takes the locks again if the main file is unchanged, and adds the commits that other processes have appended to the journal.
  ///
  /// - Returns: True if the store can be used without reading its files again. `false` if the files were changed in any other way than by
  ///   appended commits, and the store must be read again.
  func resume() throws(RepositoryError) -> Bool {
    let lock = try fileSystem.lock(paths.lock)
    do throws(RepositoryError) {
      guard let file = try MainFile.open(paths.mainFile, fileSystem) else {
        lock.release()
        return false
      }
      let identity = try file.status().identity
      // On a file system without file identities (device and inode), another file of the same size could have the path, so the store is
      // read again.
      var goesOn = identity != nil && identity == main.identity
      if goesOn, try !areFilesUnchanged() { goesOn = try takeAppended() }
      guard goesOn else {
        try file.close()
        lock.release()
        return false
      }
      try take(file)
      self.lock = lock
      return true
    } catch {
      lock.release()
      throw error
    }
  }

  /// Replaces the store's descriptor of the main file by another descriptor, and closes the old one.
  ///
  /// - Throws: `.dataMissing` if the new descriptor belongs to another file.
  private func take(_ file: any OpenFile) throws(RepositoryError) {
    let old = main
    let next = try old.reopened(as: file)
    guard next.identity == old.identity else { throw .noMainFile(paths.mainFile) }
    main = next
    // An error of `close` is ignored, because closing releases the lock in any case and nothing more is written through the old descriptor.
    do throws(RepositoryError) { try old.file.close() } catch {}
  }

  /// True if the paths of main file and journal still lead to the open files, and no other process has appended to the journal.
  private func areFilesUnchanged() throws(RepositoryError) -> Bool {
    do throws(RepositoryError) { try checkFiles() } catch {
      // If the files were removed or replaced, the error is dropped, because the next opening of the store finds and reports the cause.
      guard error.code == .dataMissing || error.code == .locked else { throw error }
      return false
    }
    // If a journal may exist that this store does not use, another process may have appended to it, so the files count as changed.
    guard let journal else { return !hasUnusedJournal }
    // Zero bytes follow the last frame, unless another process has appended a frame or a write of this store has failed.
    if try journal.file.read(at: journal.end, count: JournalFormat.terminatorSize).allSatisfy({ $0 == 0 }) { return true }
    guard journal.hasBrokenFrame else { return false }
    return try !hasForeignFrame(journal)
  }

  /// Adds the commits that other processes have appended to the journal, or returns `false` if the store must be read again.
  ///
  /// Every opening for writing replaces the journal by a copy. The copy must have the same bytes as the old journal up to this store's last
  /// frame.
  private func takeAppended() throws(RepositoryError) -> Bool {
    guard !hasUnusedJournal, let data = try fileSystem.contents(of: paths.journal, syncingFirst: true) else { return false }
    let replay: JSONFileReplay
    do throws(RepositoryError) {
      try Self.checkMainFile(main, at: paths.mainFile, fileSystem)
      if let journal, try data.prefix(journal.end) != journal.file.read(at: 0, count: journal.end) { return false }
      replay = try JSONFileReplay(data, over: main.header, paths: paths, recovery: .strict, from: journal?.position)
    } catch {
      // The error is dropped, because the next opening of the store finds and reports the damage or the unfinished commit.
      return false
    }
    guard !replay.isBehind, replay.contents.lastCommit >= commit else { return false }
    // A copy replaces the journal before anything is appended, because after a failed sync of another process the journal's bytes may be in
    // the page cache only.
    let recovery = JSONFileRecovery(paths: paths, fileSystem: fileSystem, tuning: tuning)
    let next = try recovery.renewJournal(replay.contents, from: data, main)
    // The new journal has all frames of the old journal, so an error of `close` is harmless.
    do throws(RepositoryError) { try journal?.close() } catch {}
    (journal, isJournalDurable) = (next, true)
    // If the journal's last commit is unchanged, another process has opened the store and committed nothing.
    if replay.contents.lastCommit == commit { return true }
    // The records' values are copied (`detached`), because a slice would keep all bytes of the journal in memory.
    let records = replay.changes.values.map(\.detached)
    let batch = WriteBatch(
      records: records, commits: (commit + 1)...replay.contents.lastCommit, recordCounts: paging.recordCounts(after: records))
    for record in batch.records where record.revision.number > commit { foreignChanges[record.address] = record }
    note(batch)
    return true
  }

  /// Returns the records that other processes have committed and ``resume()`` has added, or `nil` if there is no commit after `revision`.
  func foreignCommits(after revision: Revision) -> ForeignCommits? {
    guard commit > revision.number else { return nil }
    return ForeignCommits(commit: Revision(commit), records: foreignChanges.values.filter { $0.revision > revision })
  }

  /// True if another process has appended a complete frame to the journal, or if the journal cannot be read.
  ///
  /// An incomplete frame does not count, because a failed write of this store may have left it, and the next write overwrites it.
  private func hasForeignFrame(_ journal: JournalWriter) throws(RepositoryError) -> Bool {
    let bytes = try journal.file.read(at: 0, count: .max)
    do throws(RepositoryError) {
      return try JournalReader(data: bytes, file: paths.journal).read { _ in }.lastCommit != journal.lastCommit
    } catch {
      // An unreadable journal counts as changed, because the next opening of the store finds and reports the damage.
      return true
    }
  }
}

extension RepositoryError {
  /// The error for a main file that was removed or replaced while its store is open.
  fileprivate static func noMainFile(_ path: String) -> RepositoryError {
    RepositoryError(
      .dataMissing, "the main file was removed or replaced while its store is open; put it back, or close the store", file: path)
  }
}
