// FileSystem/ is the only folder of the module Larder that calls the operating system's file functions.
// Invariant: every failure is a typed error that names its file, and a missing file is nil.
// Called by JSONFile/, Engine/ and Cache/, and by the modules LarderSQLite and LarderBlobs.
// Foundation re-exports the platform's C library everywhere, so the folder needs no conditional imports.

public import Foundation

/// The file operations that a durable file format needs, as a protocol so that tests can simulate crashes and faults.
///
/// Stores use ``POSIXFileSystem`` unless you pass another file system. In tests, use `SimulatedFileSystem` of `LarderTesting`, which drops
/// unsynced data when it simulates a crash:
///
/// ```swift
/// let backend = JSONFileBackend(file: url, fileSystem: SimulatedFileSystem())
/// ```
///
/// To replace a file durably, make these calls in order: ``create(_:)`` under a temporary name, writes to the new file,
/// ``OpenFile/sync()``, ``rename(_:to:)``, ``syncDirectory(_:)``.
///
/// All file operations are synchronous and may block: call them from a store's executor. All paths are absolute. Symbolic links are not
/// followed. Operations that open a file or return its status return `nil` if the file is missing. Every failed system call is thrown as a
/// ``RepositoryError`` that names the path: `.protectedDataUnavailable` for EACCES and EPERM, `.full` for ENOSPC, EDQUOT and EFBIG,
/// `.unsupported` for ELOOP, and `.inputOutput` for other errors. The underlying error of such a ``RepositoryError`` is a
/// ``SystemCallError``.
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
  /// Opens an existing file for reading, or for reading and writing, or returns `nil` if there is no file.
  ///
  /// `open(_:writable:)` never blocks, not even on a named pipe.
  ///
  /// - Throws: `.unsupported` if the path leads to anything but a plain file.
  func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)?
  /// Returns the status of the file at a path, without following a link, or `nil` if there is no file.
  ///
  /// Return the status without opening the file if the file system can. The default implementation opens the file to read its status.
  func status(of path: String) throws(RepositoryError) -> FileStatus?
  /// Creates a file that must not exist yet, open for reading and writing, with mode 0600 regardless of the umask.
  func create(_ path: String) throws(RepositoryError) -> any OpenFile
  /// Renames a file within its directory, and replaces a file that already has the new name.
  ///
  /// The rename of the file is durable after ``syncDirectory(_:)``.
  func rename(_ path: String, to newPath: String) throws(RepositoryError)
  /// Removes a file, or does nothing if there is no file.
  ///
  /// The removal of the file is durable after ``syncDirectory(_:)``.
  func remove(_ path: String) throws(RepositoryError)
  /// Creates a directory and its missing parents durably, with mode 0700 regardless of the umask.
  func createDirectory(_ path: String) throws(RepositoryError)
  /// Makes the entries of a directory durable: the names of its files, and renames and removals among them.
  func syncDirectory(_ path: String) throws(RepositoryError)
  /// Returns the names in a directory, in no particular order, or `nil` if there is no such directory.
  func entries(of directory: String) throws(RepositoryError) -> [String]?
  /// Takes the exclusive lock of a lock file without waiting, and creates the lock file if it is missing.
  ///
  /// - Throws: `.alreadyOpen` if this process holds the lock, `.locked` if another process holds it.
  func lock(_ path: String) throws(RepositoryError) -> any HeldLock
  /// Takes a share in (a shared lock of) a lock file, and creates the lock file if it is missing.
  ///
  /// Several processes can have a share at the same time, but no process while another holds the lock by ``lock(_:)``. While another
  /// process has the lock exclusively, `lockShared` waits for at most `timeout`.
  ///
  /// - Throws: `.alreadyOpen` if this process holds the lock by ``lock(_:)``, `.locked` if another process holds it, `.unsupported` if the
  ///   file system has no shared locks. The default implementation throws `.unsupported`.
  func lockShared(_ path: String, waiting timeout: Duration) throws(RepositoryError) -> any HeldSharedLock
}

extension FileSystem {
  /// Returns the status of a file by opening the file, for a file system that cannot return the status of a path.
  public func status(of path: String) throws(RepositoryError) -> FileStatus? {
    guard let file = try open(path, writable: false) else { return nil }
    let status = try file.status()
    // The file is closed explicitly, because an error of closing would be lost when the last reference is released.
    try file.close()
    return status
  }

  /// Throws `.unsupported`, for a file system that has no shared locks.
  public func lockShared(_ path: String, waiting timeout: Duration) throws(RepositoryError) -> any HeldSharedLock {
    throw RepositoryError(.unsupported, "this file system has no locks that can be shared", file: path)
  }
}

extension FileSystem {
  /// Returns the bytes of a file, or `nil` if there is no file.
  ///
  /// - Parameters:
  ///   - limit: Largest number of bytes to read from the beginning of the file.
  ///   - isSynced: True to sync the file first, so that no power cut can take the returned bytes away.
  func contents(of path: String, limit: Int = .max, syncingFirst isSynced: Bool = false) throws(RepositoryError) -> Data? {
    guard let file = try open(path, writable: false) else { return nil }
    // A read of a file also returns bytes that were written without a sync. Without the sync before the read, a power cut could remove
    // bytes that the caller has already used.
    if isSynced { try file.sync() }
    let data = try file.read(at: 0, count: min(file.size(), limit))
    try file.close()
    return data
  }
}

extension FileSystem {
  /// Creates an empty file that no path leads to, with the attributes of another file.
  ///
  /// - Parameter path: Path that the file has for a moment. If a process is killed in that moment, an empty file stays there.
  package func createScratchFile(at path: String, like other: (any OpenFile)?) throws(RepositoryError) -> any OpenFile {
    try remove(path)
    let file = try create(path)
    try remove(path)
    if let other { try file.copyAttributes(of: other) }
    return file
  }
}

/// An open file, which is closed by ``close()`` or when its last reference is released.
public protocol OpenFile: AnyObject, Sendable {
  /// Path at which the file was opened.
  ///
  /// A later rename of the file does not change this path.
  var path: String { get }
  /// Returns the present status of the open file, also if the file was renamed.
  ///
  /// The default implementation returns a status without identity.
  func status() throws(RepositoryError) -> FileStatus
  /// Locks the file under all its names until the file is closed, without waiting for another holder.
  ///
  /// The default implementation locks nothing.
  ///
  /// - Throws: `.alreadyOpen` if this process has locked the file, `.locked` if another process has.
  func lock() throws(RepositoryError)
  /// Sets the owner of the file as far as this process may.
  ///
  /// If the process may not set the owner, `setOwner` does nothing and throws no error. The default implementation sets no owner.
  func setOwner(_ owner: FileOwner) throws(RepositoryError)
  /// Copies the attributes that an app has set on another file, as far as this process may set them.
  ///
  /// The copied attributes are the extended attributes and, on Apple platforms, the data protection class. The default implementation
  /// copies nothing.
  func copyAttributes(of file: any OpenFile) throws(RepositoryError)
  /// Returns the size of the file in bytes.
  func size() throws(RepositoryError) -> Int
  /// Returns the permission bits of the file.
  func mode() throws(RepositoryError) -> UInt16
  /// Sets the permission bits of the file.
  func setMode(_ mode: UInt16) throws(RepositoryError)
  /// Reads up to `count` bytes of the file at an offset.
  ///
  /// The result is shorter than `count` only if the file ends earlier.
  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data
  /// Writes all bytes to the file at an offset, and grows the file if the bytes end behind its end.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError)
  /// Grows the file by a range at its end that reads as zero bytes and has space on the disk.
  ///
  /// If a part of the range already exists in the file, the bytes of that part must be zero. An implementation may write zeros over the
  /// existing part again. If `allocate` fails, a part of the range may be allocated. The default implementation writes zero bytes.
  func allocate(_ range: Range<Int>) throws(RepositoryError)
  /// Shortens the file to `size` bytes and returns the space behind them to the system.
  ///
  /// A power cut may bring the old size back, with the old bytes. A format must therefore stay readable with these old bytes. The default
  /// implementation does not shorten the file, so that the space stays in use.
  func cut(to size: Int) throws(RepositoryError)
  /// Makes contents and size of the file durable, so that a power cut cannot remove them.
  ///
  /// After a failed sync the contents on the disk are unknown, and a later sync that succeeds proves nothing about them.
  func sync() throws(RepositoryError)
  /// Makes contents and size of the file reach the medium before all later writes, by a write barrier.
  ///
  /// Until the next ``sync()``, a power cut may still remove contents that `order()` has ordered. After a failed `order()` the contents on
  /// the disk are unknown, as after a failed ``sync()``. The default implementation syncs the file.
  func order() throws(RepositoryError)
  /// Closes the file.
  ///
  /// After `close`, every other method of the file fails, and a second `close` does nothing.
  func close() throws(RepositoryError)
}

extension OpenFile {
  /// Returns a status with size and mode only, for a file system that has no identities.
  public func status() throws(RepositoryError) -> FileStatus { FileStatus(identity: nil, size: try size(), mode: try mode()) }
  /// Writes zero bytes to the range, 128 KiB at a time.
  public func allocate(_ range: Range<Int>) throws(RepositoryError) { try writeZeros(range) }
  /// Writes zero bytes to the range, 128 KiB at a time.
  func writeZeros(_ range: Range<Int>) throws(RepositoryError) {
    // The zeros are written in pieces of 128 KiB to bound the memory: a range can be a sixteenth of a large journal.
    let zeros = [UInt8](repeating: 0, count: min(128 << 10, range.count))
    for start in stride(from: range.lowerBound, to: range.upperBound, by: 128 << 10) {
      let count = min(zeros.count, range.upperBound - start)
      try zeros.lending { bytes throws(RepositoryError) in try write(UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: start) }
    }
  }
  /// Does not shorten the file, whose space stays in use, for a file system that cannot shorten files.
  public func cut(to size: Int) throws(RepositoryError) {}
  /// Syncs the file, for a file system that has no write barriers.
  public func order() throws(RepositoryError) { try sync() }
  /// Locks nothing, for a file system that has no locks on open files.
  public func lock() throws(RepositoryError) {}
  /// Sets no owner, for a file system that has no owners.
  public func setOwner(_ owner: FileOwner) throws(RepositoryError) {}
  /// Copies nothing, for a file system that has no extended attributes.
  public func copyAttributes(of file: any OpenFile) throws(RepositoryError) {}
}

/// A lock that is held until ``release()`` is called.
public protocol HeldLock: AnyObject, Sendable {
  /// Releases the lock, and removes the lock file unless another holder has a share in the lock.
  ///
  /// A second call of `release` does nothing.
  func release()
}

/// A share in a lock that several processes can hold at once.
///
/// The first process that takes the lock has it exclusively. The first process prepares the files that the lock guards, and then calls
/// ``share()`` to let other processes take shares.
public protocol HeldSharedLock: HeldLock {
  /// True while this process has the lock exclusively, until ``share()`` or `release` is called.
  var isAlone: Bool { get }
  /// Lets other processes take shares in the lock.
  ///
  /// - Throws: `.locked` if another process took the lock exclusively while `share()` changed the lock from exclusive to shared.
  func share() throws(RepositoryError)
  /// Makes the lock exclusive again, if no other process has a share.
  ///
  /// If `reclaim` returns `false`, the share of this process may be lost, so the caller may only call `release`.
  ///
  /// - Returns: True if this process has the lock exclusively.
  func reclaim() -> Bool
}
