// FileSystem/ is the only room that talks to the operating system's files.
// Invariant: every failure is typed and names its file; absence is nil. Called by JSONFile/ and by other backends' locks.
// The platform's C library comes with Foundation, which re-exports it everywhere: there are no conditional imports.

public import Foundation

/// The operations that a durable file format needs: the seam at which crashes and faults are simulated.
///
/// Stores use ``POSIXFileSystem`` unless they are given another one. Tests give the simulated one of `LarderTesting`, which forgets what
/// was not synced:
///
/// ```swift
/// let backend = JSONFileBackend(file: url, fileSystem: SimulatedFileSystem())
/// ```
///
/// A replacement is durable in four steps: ``create(_:)`` under a temporary name and write, ``OpenFile/sync()``, ``rename(_:to:)``,
/// ``syncDirectory(_:)``.
///
/// All calls are synchronous and may block: call them from a store's executor. Paths are absolute. Symbolic links are not followed.
/// A missing file is `nil`; every failure is a ``RepositoryError`` that names the path: `.protectedDataUnavailable` for EACCES and EPERM,
/// `.full` for ENOSPC, EDQUOT and EFBIG, `.unsupported` for ELOOP, `.inputOutput` for the rest, each with the ``SystemCallError``
/// underneath.
///
/// ## Topics
///
/// ### Files
/// - ``open(_:writable:)``
/// - ``create(_:)``
/// - ``rename(_:to:)``
/// - ``remove(_:)``
/// - ``status(of:)``
/// - ``OpenFile``
///
/// ### Directories
/// - ``createDirectory(_:)``
/// - ``syncDirectory(_:)``
/// - ``entries(of:)``
///
/// ### Locks
/// - ``lock(_:)``
/// - ``lockShared(_:waiting:)``
/// - ``HeldLock``
/// - ``HeldSharedLock``
public protocol FileSystem: Sendable {
  /// Opens an existing file for reading, or for reading and writing; `nil` when there is none.
  ///
  /// Never waits, whatever stands there.
  /// - Throws: `.unsupported` for anything but a plain file.
  func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)?
  /// Returns the status of the file at a path, without opening it and without following a link; `nil` when there is none.
  ///
  /// By default the file is opened for it.
  func status(of path: String) throws(RepositoryError) -> FileStatus?
  /// Creates a file that must not exist yet, for its owner only (mode 0600 whatever the umask), open for reading and writing.
  func create(_ path: String) throws(RepositoryError) -> any OpenFile
  /// Renames a file within its directory, replacing the one that has the new name. Durable after ``syncDirectory(_:)``.
  func rename(_ path: String, to newPath: String) throws(RepositoryError)
  /// Removes a file; no error when there is none. Durable after ``syncDirectory(_:)``.
  func remove(_ path: String) throws(RepositoryError)
  /// Makes a directory and its missing parents (mode 0700 whatever the umask), durably.
  func createDirectory(_ path: String) throws(RepositoryError)
  /// Makes the entries of a directory durable.
  func syncDirectory(_ path: String) throws(RepositoryError)
  /// Returns the names in a directory, in no particular order; `nil` when there is no such directory.
  func entries(of directory: String) throws(RepositoryError) -> [String]?
  /// Takes the exclusive lock that this file stands for, creating the file; never waits.
  /// - Throws: `.alreadyOpen` when this process holds it, `.locked` when another one does.
  func lock(_ path: String) throws(RepositoryError) -> any HeldLock
  /// Takes a share in the lock that this file stands for, creating the file: beside other shares, and never beside ``lock(_:)``.
  ///
  /// Waits, at most for the timeout, while another process is alone with the lock.
  /// - Throws: `.alreadyOpen` when this process holds it by ``lock(_:)``, `.locked` when another one does; `.unsupported` where locks
  ///   cannot be shared, as by default.
  func lockShared(_ path: String, waiting timeout: Duration) throws(RepositoryError) -> any HeldSharedLock
}

extension FileSystem {
  /// Opens the file to ask it: a file system of your own need not tell without.
  public func status(of path: String) throws(RepositoryError) -> FileStatus? {
    guard let file = try open(path, writable: false) else { return nil }
    let status = try file.status()
    try file.close()
    return status
  }

  /// Throws `.unsupported`: a file system of your own need not have shared locks.
  public func lockShared(_ path: String, waiting timeout: Duration) throws(RepositoryError) -> any HeldSharedLock {
    throw RepositoryError(.unsupported, "this file system has no locks that can be shared", file: path)
  }
}

extension FileSystem {
  /// Returns the bytes of a file; `nil` when there is none.
  ///
  /// - Parameters:
  ///   - limit: The number of bytes from the beginning, where not all are wanted.
  ///   - isSynced: Whether the file is synced first, so that a crash cannot take away what is returned.
  func contents(of path: String, limit: Int = .max, syncingFirst isSynced: Bool = false) throws(RepositoryError) -> Data? {
    guard let file = try open(path, writable: false) else { return nil }
    if isSynced { try file.sync() }
    let data = try file.read(at: 0, count: min(file.size(), limit))
    try file.close()
    return data
  }
}

/// A file that is open; closed when it is released, at the latest.
public protocol OpenFile: AnyObject, Sendable {
  /// The path it was opened at.
  var path: String { get }
  /// Returns the status of the file now, whatever name it has by now; without an identity by default.
  func status() throws(RepositoryError) -> FileStatus
  /// Locks the file itself, whatever its names, until it is closed; never waits. By default nothing is locked.
  ///
  /// - Throws: `.alreadyOpen` when this process has locked it, `.locked` when another one has.
  func lock() throws(RepositoryError)
  /// Gives the file to an owner as far as this process may, which is no error where it may not. By default nothing is done.
  func setOwner(_ owner: FileOwner) throws(RepositoryError)
  /// Gives the file the attributes that an app has set on another one, as far as this process may: its extended attributes and, on
  /// Apple platforms, its class of protection. By default nothing is done.
  func copyAttributes(of file: any OpenFile) throws(RepositoryError)
  /// Returns its size in bytes.
  func size() throws(RepositoryError) -> Int
  /// Returns its permission bits.
  func mode() throws(RepositoryError) -> UInt16
  /// Sets its permission bits.
  func setMode(_ mode: UInt16) throws(RepositoryError)
  /// Reads up to `count` bytes at an offset; fewer only at the end of the file.
  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data
  /// Writes all the bytes at an offset, growing the file where needed.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError)
  /// Grows the file by a range at its end that reads as zero bytes and has its space on the disk. By default zero bytes are written.
  ///
  /// Bytes of the file that are in the range already must be zero bytes: whether they are written anew is left open. After a failure some
  /// of the range may be there.
  func allocate(_ range: Range<Int>) throws(RepositoryError)
  /// Gives the space behind an offset back. By default nothing is done, and the space stays in use.
  ///
  /// A power cut may bring the old size back, with the bytes that were there; they are zero bytes wherever a format uses this.
  func cut(to size: Int) throws(RepositoryError)
  /// Makes contents and size survive power loss. After a failure the contents are unknown: a second call proves nothing.
  func sync() throws(RepositoryError)
  /// Makes contents and size reach the medium before whatever is written to it later; by default syncs.
  ///
  /// A power cut may take them. After a failure they are unknown, as after one of ``sync()``.
  func order() throws(RepositoryError)
  /// Closes the file; later calls fail. The second call does nothing.
  func close() throws(RepositoryError)
}

extension OpenFile {
  /// Returns size and mode only: a file system of your own need not tell files apart.
  public func status() throws(RepositoryError) -> FileStatus { FileStatus(identity: nil, size: try size(), mode: try mode()) }
  /// Writes zero bytes, 128 KiB at a time.
  public func allocate(_ range: Range<Int>) throws(RepositoryError) { try writeZeros(range) }
  /// Writes zero bytes, 128 KiB at a time.
  func writeZeros(_ range: Range<Int>) throws(RepositoryError) {
    let zeros = [UInt8](repeating: 0, count: min(128 << 10, range.count))
    for start in stride(from: range.lowerBound, to: range.upperBound, by: 128 << 10) {
      let count = min(zeros.count, range.upperBound - start)
      try zeros.lending { bytes throws(RepositoryError) in try write(UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: start) }
    }
  }
  /// Does nothing: the space stays in use.
  public func cut(to size: Int) throws(RepositoryError) {}
  /// Syncs: a file system of your own need not have barriers.
  public func order() throws(RepositoryError) { try sync() }
  /// Does nothing: such files are not locked themselves.
  public func lock() throws(RepositoryError) {}
  /// Does nothing.
  public func setOwner(_ owner: FileOwner) throws(RepositoryError) {}
  /// Does nothing.
  public func copyAttributes(of file: any OpenFile) throws(RepositoryError) {}
}

/// A lock that is held until it is released.
public protocol HeldLock: AnyObject, Sendable {
  /// Gives the lock up and removes its file. The second call does nothing.
  func release()
}

/// A share in a lock that other processes may hold too.
///
/// The first process has the lock alone, prepares what it guards, and then lets the others in.
public protocol HeldSharedLock: HeldLock {
  /// Whether no other process has a share, nor can get one, until ``share()`` or `release`.
  var isAlone: Bool { get }
  /// Lets other processes take shares.
  /// - Throws: `.locked` when another process took the lock exclusively in this moment.
  func share() throws(RepositoryError)
  /// Becomes alone again if no other process has a share; else gives the share up, and only `release` may follow.
  func reclaim() -> Bool
}
