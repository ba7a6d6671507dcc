internal import Foundation
public import Larder
internal import Synchronization

/// The calls of the seam `FileSystem`.
extension SimulatedFileSystem {
  /// Opens an existing file; `nil` when there is none.
  public func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
    let number = try reading("open", path) { (disk) throws(RepositoryError) in try disk.file(at: path) }
    return number.map { SimulatedFile(path: path, number: $0, isWritable: writable, system: self) }
  }

  /// Returns the status of the entry at a path; `nil` when there is none.
  ///
  /// The inode of a file is its number.
  public func status(of path: String) throws(RepositoryError) -> FileStatus? {
    switch try reading("lstat", path, { (disk) throws(RepositoryError) in try disk.entry(at: path) }) {
    case .file(let number): try status(of: number, path)
    case .directory: FileStatus(kind: .directory, identity: nil, size: 0, mode: 0o700)
    case nil: nil
    }
  }

  func status(of number: Int, _ path: String) throws(RepositoryError) -> FileStatus {
    try reading("fstat", path) { (disk) in
      let image = disk.files[number]?.current ?? .init()
      return FileStatus(identity: .init(device: 1, inode: UInt64(number)), size: image.bytes.count, mode: image.mode)
    }
  }

  /// Creates a file that must not exist yet, mode 0600.
  public func create(_ path: String) throws(RepositoryError) -> any OpenFile {
    let number = try changing("open", path) { (disk) throws(RepositoryError) in try disk.create(path) }
    return SimulatedFile(path: path, number: number, isWritable: true, system: self)
  }

  /// Renames a file within its directory.
  public func rename(_ path: String, to newPath: String) throws(RepositoryError) {
    try changing("rename", path) { (disk) throws(RepositoryError) in try disk.rename(path, to: newPath) }
  }

  /// Removes a file; no error when there is none.
  public func remove(_ path: String) throws(RepositoryError) {
    try changing("unlink", path) { (disk) throws(RepositoryError) in try disk.remove(path) }
  }

  /// Makes a directory and its missing parents, each synced into its parent before the next is made.
  public func createDirectory(_ path: String) throws(RepositoryError) {
    let parent = SimulatedDisk.split(path).directory
    switch try reading("stat", path, { (disk) throws(RepositoryError) in try disk.entry(at: path) }) {
    case .file: throw .simulated("mkdir", ENOTDIR, path)
    case .directory: try adoptDirectory(path)
    case nil:
      if try reading("stat", parent, { (disk) throws(RepositoryError) in try disk.entry(at: parent) }) == nil {
        try createDirectory(parent)
      } else {
        try adoptDirectory(parent)
      }
      try changing("mkdir", path) { (disk) in disk.makeDirectory(path) }
      try syncDirectory(parent)
    }
  }

  /// Syncs the parent of a directory that exists: the program that made it may have crashed before it could.
  private func adoptDirectory(_ path: String) throws(RepositoryError) {
    if path != "/" { try syncDirectory(SimulatedDisk.split(path).directory) }
  }

  /// Makes the entries of a directory durable.
  public func syncDirectory(_ path: String) throws(RepositoryError) {
    try changing("fsync", path, failing: { if $1.abandonsNames { $0.syncDirectory(path, fails: true) } }) {
      (disk) throws(RepositoryError) in
      guard disk.directories[path] != nil else { throw .simulated("open", ENOENT, path) }
      disk.syncDirectory(path)
    }
  }

  /// Returns the names in a directory, those of locks included; `nil` when there is no such directory.
  public func entries(of directory: String) throws(RepositoryError) -> [String]? {
    let found = try reading("readdir", directory) { (disk) throws(RepositoryError) -> [String]? in
      if case .file = try disk.entry(at: directory) { throw .simulated("open", ENOTDIR, directory) }
      return disk.directories[directory].map { Array($0.current.keys) }
    }
    let locks = state.withLock { $0.locks }.map { SimulatedDisk.split($0) }.filter { $0.directory == directory }.map(\.name)
    return found.map { Array(Set($0).union(locks)) }
  }

  /// Takes a lock that lives in memory only: no crash image holds it.
  /// - Throws: `.alreadyOpen` while it is held.
  public func lock(_ path: String) throws(RepositoryError) -> any HeldLock {
    try changing("flock", path) { (disk) throws(RepositoryError) in
      guard disk.directories[SimulatedDisk.split(path).directory] != nil else { throw .simulated("open", ENOENT, path) }
    }
    guard state.withLock({ $0.locks.insert(path).inserted }) else {
      throw RepositoryError(.alreadyOpen, "this process holds the lock already: release it first", file: path)
    }
    return SimulatedLock(path: path, system: self)
  }

  /// Locks a file itself; `false` when it is locked.
  ///
  /// Uncounted, for it changes nothing on the disk.
  func lock(_ number: Int, _ path: String) throws(RepositoryError) -> Bool {
    try state.withLock { (state) throws(RepositoryError) in
      if state.isDown { throw Self.down(path) }
      return state.lockedFiles.insert(number).inserted
    }
  }

  func unlock(_ number: Int) { _ = state.withLock { $0.lockedFiles.remove(number) } }

  func unlock(_ path: String) { _ = state.withLock { $0.locks.remove(path) } }
}
