internal import Foundation
internal import Larder

/// New store under a temporary name, which gets its final name when it is complete.
///
/// An app never finds an unfinished store.
struct StoreDraft {
  private let target: StoreFile
  /// The draft's path, which is the target's path with `-unfinished` appended.
  let file: StoreFile
  private let fileSystem = POSIXFileSystem()

  /// Endings of the files that a draft of either kind may consist of.
  private static let endings = [
    "", "-journal", "-lock", "-tmp", "-journal-tmp", "-wal", "-shm", "-new", "-new-journal", "-new-wal", "-new-shm",
  ]

  /// Begins a draft of a new store, and removes one that an interrupted run has left.
  /// - Throws: `.alreadyExists` if there is a store or one of its files, `.locked` while another run writes the same draft.
  init(of target: StoreFile) throws(RepositoryError) { try self.init(target, replaces: false) }

  /// Begins a draft that will replace an existing store.
  init(replacing target: StoreFile) throws(RepositoryError) { try self.init(target, replaces: true) }

  private init(_ target: StoreFile, replaces: Bool) throws(RepositoryError) {
    self.target = target
    file = try StoreFile(newAt: target.path + "-unfinished", kind: target.kind)
    if !replaces { try checkAbsence() }
    try fileSystem.createDirectory(directory)
    // Another run that is writing this draft holds the lock. Its files must not be removed.
    try fileSystem.lock(file.path + "-lock").release()
    try remove()
  }

  private var directory: String { target.url.deletingLastPathComponent().path(percentEncoded: false) }

  /// Checks that the target has no store, and no file that an app would take for a part of one.
  private func checkAbsence() throws(RepositoryError) {
    for ending in ["", "-journal", "-wal", "-previous"] {
      guard try fileSystem.status(of: target.path + ending) == nil else {
        throw RepositoryError(
          .alreadyExists, "expected no file of this name, found one: choose another name, or move it away", file: target.path + ending)
      }
    }
  }

  private func remove() throws(RepositoryError) {
    for ending in Self.endings { try fileSystem.remove(file.path + ending) }
  }

  /// Writes contents to the draft, reads them back, compares them, and gives the store its final name.
  /// - Parameter progress: Called after each batch with its number of records.
  func fill(_ contents: StoreContents, _ progress: (Int) -> Void = { _ in }) throws(RepositoryError) {
    try contents.checkCommit(target.path)
    try complete { () throws(RepositoryError) in
      let backend = file.backend
      // The limit makes the checkpoint forget the marker of the horizon, see `StoreContents.batches()`.
      let report = try backend.open(StoreOptions(limits: .init(tombstones: contents.tombstoneCount))) { _ in }
      do throws(RepositoryError) {
        _ = try backend.recover(report)
        for batch in contents.batches() {
          try backend.commit(batch)
          progress(batch.records.count)
        }
        // Folds the journal or log, so that the store is a single file that one rename can publish.
        try backend.checkpoint()
      } catch {
        // `close` could write again to a disk that has just failed. The draft is removed anyway.
        backend.abandon()
        throw error
      }
      try backend.close()
      try contents.compare(with: StoreContents(StoreReading(file)), at: file.path)
    }
  }

  /// Runs `body` to write the draft, and gives it the target's name.
  ///
  /// Removes the draft if `body` fails.
  func complete(_ body: () throws(RepositoryError) -> Void) throws(RepositoryError) {
    try complete(body) { () throws(RepositoryError) in
      // A server or an app may have made a store of this name meanwhile, and a rename would replace it.
      try checkAbsence()
      try fileSystem.rename(file.path, to: target.path)
    }
  }

  /// Runs `body` to write the draft, then `publish` to give it its name.
  ///
  /// Removes the draft if either fails.
  func complete(
    _ body: () throws(RepositoryError) -> Void, publish: () throws(RepositoryError) -> Void
  ) throws(RepositoryError) {
    do throws(RepositoryError) {
      try body()
      for ending in Self.endings.dropFirst() {
        // A journal or log beside the draft would not be renamed with it, and its commits would be lost.
        guard try fileSystem.status(of: file.path + ending) == nil || ending == "-shm" else {
          throw RepositoryError(
            .inputOutput, "expected one file of a closed store, found another: run this again", file: file.path + ending)
        }
      }
      try publish()
    } catch {
      // The error that ended the work is thrown, and not one of the removal. The next run removes the rest.
      do throws(RepositoryError) { try remove() } catch {}
      throw error
    }
    // Without this sync, a power cut could undo the rename after the command has reported success.
    try fileSystem.syncDirectory(directory)
  }
}
