internal import Foundation

extension JSONFileStore {
  /// Makes every commit durable, and releases the locks of main file and lock file.
  ///
  /// Main file and journal stay open, so that the system does not give their inodes to other files. A checkpoint that runs beside commits
  /// is given up.
  ///
  /// - Throws: The first error. The locks are released even if `suspend` throws.
  func suspend() throws(RepositoryError) {
    if case .mainFile = folding?.part { givenUp = .storeSuspended }
    giveUpFolding()
    // Background growth of the journal is cancelled, because the system is about to stop the process and the growth would still write.
    journal?.stopGrowing()
    var failure: RepositoryError?
    do throws(RepositoryError) {
      try flush()
      // Closing a descriptor releases its lock. The main file is opened a second time without a lock, so that the first descriptor can be
      // closed.
      guard let file = try fileSystem.open(paths.mainFile, writable: false) else { throw .noMainFile(paths.mainFile) }
      try take(file)
    } catch {
      failure = error
      // The main file is closed, so that its lock is released. An error of closing is ignored, because the caller needs the first error.
      do throws(RepositoryError) { try main.file.close() } catch {}
    }
    // The lock file's lock is released even after an error, because iOS ends a suspended process that holds a lock in a shared container.
    lock.release()
    if let failure { throw failure }
  }

  /// Takes the locks again if the main file is unchanged, and adds the commits that other processes have appended to the journal.
  ///
  /// - Returns: `false` if the files have changed in another way, so that the store must be read again.
  func resume() throws(RepositoryError) -> Bool {
    let lock = try fileSystem.lock(paths.lock)
    do throws(RepositoryError) {
      guard let file = try MainFile.open(paths.mainFile, fileSystem) else {
        lock.release()
        return false
      }
      let identity = try file.status().identity
      // On a file system without file identities (device and inode), the file could be another one of the same size, so the store is read
      // again.
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

  /// Switches to another descriptor of the main file.
  ///
  /// - Throws: `.dataMissing` if the new descriptor is of another file.
  private func take(_ file: any OpenFile) throws(RepositoryError) {
    let old = main
    let next = try old.reopened(as: file)
    guard next.identity == old.identity else { throw .noMainFile(paths.mainFile) }
    main = next
    // An error of `close` is ignored, because closing releases the lock in any case and nothing more is written through the old descriptor.
    do throws(RepositoryError) { try old.file.close() } catch {}
  }

  /// True if the paths still lead to the open files, and nothing was appended to the journal.
  private func areFilesUnchanged() throws(RepositoryError) -> Bool {
    do throws(RepositoryError) { try checkFiles() } catch {
      // The files were removed or replaced. The error is dropped here, because the opening that follows finds the cause and reports it.
      guard error.code == .dataMissing || error.code == .locked else { throw error }
      return false
    }
    // If a journal exists that this store does not use, another process may have appended to that journal, so the files count as changed.
    guard let journal else { return !hasUnusedJournal }
    // Zero bytes follow the last frame, unless another process has appended a frame or a write of this store has failed.
    if try journal.file.read(at: journal.end, count: JournalFormat.terminatorSize).allSatisfy({ $0 == 0 }) { return true }
    guard journal.hasBrokenFrame else { return false }
    return try !hasForeignFrame(journal)
  }

  /// Adds the commits that other processes have appended to the journal, or returns `false` if the store must be read again.
  ///
  /// Every opening replaces the journal by a copy, so the bytes up to this store's last frame must be identical in the copy.
  private func takeAppended() throws(RepositoryError) -> Bool {
    guard !hasUnusedJournal, let data = try fileSystem.contents(of: paths.journal, syncingFirst: true) else { return false }
    let replay: JSONFileReplay
    do throws(RepositoryError) {
      try Self.checkMainFile(main, at: paths.mainFile, fileSystem)
      if let journal, try data.prefix(journal.end) != journal.file.read(at: 0, count: journal.end) { return false }
      replay = try JSONFileReplay(data, over: main.header, paths: paths, recovery: .strict, from: journal?.position)
    } catch {
      // The error is dropped here, because the opening that follows finds the damage or the torn commit and reports it.
      return false
    }
    guard !replay.isBehind, replay.contents.lastCommit >= commit else { return false }
    // As in an opening, a copy replaces the journal before anything is appended, for the reason that `renewJournal` gives.
    let recovery = JSONFileRecovery(paths: paths, fileSystem: fileSystem, tuning: tuning)
    let next = try recovery.renewJournal(replay.contents, from: data, main)
    // The next journal has all frames of this one, so an error of `close` is harmless.
    do throws(RepositoryError) { try journal?.close() } catch {}
    (journal, isJournalDurable) = (next, true)
    // If the last commit is the same, another process has opened the store and committed nothing.
    if replay.contents.lastCommit == commit { return true }
    // The values are copied (`detached`), because a slice would keep all bytes of the journal in memory.
    let batch = WriteBatch(records: replay.changes.values.map(\.detached), commits: (commit + 1)...replay.contents.lastCommit)
    for record in batch.records where record.revision.number > commit { foreignChanges[record.address] = record }
    note(batch)
    return true
  }

  /// Returns the commits of other processes that ``resume()`` has added.
  func foreignCommits(after revision: Revision) -> ForeignCommits? {
    guard commit > revision.number else { return nil }
    return ForeignCommits(commit: Revision(commit), records: foreignChanges.values.filter { $0.revision > revision })
  }

  /// True if another process has appended a complete frame.
  ///
  /// An incomplete frame does not count, because it may be from a failed write of this store, and the next write overwrites it.
  private func hasForeignFrame(_ journal: JournalWriter) throws(RepositoryError) -> Bool {
    let bytes = try journal.file.read(at: 0, count: .max)
    do throws(RepositoryError) {
      return try JournalReader(data: bytes, file: paths.journal).read { _ in }.lastCommit != journal.lastCommit
    } catch {
      // An unreadable journal counts as changed, because the opening that follows finds the damage and reports it.
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
