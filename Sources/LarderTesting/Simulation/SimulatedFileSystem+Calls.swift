internal import Foundation
public import Larder
internal import Synchronization

/// The functions that the protocol `FileSystem` requires.
extension SimulatedFileSystem {
  /// Opens an existing file, or returns `nil` if there is none.
  public func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
    let number = try reading("open", path) { (disk) throws(RepositoryError) in try disk.file(at: path) }
    return number.map { SimulatedFile(path: path, number: $0, isWritable: writable, system: self) }
  }

  /// Returns the status of the entry at a path, or `nil` if there is none.
  ///
  /// The inode of a file is its number in the simulated disk.
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

  /// Creates a file that must not exist yet, with mode 0600.
  public func create(_ path: String) throws(RepositoryError) -> any OpenFile {
    let number = try changing("open", path) { (disk) throws(RepositoryError) in try disk.create(path) }
    return SimulatedFile(path: path, number: number, isWritable: true, system: self)
  }

  /// Renames a file within its directory.
  public func rename(_ path: String, to newPath: String) throws(RepositoryError) {
    try changing("rename", path) { (disk) throws(RepositoryError) in try disk.rename(path, to: newPath) }
  }

  /// Removes a file, or does nothing if there is none.
  public func remove(_ path: String) throws(RepositoryError) {
    try changing("unlink", path) { (disk) throws(RepositoryError) in try disk.remove(path) }
  }

  /// Makes a directory and its missing parents, and syncs the parent of each new directory before it makes the next one.
  public func createDirectory(_ path: String) throws(RepositoryError) {
    let parent = SimulatedDisk.split(path).directory
    switch try reading("stat", path, { (disk) throws(RepositoryError) in try disk.entry(at: path) }) {
    case .file: throw .simulated("mkdir", errorNumber: ENOTDIR, at: path)
    // The directory may be visible although its name is not durable yet, so its parent is synced.
    case .directory: try adoptDirectory(path)
    case nil:
      if try reading("stat", parent, { (disk) throws(RepositoryError) in try disk.entry(at: parent) }) == nil {
        try createDirectory(parent)
      } else {
        try adoptDirectory(parent)
      }
      // Making the directory and syncing its parent are two operations, so that a crash in between can lose the directory.
      try changing("mkdir", path) { (disk) in disk.makeDirectory(path) }
      try syncDirectory(parent)
    }
  }

  /// Syncs the parent of an existing directory, because the program that made the directory may have crashed before its own sync.
  private func adoptDirectory(_ path: String) throws(RepositoryError) {
    if path != "/" { try syncDirectory(SimulatedDisk.split(path).directory) }
  }

  /// Makes the entries of a directory durable, unless a planned fault fails the sync.
  public func syncDirectory(_ path: String) throws(RepositoryError) {
    try changing("fsync", path, failing: { if $1.abandonsNames { $0.syncDirectory(path, fails: true) } }) {
      (disk) throws(RepositoryError) in
      guard disk.directories[path] != nil else { throw .simulated("open", errorNumber: ENOENT, at: path) }
      disk.syncDirectory(path)
    }
  }

  /// Returns the names in a directory, including the names of held locks, or `nil` if there is no such directory.
  public func entries(of directory: String) throws(RepositoryError) -> [String]? {
    let found = try reading("readdir", directory) { (disk) throws(RepositoryError) -> [String]? in
      if case .file = try disk.entry(at: directory) { throw .simulated("open", errorNumber: ENOTDIR, at: directory) }
      return disk.directories[directory].map { Array($0.current.keys) }
    }
    // A real lock is a file, so code that lists a real directory finds lock files. The names of the simulated locks are added, because
    // these locks are not in the simulated disk.
    let locks = state.withLock { $0.locks }.map { SimulatedDisk.split($0) }.filter { $0.directory == directory }.map(\.name)
    return found.map { Array(Set($0).union(locks)) }
  }

  /// Takes a lock at a path.
  ///
  /// The lock is in memory only, so no crash image holds the lock.
  ///
  /// - Throws: `.alreadyOpen` while the lock is held.
  public func lock(_ path: String) throws(RepositoryError) -> any HeldLock {
    // Taking a lock counts as a change, because a real lock creates its lock file.
    try changing("flock", path) { (disk) throws(RepositoryError) in
      guard disk.directories[SimulatedDisk.split(path).directory] != nil else { throw .simulated("open", errorNumber: ENOENT, at: path) }
    }
    guard state.withLock({ $0.locks.insert(path).inserted }) else {
      throw RepositoryError(.alreadyOpen, "this process holds the lock already: release it first", file: path)
    }
    return SimulatedLock(path: path, system: self)
  }

  /// Locks an open file, and returns false if it is locked already.
  ///
  /// A lock of an open file is not counted as an operation, since it changes nothing on the disk.
  func lock(_ number: Int, _ path: String) throws(RepositoryError) -> Bool {
    try state.withLock { (state) throws(RepositoryError) in
      if state.isDown { throw Self.down(path) }
      return state.lockedFiles.insert(number).inserted
    }
  }

  func unlock(_ number: Int) { _ = state.withLock { $0.lockedFiles.remove(number) } }

  func unlock(_ path: String) { _ = state.withLock { $0.locks.remove(path) } }
}

/// Open file of a simulated file system, which is usable after its name is removed, and throws once the machine is down.
final class SimulatedFile: OpenFile {
  let path: String
  private let number: Int
  private let isWritable: Bool
  private let system: SimulatedFileSystem
  private let isClosed = Mutex(false)
  private let isLocked = Mutex(false)

  init(path: String, number: Int, isWritable: Bool, system: SimulatedFileSystem) {
    self.path = path
    self.number = number
    self.isWritable = isWritable
    self.system = system
  }

  deinit { close() }

  func status() throws(RepositoryError) -> FileStatus {
    try checkOpen("fstat")
    return try system.status(of: number, path)
  }

  func lock() throws(RepositoryError) {
    try checkOpen("flock")
    // The lock belongs to the number of the file and not to its path, so that a file has one lock under all its names, like an inode.
    guard try system.lock(number, path) else {
      throw RepositoryError(.alreadyOpen, "this process has the file open, maybe by another name", file: path)
    }
    isLocked.withLock { $0 = true }
  }

  func size() throws(RepositoryError) -> Int {
    try checkOpen("fstat")
    return try system.reading("fstat", path) { [number] (disk) in disk.files[number]?.current.bytes.count ?? 0 }
  }

  func mode() throws(RepositoryError) -> UInt16 {
    try checkOpen("fstat")
    return try system.reading("fstat", path) { [number] (disk) in disk.files[number]?.current.mode ?? 0 }
  }

  func setMode(_ mode: UInt16) throws(RepositoryError) {
    try checkOpen("fchmod")
    try system.changing("fchmod", path) { [number] (disk) in disk.setMode(mode, of: number) }
  }

  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
    try checkOpen("pread")
    // The system call `pread` also refuses a negative offset. Without the check of the offset, the read would begin before the buffer.
    if offset < 0 { throw .simulated("pread", errorNumber: EINVAL, at: path) }
    return try system.reading("pread", path) { [number] (disk) in
      guard let bytes = disk.files[number]?.current.bytes, offset < bytes.count, count > 0 else { return Data() }
      return bytes.withUnsafeBytes { bytes in
        bytes.baseAddress.map { Data(bytes: $0 + offset, count: min(count, bytes.count - offset)) } ?? Data()
      }
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError) {
    try checkOpen("pwrite")
    // A write to a read-only file or at a negative offset is a mistake of the caller, and is not counted as an operation.
    if !isWritable { throw .simulated("pwrite", errorNumber: EBADF, at: path) }
    if offset < 0 { throw .simulated("pwrite", errorNumber: EINVAL, at: path) }
    try system.write(bytes, at: offset, to: number, path)
  }

  func cut(to size: Int) throws(RepositoryError) {
    try checkOpen("ftruncate")
    if !isWritable || size < 0 { throw .simulated("ftruncate", errorNumber: EINVAL, at: path) }
    try system.changing("ftruncate", path) { [number] (disk) in disk.cut(number, to: size) }
  }

  func sync() throws(RepositoryError) {
    try checkOpen("fsync")
    // After a failed `fsync`, Linux marks the dirty pages clean, so no later sync writes them.
    try system.changing("fsync", path, failing: { [number] disk, _ in disk.sync(number, fails: true) }) { [number] (disk) in
      disk.sync(number)
    }
  }

  func close() {
    isClosed.withLock { $0 = true }
    // The flag `isLocked` is read and cleared in one step, so that a second close does not release a lock that another open file has by
    // now.
    let wasLocked = isLocked.withLock { isLocked in
      defer { isLocked = false }
      return isLocked
    }
    if wasLocked { system.unlock(number) }
  }

  private func checkOpen(_ call: String) throws(RepositoryError) {
    if isClosed.withLock({ $0 }) { throw .simulated(call, errorNumber: EBADF, at: path) }
  }
}

/// Lock of a simulated file system, which is released with its last reference if not before.
final class SimulatedLock: HeldLock {
  private let path: String
  private let system: Mutex<SimulatedFileSystem?>

  init(path: String, system: SimulatedFileSystem) {
    self.path = path
    self.system = Mutex(system)
  }

  deinit { release() }

  // The first release removes the reference to the file system, so that a second release does not free a lock that another caller has by
  // now.
  func release() { system.withLock({ $0.take() })?.unlock(path) }
}
