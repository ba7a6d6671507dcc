// FileSystem/ is the only folder of Larder that calls the operating system's file functions.
// Invariant: every failure is typed and names its file, and absence is nil. Called by JSONFile/ and by other backends' locks.
// Foundation re-exports the platform's C library everywhere, so there are no conditional imports.

public import Foundation

/// The file operations that a durable format needs, as a protocol so that tests can simulate crashes and faults.
///
/// Stores use ``POSIXFileSystem`` unless you give them another one. In tests, use the simulated one of `LarderTesting`, which drops
/// unsynced data when it simulates a crash:
///
/// ```swift
/// let backend = JSONFileBackend(file: url, fileSystem: SimulatedFileSystem())
/// ```
///
/// To replace a file durably, make these calls in order: ``create(_:)`` under a temporary name and write, ``OpenFile/sync()``,
/// ``rename(_:to:)``, ``syncDirectory(_:)``.
///
/// All calls are synchronous and may block: call them from a store's executor. Paths are absolute. Symbolic links are not followed. A
/// missing file is `nil`. Every failure is a ``RepositoryError`` that names the path: `.protectedDataUnavailable` for EACCES and EPERM,
/// `.full` for ENOSPC, EDQUOT and EFBIG, `.unsupported` for ELOOP, `.inputOutput` for the rest, each with the ``SystemCallError``
/// underneath.
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
  /// Opens an existing file for reading, or for reading and writing. Returns `nil` if there is none.
  ///
  /// Never blocks, not even on a named pipe.
  /// - Throws: `.unsupported` for anything but a plain file.
  func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)?
  /// Returns the status of the file at a path, without opening it and without following a link, or `nil` if there is none.
  ///
  /// The default opens the file.
  func status(of path: String) throws(RepositoryError) -> FileStatus?
  /// Creates a file that must not exist yet, open for reading and writing, with mode 0600 regardless of the umask.
  func create(_ path: String) throws(RepositoryError) -> any OpenFile
  /// Renames a file within its directory, and replaces the file that has the new name. Durable after ``syncDirectory(_:)``.
  func rename(_ path: String, to newPath: String) throws(RepositoryError)
  /// Removes a file, if there is one. Durable after ``syncDirectory(_:)``.
  func remove(_ path: String) throws(RepositoryError)
  /// Creates a directory and its missing parents durably, with mode 0700 regardless of the umask.
  func createDirectory(_ path: String) throws(RepositoryError)
  /// Makes the entries of a directory durable.
  func syncDirectory(_ path: String) throws(RepositoryError)
  /// Returns the names in a directory, in no particular order, or `nil` if there is no such directory.
  func entries(of directory: String) throws(RepositoryError) -> [String]?
  /// Takes the exclusive lock of a lock file, which is created if it is missing. Never waits.
  /// - Throws: `.alreadyOpen` if this process holds the lock, `.locked` if another one does.
  func lock(_ path: String) throws(RepositoryError) -> any HeldLock
  /// Takes a share in the lock of a lock file, which is created if it is missing.
  ///
  /// Several processes can have a share, but none beside ``lock(_:)``. Waits at most for the timeout while another process is alone with
  /// the lock.
  /// - Throws: `.alreadyOpen` if this process holds it by ``lock(_:)``, `.locked` if another one does. `.unsupported` if locks cannot be
  ///   shared. The default throws that.
  func lockShared(_ path: String, waiting timeout: Duration) throws(RepositoryError) -> any HeldSharedLock
}

extension FileSystem {
  /// Returns the status of the opened file, for a file system without a call for paths.
  public func status(of path: String) throws(RepositoryError) -> FileStatus? {
    guard let file = try open(path, writable: false) else { return nil }
    let status = try file.status()
    try file.close()
    return status
  }

  /// Throws `.unsupported`, for a file system without shared locks.
  public func lockShared(_ path: String, waiting timeout: Duration) throws(RepositoryError) -> any HeldSharedLock {
    throw RepositoryError(.unsupported, "this file system has no locks that can be shared", file: path)
  }
}

extension FileSystem {
  /// Returns the bytes of a file, or `nil` if there is none.
  ///
  /// - Parameters:
  ///   - limit: Number of bytes to read from the beginning, at most.
  ///   - isSynced: Whether to sync the file first, so that a crash cannot take the returned bytes away.
  func contents(of path: String, limit: Int = .max, syncingFirst isSynced: Bool = false) throws(RepositoryError) -> Data? {
    guard let file = try open(path, writable: false) else { return nil }
    if isSynced { try file.sync() }
    let data = try file.read(at: 0, count: min(file.size(), limit))
    try file.close()
    return data
  }
}

/// An open file, which is closed at the latest when its last reference goes.
public protocol OpenFile: AnyObject, Sendable {
  /// Path at which the file was opened. A later rename does not change it.
  var path: String { get }
  /// Returns the present status of the file, under any name. The default has no identity.
  func status() throws(RepositoryError) -> FileStatus
  /// Locks the file itself, under all its names, until it is closed. Never waits. The default locks nothing.
  ///
  /// - Throws: `.alreadyOpen` if this process has locked it, `.locked` if another one has.
  func lock() throws(RepositoryError)
  /// Sets the owner as far as this process may. It is no error if the process may not. The default does nothing.
  func setOwner(_ owner: FileOwner) throws(RepositoryError)
  /// Copies the attributes that an app has set on another file, as far as this process may: its extended attributes and, on Apple
  /// platforms, its class of protection. The default does nothing.
  func copyAttributes(of file: any OpenFile) throws(RepositoryError)
  /// Returns the size of the file in bytes.
  func size() throws(RepositoryError) -> Int
  /// Returns the permission bits of the file.
  func mode() throws(RepositoryError) -> UInt16
  /// Sets the permission bits of the file.
  func setMode(_ mode: UInt16) throws(RepositoryError)
  /// Reads up to `count` bytes at an offset. Returns fewer only at the end of the file.
  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data
  /// Writes all bytes at an offset, and grows the file if needed.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError)
  /// Grows the file by a range at its end that reads as zero bytes and has space on the disk. The default writes zero bytes.
  ///
  /// Existing bytes of the file in the range must be zero. An implementation may write them again or not. After a failure a part of the
  /// range may be allocated.
  func allocate(_ range: Range<Int>) throws(RepositoryError)
  /// Returns the space behind an offset to the system. The default does nothing, and the space stays in use.
  ///
  /// A power cut may bring the old size back, with the old bytes. Formats cut only where those are zero.
  func cut(to size: Int) throws(RepositoryError)
  /// Makes contents and size survive power loss. After a failure the contents are unknown, and a second call proves nothing.
  func sync() throws(RepositoryError)
  /// Makes contents and size reach the medium before all later writes. The default syncs.
  ///
  /// A power cut may still take them away. After a failure the contents are unknown, as after a failed ``sync()``.
  func order() throws(RepositoryError)
  /// Closes the file. Later calls fail, but a second `close` does nothing.
  func close() throws(RepositoryError)
}

extension OpenFile {
  /// Returns size and mode only, for a file system without identities.
  public func status() throws(RepositoryError) -> FileStatus { FileStatus(identity: nil, size: try size(), mode: try mode()) }
  /// Writes zero bytes to the range, 128 KiB at a time.
  public func allocate(_ range: Range<Int>) throws(RepositoryError) { try writeZeros(range) }
  /// Writes zero bytes to the range, 128 KiB at a time.
  func writeZeros(_ range: Range<Int>) throws(RepositoryError) {
    // Pieces bound the memory: a range can be a sixteenth of a large journal.
    let zeros = [UInt8](repeating: 0, count: min(128 << 10, range.count))
    for start in stride(from: range.lowerBound, to: range.upperBound, by: 128 << 10) {
      let count = min(zeros.count, range.upperBound - start)
      try zeros.lending { bytes throws(RepositoryError) in try write(UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: start) }
    }
  }
  /// Does nothing, so that the space stays in use.
  public func cut(to size: Int) throws(RepositoryError) {}
  /// Syncs the file, for a file system without write barriers.
  public func order() throws(RepositoryError) { try sync() }
  /// Does nothing, for a file system that does not lock files themselves.
  public func lock() throws(RepositoryError) {}
  /// Does nothing, for a file system without owners.
  public func setOwner(_ owner: FileOwner) throws(RepositoryError) {}
  /// Does nothing, for a file system without attributes.
  public func copyAttributes(of file: any OpenFile) throws(RepositoryError) {}
}

/// A lock that is held until it is released.
public protocol HeldLock: AnyObject, Sendable {
  /// Releases the lock and removes its file. A second call does nothing.
  func release()
}

/// A share in a lock that several processes can hold at once.
///
/// The first process has the lock alone, prepares the files that it guards, and then lets the others in.
public protocol HeldSharedLock: HeldLock {
  /// True while no other process has a share or can get one, until ``share()`` or `release`.
  var isAlone: Bool { get }
  /// Lets other processes take shares.
  /// - Throws: `.locked` if another process took the lock exclusively in this moment.
  func share() throws(RepositoryError)
  /// Takes the lock alone again if no other process has a share. Otherwise only `release` may follow, since the share is gone.
  /// - Returns: True if this process is alone with the lock.
  func reclaim() -> Bool
}
