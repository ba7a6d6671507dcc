internal import Foundation
internal import Larder

/// The files of a store that is replaced by another one.
///
/// At every moment there is a main file of this name, and what the old store held has a name: it is linked aside first, then its main file
/// is replaced in one step, then its journal is removed. A journal that a crash leaves beside the new main file is refused by the next
/// open, and another run removes it.
struct StorePlace {
  private let file: StoreFile
  private let fileSystem = POSIXFileSystem()
  /// The endings of the files that hold what the main file does not have yet, or had before.
  private static let companions = ["-journal", "-wal", "-previous"]

  init(of file: StoreFile) { self.file = file }

  private var directory: String { file.url.deletingLastPathComponent().path(percentEncoded: false) }

  /// Whether there is a store, or a part of one.
  func isTaken() throws(RepositoryError) -> Bool {
    for ending in [""] + Self.companions where try fileSystem.status(of: file.path + ending) != nil { return true }
    return false
  }

  /// The locks of a store that nobody else has open.
  struct Locks {
    fileprivate let lock: any HeldLock
    fileprivate let main: (any OpenFile)?

    func release() {
      do throws(RepositoryError) { try main?.close() } catch {}  // nothing was written
      lock.release()
    }
  }

  /// Keeps apps from opening the store.
  /// - Throws: `.locked` while one has it open.
  func lock() throws(RepositoryError) -> Locks {
    let lock = try fileSystem.lock(file.path + "-lock")
    do throws(RepositoryError) {
      // Of a damaged file the kind is a guess: the lock of a database is looked for in any case.
      try StoreUse(of: file).checkDatabase()
      guard file.kind == .jsonFile else { return Locks(lock: lock, main: nil) }
      let main = try fileSystem.open(file.path, writable: false)
      try main?.lock()
      return Locks(lock: lock, main: main)
    } catch {
      lock.release()
      throw error
    }
  }

  /// Returns a name for the old store that nothing has yet.
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

  /// Puts a file in the place of the store's main file, and keeps the old store under another name.
  func replace(with path: String, movingTo aside: String) throws(RepositoryError) {
    for ending in Self.companions + [""] { try link(file.path + ending, to: aside + ending) }
    try fileSystem.syncDirectory(directory)
    try fileSystem.rename(path, to: file.path)
    try fileSystem.syncDirectory(directory)
    for ending in Self.companions + ["-shm"] { try fileSystem.remove(file.path + ending) }
    try fileSystem.syncDirectory(directory)
  }

  /// Gives a file a second name; does nothing where there is no file.
  private func link(_ path: String, to name: String) throws(RepositoryError) {
    guard try fileSystem.status(of: path) != nil, Foundation.link(path, name) != 0 else { return }
    let error = SystemCallError(call: "link", errorNumber: errno)
    throw RepositoryError(
      .inputOutput, "the old store cannot be kept under another name: move it away by hand, and run this again", file: path,
      underlying: error)
  }
}
