internal import Foundation
internal import Larder

/// Files of a store that another one replaces.
///
/// There is a main file of this name at every moment, and the old contents always have a name. The old files get a second name by hard
/// links,
/// the new main file is renamed into place, and the old journal is removed. If a crash leaves the old journal beside the new main file, the
/// next opening refuses the store, and another run removes the journal.
struct StorePlace {
  private let file: StoreFile
  private let fileSystem = POSIXFileSystem()
  /// Endings of the files with commits that are newer than the main file, or with its previous generation.
  private static let companions = ["-journal", "-wal", "-previous"]

  init(of file: StoreFile) { self.file = file }

  private var directory: String { file.url.deletingLastPathComponent().path(percentEncoded: false) }

  /// Returns true if there is a store, or a part of one.
  func isTaken() throws(RepositoryError) -> Bool {
    for ending in [""] + Self.companions where try fileSystem.status(of: file.path + ending) != nil { return true }
    return false
  }

  /// Locks on a store that no app has open.
  struct Locks {
    fileprivate let lock: any HeldLock
    fileprivate let main: (any OpenFile)?

    func release() {
      do throws(RepositoryError) { try main?.close() } catch {}  // nothing was written
      lock.release()
    }
  }

  /// Locks the store, so that no app can open it.
  /// - Throws: `.locked` while an app has the store open.
  func lock() throws(RepositoryError) -> Locks {
    let lock = try fileSystem.lock(file.path + "-lock")
    do throws(RepositoryError) {
      // The kind of a damaged file is a guess, so the lock of a database is examined in any case.
      try StoreUse(of: file).checkDatabase()
      guard file.kind == .jsonFile else { return Locks(lock: lock, main: nil) }
      // An app also locks its main file itself. The lock file may have been deleted by hand.
      let main = try fileSystem.open(file.path, writable: false)
      try main?.lock()
      return Locks(lock: lock, main: main)
    } catch {
      lock.release()
      throw error
    }
  }

  /// Returns an unused name for the old store, with the date and time.
  func asideName(_ now: Date, _ word: String = "replaced") -> String {
    let date = now.formatted(.iso8601.year().month().day().time(includingFractionalSeconds: false).timeSeparator(.omitted))
    let stem = file.path + "-\(word)-\(date)Z"
    var (name, number) = (stem, 1)
    while FileManager.default.fileExists(atPath: name) || FileManager.default.fileExists(atPath: name + "-journal") {
      number += 1
      name = "\(stem)-\(number)"
    }
    return name
  }

  /// Replaces the store's main file, and keeps the old store under another name.
  func replace(with path: String, movingTo aside: String) throws(RepositoryError) {
    // The main file comes last. If a crash comes before, the copy has no main file and is not taken for a whole store.
    for ending in Self.companions + [""] { try link(file.path + ending, to: aside + ending) }
    // The second names must survive a power cut before the first one is replaced.
    try fileSystem.syncDirectory(directory)
    try fileSystem.rename(path, to: file.path)
    // The new main file must be durable before the old journal goes. A power cut could otherwise leave the old main file alone.
    try fileSystem.syncDirectory(directory)
    for ending in Self.companions + ["-shm"] { try fileSystem.remove(file.path + ending) }
    try fileSystem.syncDirectory(directory)
  }

  /// Adds a hard link to a file, if the file exists.
  private func link(_ path: String, to name: String) throws(RepositoryError) {
    guard try fileSystem.status(of: path) != nil, Foundation.link(path, name) != 0 else { return }
    let error = SystemCallError(call: "link", errorNumber: errno)
    throw RepositoryError(
      .inputOutput, "the old store cannot be kept under another name: move it away by hand, and run this again", file: path,
      underlying: error)
  }
}
