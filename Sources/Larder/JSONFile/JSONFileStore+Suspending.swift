internal import Foundation

extension JSONFileStore {
  /// Makes everything durable, and gives up the locks; main file and journal stay open, so that the system gives their identities to no
  /// other files.
  ///
  /// A checkpoint that goes on beside commits is given up.
  /// - Throws: what went wrong; the locks are given up all the same.
  func suspend() throws(RepositoryError) {
    if case .mainFile = folding?.part { givenUp = .storeSuspended }
    giveUpFolding()
    journal?.stopGrowing()
    var failure: RepositoryError?
    do throws(RepositoryError) {
      try flush()
      // Closing the descriptor that is locked gives up the lock of the file.
      guard let file = try fileSystem.open(paths.mainFile, writable: false) else { throw .noMainFile(paths.mainFile) }
      try take(file)
    } catch {
      failure = error
      do throws(RepositoryError) { try main.file.close() } catch {}  // it is read anew then, which the first failure says
    }
    lock.release()
    if let failure { throw failure }
  }

  /// Takes the locks again, if the main file is as it was left, and takes in what others have appended to the journal; `false` when the
  /// store must be read anew.
  func resume() throws(RepositoryError) -> Bool {
    let lock = try fileSystem.lock(paths.lock)
    do throws(RepositoryError) {
      guard let file = try MainFile.open(paths.mainFile, fileSystem) else {
        lock.release()
        return false
      }
      let identity = try file.status().identity
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

  /// Takes another descriptor of the main file into use.
  /// - Throws: `.dataMissing` when it is of another file.
  private func take(_ file: any OpenFile) throws(RepositoryError) {
    let old = main
    let next = try old.reopened(as: file)
    guard next.identity == old.identity else { throw .noMainFile(paths.mainFile) }
    main = next
    do throws(RepositoryError) { try old.file.close() } catch {}  // its lock is gone in any case, and nothing is written by it any more
  }

  /// Whether the names still mean the files that are open, and nothing was appended to the journal.
  private func areFilesUnchanged() throws(RepositoryError) -> Bool {
    do throws(RepositoryError) { try checkFiles() } catch {
      // Opening finds out what is there, and says it.
      guard error.code == .dataMissing || error.code == .locked else { throw error }
      return false
    }
    // Another process may have written into a journal that is not in use here.
    guard let journal else { return !hasUnusedJournal }
    if try journal.file.read(at: journal.end, count: JournalFormat.terminatorSize).allSatisfy({ $0 == 0 }) { return true }
    guard journal.hasBrokenFrame else { return false }
    return try !hasForeignFrame(journal)
  }

  /// Takes in the commits that others have appended to the journal; `false` where only reading everything would show what they did.
  ///
  /// Every opening puts a copy of the journal in the place of the journal, so what comes before must be the same, byte for byte.
  private func takeAppended() throws(RepositoryError) -> Bool {
    guard !hasUnusedJournal, let data = try fileSystem.contents(of: paths.journal, syncingFirst: true) else { return false }
    let replay: JSONFileReplay
    do throws(RepositoryError) {
      try Self.checkMainFile(main, at: paths.mainFile, fileSystem)
      if let journal, try data.prefix(journal.end) != journal.file.read(at: 0, count: journal.end) { return false }
      replay = try JSONFileReplay(data, over: main.header, paths: paths, recovery: .strict, from: journal?.position)
    } catch {
      return false  // opening finds the damage or the torn commit, and says it
    }
    guard !replay.isBehind, replay.contents.lastCommit >= commit else { return false }
    let recovery = JSONFileRecovery(paths: paths, fileSystem: fileSystem, tuning: tuning)
    let next = try recovery.renewJournal(replay.contents, from: data, main)
    do throws(RepositoryError) { try journal?.close() } catch {}  // what is in it is in the next one
    (journal, isJournalDurable) = (next, true)
    // Opened by another process, and let go again.
    if replay.contents.lastCommit == commit { return true }
    // Copies: a slice would keep all bytes of the journal in memory.
    let batch = WriteBatch(records: replay.changes.values.map(\.detached), commits: (commit + 1)...replay.contents.lastCommit)
    for record in batch.records where record.revision.number > commit { foreignChanges[record.address] = record }
    note(batch)
    return true
  }

  /// Returns the commits of others that ``resume()`` has taken in.
  func foreignCommits(after revision: Revision) -> ForeignCommits? {
    guard commit > revision.number else { return nil }
    return ForeignCommits(commit: Revision(commit), records: foreignChanges.values.filter { $0.revision > revision })
  }

  /// Whether another process has appended a whole frame, and not this store a part of one, which the next write takes back.
  private func hasForeignFrame(_ journal: JournalWriter) throws(RepositoryError) -> Bool {
    let bytes = try journal.file.read(at: 0, count: .max)
    do throws(RepositoryError) {
      return try JournalReader(data: bytes, file: paths.journal).read { _ in }.lastCommit != journal.lastCommit
    } catch {
      return true  // opening finds the damage, and says it
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
