internal import Foundation

extension JSONFileStore {
  /// Makes every commit durable, and releases the locks.
  ///
  /// Main file and journal stay open, so that the system gives their inodes to no other files.
  ///
  /// A checkpoint that runs beside commits is given up.
  /// - Throws: The first error. The locks are released all the same.
  func suspend() throws(RepositoryError) {
    if case .mainFile = folding?.part { givenUp = .storeSuspended }
    giveUpFolding()
    // The system is about to stop the process, and unfinished work would still write.
    journal?.stopGrowing()
    var failure: RepositoryError?
    do throws(RepositoryError) {
      try flush()
      // The lock goes with the descriptor that took it, so the main file is opened a second time.
      guard let file = try fileSystem.open(paths.mainFile, writable: false) else { throw .noMainFile(paths.mainFile) }
      try take(file)
    } catch {
      failure = error
      // `resume` then reads the file again. The caller gets the first error.
      do throws(RepositoryError) { try main.file.close() } catch {}
    }
    lock.release()
    if let failure { throw failure }
  }

  /// Takes the locks again if the main file is unchanged, and adds the commits that others have appended to the journal.
  /// - Returns: `false` if the store must be read again.
  func resume() throws(RepositoryError) -> Bool {
    let lock = try fileSystem.lock(paths.lock)
    do throws(RepositoryError) {
      guard let file = try MainFile.open(paths.mainFile, fileSystem) else {
        lock.release()
        return false
      }
      let identity = try file.status().identity
      // Without identities the file could be another process's with the same size.
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
  /// - Throws: `.dataMissing` if the descriptor is of another file.
  private func take(_ file: any OpenFile) throws(RepositoryError) {
    let old = main
    let next = try old.reopened(as: file)
    guard next.identity == old.identity else { throw .noMainFile(paths.mainFile) }
    main = next
    // The lock of the old descriptor is gone in any case, and nothing is written through it any more.
    do throws(RepositoryError) { try old.file.close() } catch {}
  }

  /// True if the paths still lead to the open files, and nothing was appended to the journal.
  private func areFilesUnchanged() throws(RepositoryError) -> Bool {
    do throws(RepositoryError) { try checkFiles() } catch {
      // The next opening finds the cause and reports it.
      guard error.code == .dataMissing || error.code == .locked else { throw error }
      return false
    }
    // Another process may have appended to a journal that is not in use here.
    guard let journal else { return !hasUnusedJournal }
    // Behind the last frame are zero bytes, unless another process has appended a frame or a write here has failed.
    if try journal.file.read(at: journal.end, count: JournalFormat.terminatorSize).allSatisfy({ $0 == 0 }) { return true }
    guard journal.hasBrokenFrame else { return false }
    return try !hasForeignFrame(journal)
  }

  /// Adds the commits that others have appended to the journal, or returns `false` if the store must be read again.
  ///
  /// Every opening puts a copy of the journal in the place of the journal, so the earlier bytes must be identical.
  private func takeAppended() throws(RepositoryError) -> Bool {
    guard !hasUnusedJournal, let data = try fileSystem.contents(of: paths.journal, syncingFirst: true) else { return false }
    let replay: JSONFileReplay
    do throws(RepositoryError) {
      try Self.checkMainFile(main, at: paths.mainFile, fileSystem)
      if let journal, try data.prefix(journal.end) != journal.file.read(at: 0, count: journal.end) { return false }
      replay = try JSONFileReplay(data, over: main.header, paths: paths, recovery: .strict, from: journal?.position)
    } catch {
      // Opening finds the damage or the torn commit, and reports it.
      return false
    }
    guard !replay.isBehind, replay.contents.lastCommit >= commit else { return false }
    // An opening puts a copy in place before it appends, for the same reason as `renewJournal`.
    let recovery = JSONFileRecovery(paths: paths, fileSystem: fileSystem, tuning: tuning)
    let next = try recovery.renewJournal(replay.contents, from: data, main)
    // All its frames are in the next journal.
    do throws(RepositoryError) { try journal?.close() } catch {}
    (journal, isJournalDurable) = (next, true)
    // Another process has opened the store, and committed nothing.
    if replay.contents.lastCommit == commit { return true }
    // Copied, since a slice would keep all bytes of the journal in memory.
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

  /// True if another process has appended a whole frame.
  ///
  /// A part of a frame may be this store's, and the next write removes that.
  private func hasForeignFrame(_ journal: JournalWriter) throws(RepositoryError) -> Bool {
    let bytes = try journal.file.read(at: 0, count: .max)
    do throws(RepositoryError) {
      return try JournalReader(data: bytes, file: paths.journal).read { _ in }.lastCommit != journal.lastCommit
    } catch {
      // Opening finds the damage, and reports it.
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
