package import Larder
import Synchronization

/// A file system that renames a new file before it syncs it, for tests that prove that a crash test notices.
///
/// The sync of the chosen files is held back until the file has been renamed, and made then.
package struct RenameBeforeSync: ForwardingFileSystem {
  package let base: any FileSystem
  private let isDelayed: @Sendable (String) -> Bool
  private let heldBack = HeldBackSyncs()

  /// Breaks a file system for the paths that the closure chooses: those of temporary files that are to be renamed.
  package init(_ base: any FileSystem, delaying isDelayed: @escaping @Sendable (String) -> Bool) {
    self.base = base
    self.isDelayed = isDelayed
  }

  package func create(_ path: String) throws(RepositoryError) -> any OpenFile {
    let file = try base.create(path)
    return isDelayed(path) ? HeldBackFile(file, heldBack) : file
  }

  /// Renames a file, and syncs it only then: this is the defect.
  package func rename(_ path: String, to newPath: String) throws(RepositoryError) {
    try base.rename(path, to: newPath)
    // Opened anew, for the file that was to be synced may be closed by now; a file system syncs files, not descriptors.
    if heldBack.take(path) { try base.open(newPath, writable: true)?.sync() }
  }
}

/// The paths of files that were to be synced.
private final class HeldBackSyncs: Sendable {
  private let paths = Mutex<Set<String>>([])
  func add(_ path: String) { _ = paths.withLock { $0.insert(path) } }
  func take(_ path: String) -> Bool { paths.withLock { $0.remove(path) != nil } }
}

/// A file whose sync is only noted.
private final class HeldBackFile: ForwardingFile {
  let base: any OpenFile
  private let heldBack: HeldBackSyncs

  init(_ base: any OpenFile, _ heldBack: HeldBackSyncs) {
    self.base = base
    self.heldBack = heldBack
  }

  func sync() { heldBack.add(path) }
}
