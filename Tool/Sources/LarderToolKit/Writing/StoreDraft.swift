internal import Foundation
internal import Larder

/// A new store under another name, which gets its own when it is complete: until then nothing is there that could be taken for it.
struct StoreDraft {
  private let target: StoreFile
  /// The draft: the name of the store with `-unfinished` behind it.
  let file: StoreFile
  private let fileSystem = POSIXFileSystem()

  /// The endings of the files that a store may have beside it.
  private static let endings = [
    "", "-journal", "-lock", "-tmp", "-journal-tmp", "-wal", "-shm", "-new", "-new-journal", "-new-wal", "-new-shm",
  ]

  /// Removes what an earlier run has left of this draft, and begins.
  /// - Throws: `.alreadyExists` where there is a store, or a file of one; `.locked` while another run writes the same draft.
  init(of target: StoreFile) throws(RepositoryError) { try self.init(target, replaces: false) }

  /// Begins a draft that will be put in the place of a store.
  init(replacing target: StoreFile) throws(RepositoryError) { try self.init(target, replaces: true) }

  private init(_ target: StoreFile, replaces: Bool) throws(RepositoryError) {
    self.target = target
    file = try StoreFile(newAt: target.path + "-unfinished", kind: target.kind)
    if !replaces { try checkAbsence() }
    try fileSystem.createDirectory(directory)
    try fileSystem.lock(file.path + "-lock").release()
    try remove()
  }

  private var directory: String { target.url.deletingLastPathComponent().path(percentEncoded: false) }

  /// Refuses a name that a store has, or that an app would find parts of a store at.
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

  /// Writes contents, reads them back, compares them, and gives the store its name.
  /// - Parameter progress: Called with the number of records of each batch.
  func fill(_ contents: StoreContents, _ progress: (Int) -> Void = { _ in }) throws(RepositoryError) {
    try contents.checkCommit(target.path)
    try complete { () throws(RepositoryError) in
      let backend = file.backend
      let report = try backend.open(StoreOptions(limits: .init(tombstones: contents.tombstoneCount))) { _ in }
      do throws(RepositoryError) {
        _ = try backend.recover(report)
        for batch in contents.batches() {
          try backend.commit(batch)
          progress(batch.records.count)
        }
        try backend.checkpoint()
      } catch {
        backend.abandon()
        throw error
      }
      try backend.close()
      try contents.compare(with: StoreContents(StoreReading(file)), at: file.path)
    }
  }

  /// Runs what writes the draft, and gives it the name of the store; removes it if that fails.
  func complete(_ body: () throws(RepositoryError) -> Void) throws(RepositoryError) {
    try complete(body) { () throws(RepositoryError) in
      try checkAbsence()
      try fileSystem.rename(file.path, to: target.path)
    }
  }

  /// Runs what writes the draft, and what gives it its name; removes it if the first fails.
  func complete(
    _ body: () throws(RepositoryError) -> Void, publish: () throws(RepositoryError) -> Void
  ) throws(RepositoryError) {
    do throws(RepositoryError) {
      try body()
      for ending in Self.endings.dropFirst() {
        guard try fileSystem.status(of: file.path + ending) == nil || ending == "-shm" else {
          throw RepositoryError(
            .inputOutput, "expected one file of a closed store, found another: run this again", file: file.path + ending)
        }
      }
      try publish()
    } catch {
      // The failure is what must be heard of; the next run removes what stays.
      do throws(RepositoryError) { try remove() } catch {}
      throw error
    }
    try fileSystem.syncDirectory(directory)
  }
}
