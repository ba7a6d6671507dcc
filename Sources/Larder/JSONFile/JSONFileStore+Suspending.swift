internal import Foundation

extension JSONFileStore {
  /// Makes everything durable, and gives up the locks; main file and journal stay open, so that the system gives their identities to no
  /// other files.
  ///
  /// A checkpoint that goes on beside commits is given up.
  /// - Throws: what went wrong; the locks are given up all the same.
  func suspend() throws(RepositoryError) {
    giveUpFolding()
    journal?.stopGrowing()
    var failure: RepositoryError?
    do throws(RepositoryError) {
      try flush()
      // Closing the descriptor that is locked gives up the lock of the file.
      if let anchor = try fileSystem.open(paths.mainFile, writable: false) { try take(anchor) }
    } catch {
      failure = error
      do throws(RepositoryError) { try main.file.close() } catch {}  // it is read anew then, which the first failure says
    }
    lock.release()
    if let failure { throw failure }
  }

  /// Takes the locks again, if main file and journal are as they were left; `false` when the store must be read anew.
  func resume() throws(RepositoryError) -> Bool {
    let lock = try fileSystem.lock(paths.lock)
    do throws(RepositoryError) {
      guard let file = try MainFile.open(paths.mainFile, fileSystem) else {
        lock.release()
        return false
      }
      guard main.identity != nil, try file.status().identity == main.identity, try areFilesUnchanged() else {
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

  /// Takes another descriptor of the main file into use, if it is that file.
  private func take(_ file: any OpenFile) throws(RepositoryError) {
    let old = main
    main = try old.reopened(as: file)
    try old.file.close()
  }

  /// Whether the names still mean the files that are open, and nothing was appended to the journal.
  private func areFilesUnchanged() throws(RepositoryError) -> Bool {
    do throws(RepositoryError) { try checkFiles() } catch {
      // Opening finds out what is there, and says it.
      guard error.code == .dataMissing || error.code == .locked else { throw error }
      return false
    }
    guard let journal else { return true }
    return try journal.file.read(at: journal.end, count: JournalFormat.terminatorSize).allSatisfy { $0 == 0 }
  }
}
