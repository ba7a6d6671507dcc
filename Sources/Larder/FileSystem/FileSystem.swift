// FileSystem/ is the only room that talks to the operating system's files.
// Invariant: every failure is typed and names its file; absence is nil. Called by JSONFile/ and by other backends' locks.

public import Foundation

/// The operations that a durable file format needs: the seam at which crashes and faults are simulated.
///
/// All calls are synchronous and may block: call them from a store's executor. Paths are absolute. Symbolic links are not followed.
/// A missing file is `nil`; every failure is a ``RepositoryError`` that names the path: `.protectedDataUnavailable` for EACCES and EPERM,
/// `.full` for ENOSPC, EDQUOT and EFBIG, `.inputOutput` for the rest, each with the ``SystemCallError`` underneath.
public protocol FileSystem: Sendable {
  /// Opens an existing file for reading, or for reading and writing; `nil` when there is none.
  ///
  /// Never waits, whatever stands there.
  /// - Throws: `.unsupported` for anything but a plain file.
  func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)?
  /// Returns what stands at a path, without opening it and without following a link; `nil` when nothing does.
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
  /// The names in a directory, in no particular order; `nil` when there is no such directory.
  func entries(of directory: String) throws(RepositoryError) -> [String]?
  /// Takes the exclusive lock that this file stands for, creating the file; never waits.
  /// - Throws: `.alreadyOpen` when this process holds it, `.locked` when another one does.
  func lock(_ path: String) throws(RepositoryError) -> any HeldLock
  /// Takes part in the lock that this file stands for, creating the file: with others who do so too, and with nobody who calls ``lock(_:)``.
  ///
  /// Waits, at most as long as it is told, while another one who takes part is alone with it.
  /// - Throws: `.alreadyOpen` when this process holds it by ``lock(_:)``, `.locked` when another one does; `.unsupported` where locks cannot
  ///   be shared, as by default.
  func lockShared(_ path: String, waiting timeout: Duration) throws(RepositoryError) -> any HeldSharedLock
}

extension FileSystem {
  /// Asks the file, once it is open: a file system of one's own need not tell without.
  public func status(of path: String) throws(RepositoryError) -> FileStatus? {
    guard let file = try open(path, writable: false) else { return nil }
    let status = try file.status()
    try file.close()
    return status
  }

  /// Refuses: a file system of one's own need not have locks that can be shared.
  public func lockShared(_ path: String, waiting timeout: Duration) throws(RepositoryError) -> any HeldSharedLock {
    throw RepositoryError(.unsupported, "this file system has no locks that can be shared", file: path)
  }
}

/// A file that is open; closed when it is released, at the latest.
public protocol OpenFile: AnyObject, Sendable {
  /// The path it was opened at.
  var path: String { get }
  /// Returns what the file system says of the file now, whatever name it has by now; without an identity by default.
  func status() throws(RepositoryError) -> FileStatus
  /// Locks the file itself, whatever its names, until it is closed; never waits. By default nothing is locked.
  ///
  /// - Throws: `.alreadyOpen` when this process has locked it, `.locked` when another one has.
  func lock() throws(RepositoryError)
  /// Gives the file to an owner as far as this process may, which is no error where it may not. By default nothing is done.
  func setOwner(_ owner: FileOwner) throws(RepositoryError)
  /// Its size in bytes.
  func size() throws(RepositoryError) -> Int
  /// Its permission bits.
  func mode() throws(RepositoryError) -> UInt16
  /// Sets its permission bits.
  func setMode(_ mode: UInt16) throws(RepositoryError)
  /// Reads up to `count` bytes at an offset; fewer only at the end of the file.
  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data
  /// Writes all the bytes at an offset, growing the file where needed.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError)
  /// Gives the space behind an offset back. By default nothing is done, and the space stays in use.
  ///
  /// A power cut may bring the old size back, with the bytes that were there; they are zero bytes wherever a format uses this.
  func cut(to size: Int) throws(RepositoryError)
  /// Makes contents and size survive power loss. After a failure the contents are unknown: a second call proves nothing.
  func sync() throws(RepositoryError)
  /// Closes the file; later calls fail. The second call does nothing.
  func close() throws(RepositoryError)
}

extension OpenFile {
  /// Tells size and mode: a file system of one's own need not tell files apart.
  public func status() throws(RepositoryError) -> FileStatus { FileStatus(identity: nil, size: try size(), mode: try mode()) }
  /// Leaves the size as it is.
  public func cut(to size: Int) throws(RepositoryError) {}
  /// Locks nothing.
  public func lock() throws(RepositoryError) {}
  /// Does nothing.
  public func setOwner(_ owner: FileOwner) throws(RepositoryError) {}
}

/// A lock that is held until it is released.
public protocol HeldLock: AnyObject, Sendable {
  /// Gives the lock up and removes its file. The second call does nothing.
  func release()
}

/// A part in a lock that others may hold too.
///
/// Whoever finds nobody else begins alone, prepares what the lock guards, and then lets the others in.
public protocol HeldSharedLock: HeldLock {
  /// Whether nobody else takes part, nor can, until ``share()`` or `release`.
  var isAlone: Bool { get }
  /// Lets others take part.
  /// - Throws: `.locked` when somebody took the lock for himself in this moment.
  func share() throws(RepositoryError)
  /// Becomes alone again if nobody else takes part; else gives the part up, and only `release` may follow.
  func reclaim() -> Bool
}
