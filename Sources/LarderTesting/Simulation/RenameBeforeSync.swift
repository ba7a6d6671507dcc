internal import Foundation
public import Larder
internal import Synchronization

/// A file system whose directory sync does nothing, for tests that show that a crash test notices.
public struct DirectorySyncIgnoring: FileSystem {
  private let base: any FileSystem

  /// Breaks a file system.
  public init(_ base: any FileSystem) { self.base = base }

  /// Does nothing: this is the defect.
  public func syncDirectory(_ path: String) {}

  /// Opens an existing file.
  public func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? { try base.open(path, writable: writable) }
  /// Creates a file.
  public func create(_ path: String) throws(RepositoryError) -> any OpenFile { try base.create(path) }
  /// Renames a file.
  public func rename(_ path: String, to newPath: String) throws(RepositoryError) { try base.rename(path, to: newPath) }
  /// Removes a file.
  public func remove(_ path: String) throws(RepositoryError) { try base.remove(path) }
  /// Makes a directory.
  public func createDirectory(_ path: String) throws(RepositoryError) { try base.createDirectory(path) }
  /// The names in a directory.
  public func entries(of directory: String) throws(RepositoryError) -> [String]? { try base.entries(of: directory) }
  /// Returns what stands at a path.
  public func status(of path: String) throws(RepositoryError) -> FileStatus? { try base.status(of: path) }
  /// Takes a lock.
  public func lock(_ path: String) throws(RepositoryError) -> any HeldLock { try base.lock(path) }
}

/// A file system that renames a new file before it syncs it, for tests that show that a crash test notices.
///
/// The sync of the files chosen is held back until the file has been renamed, and made then.
public struct RenameBeforeSync: FileSystem {
  private let base: any FileSystem
  private let isDelayed: @Sendable (String) -> Bool
  private let heldBack = HeldBackSyncs()

  /// Breaks a file system for the paths that the closure chooses: those of temporary files that are to be renamed.
  public init(_ base: any FileSystem, delaying isDelayed: @escaping @Sendable (String) -> Bool) {
    self.base = base
    self.isDelayed = isDelayed
  }

  /// Creates a file, whose sync is held back if its path is chosen.
  public func create(_ path: String) throws(RepositoryError) -> any OpenFile {
    let file = try base.create(path)
    return isDelayed(path) ? HeldBackFile(file, heldBack) : file
  }

  /// Renames a file, and syncs it only then: this is the defect.
  public func rename(_ path: String, to newPath: String) throws(RepositoryError) {
    try base.rename(path, to: newPath)
    // Opened anew, for the file that was to be synced may be closed by now; a file system syncs files, not descriptors.
    if heldBack.take(path) { try base.open(newPath, writable: true)?.sync() }
  }

  /// Opens an existing file.
  public func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? { try base.open(path, writable: writable) }
  /// Removes a file.
  public func remove(_ path: String) throws(RepositoryError) { try base.remove(path) }
  /// Makes a directory.
  public func createDirectory(_ path: String) throws(RepositoryError) { try base.createDirectory(path) }
  /// Syncs a directory.
  public func syncDirectory(_ path: String) throws(RepositoryError) { try base.syncDirectory(path) }
  /// The names in a directory.
  public func entries(of directory: String) throws(RepositoryError) -> [String]? { try base.entries(of: directory) }
  /// Returns what stands at a path.
  public func status(of path: String) throws(RepositoryError) -> FileStatus? { try base.status(of: path) }
  /// Takes a lock.
  public func lock(_ path: String) throws(RepositoryError) -> any HeldLock { try base.lock(path) }
}

/// The paths of files that were to be synced.
private final class HeldBackSyncs: Sendable {
  private let paths = Mutex<Set<String>>([])
  func add(_ path: String) { _ = paths.withLock { $0.insert(path) } }
  func take(_ path: String) -> Bool { paths.withLock { $0.remove(path) != nil } }
}

/// A file whose sync is only noted.
private final class HeldBackFile: OpenFile {
  private let base: any OpenFile
  private let heldBack: HeldBackSyncs

  init(_ base: any OpenFile, _ heldBack: HeldBackSyncs) {
    self.base = base
    self.heldBack = heldBack
  }

  var path: String { base.path }
  func size() throws(RepositoryError) -> Int { try base.size() }
  func status() throws(RepositoryError) -> FileStatus { try base.status() }
  func lock() throws(RepositoryError) { try base.lock() }
  func setOwner(_ owner: FileOwner) throws(RepositoryError) { try base.setOwner(owner) }
  func mode() throws(RepositoryError) -> UInt16 { try base.mode() }
  func setMode(_ mode: UInt16) throws(RepositoryError) { try base.setMode(mode) }
  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data { try base.read(at: offset, count: count) }
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError) { try base.write(bytes, at: offset) }
  func sync() { heldBack.add(path) }
  func close() throws(RepositoryError) { try base.close() }
}
