// Locks/ holds the locks between processes, and between stores of one process.
// Invariant: a file has one writer, or only writers that share its lock, even if the file has several names (hard links).
// Called by POSIXFileSystem and POSIXFile, for JSONFile, the cache, LarderBlobs and LarderSQLite.

internal import Foundation
internal import Synchronization

/// An open lock file, with the operations that exclusive and shared locks use.
///
/// An `flock` lock belongs to the descriptor. Closing another descriptor of the file does not release an `flock` lock, but would release a
/// POSIX record lock. An `flock` lock ends with the process, even if the process is killed. `flock` does not report the holder of a lock. A
/// registry of this process's own locks lets an opening throw `.alreadyOpen` for a lock of this process and `.locked` for any other lock.
/// The text of the lock file says how the lock's holder uses the lock.
struct LockFile: Sendable {
  /// Lock files and main files that this process has locked, each with ``exclusive`` or its number of shared locks.
  ///
  /// Locks are taken and released while the registry's mutex is held, so that no thread finds a lock without its entry in the registry.
  static let registry = Mutex<[FileIdentity: Int]>([:])
  static let exclusive = -1

  let path: String
  let descriptor: Int32
  let identity: FileIdentity
  /// True if the lock file has only one name (hard link).
  ///
  /// A file with several names may belong to another program. An exclusive lock on a file with several names leaves the text, mode and
  /// owner of the file unchanged. A shared lock refuses a file with several names.
  let hasOneName: Bool

  /// Opens the lock file, and creates it if it is missing.
  ///
  /// - Throws: `.unsupported` if the path leads to anything but a plain file.
  init(opening path: String) throws(RepositoryError) {
    switch SystemCall.uninterrupted({ Int(openLock(path)) }) {
    case .done(let number):
      let descriptor = Int32(number)
      do throws(RepositoryError) {
        let status = try POSIXFile.status(of: descriptor, path)
        // `open` succeeds on a named pipe or a device. Writing the lock file's text to a pipe or a device would reach another program or
        // the device.
        if status.st_mode & S_IFMT != S_IFREG { throw RepositoryError.notAPlainFile(.other, path) }
        (self.path, self.descriptor, identity) = (path, descriptor, FileIdentity(status))
        // The link count is 0 if a holder removed the file after `open` returned. `isInPlace()` later detects a file that was removed.
        hasOneName = status.st_nlink <= 1
        if hasOneName { Self.adopt(descriptor, status: status, path: path) }
      } catch {
        // An initializer that throws leaves no object that could close the descriptor later.
        _ = closeDescriptor(descriptor)
        throw error
      }
    // The system refuses to open a directory for writing (EISDIR), and to open a socket (ENXIO).
    case .failed(EISDIR): throw .notAPlainFile(.directory, path)
    case .failed(ENXIO): throw .notAPlainFile(.other, path)
    case .failed(let number): throw .system("open", number, file: path)
    }
  }

  /// Opens the lock file for one attempt to lock it, and closes the file if the attempt does not get the lock.
  ///
  /// - Parameter attempt: Closure that returns the lock, or `nil` if it did not get the lock.
  static func attempt<Lock>(
    _ path: String, _ attempt: (LockFile) throws(RepositoryError) -> Lock?
  ) throws(RepositoryError) -> Lock? {
    let file = try LockFile(opening: path)
    var isLocked = false
    // A failed attempt closes the descriptor, because a caller that waits for the lock repeats the attempt every 2 ms and would leak a
    // descriptor each time.
    defer { if !isLocked { _ = closeDescriptor(file.descriptor) } }
    let lock = try attempt(file)
    isLocked = lock != nil
    return lock
  }

  /// Changes the owner of a lock file that root has created to the owner of the file's directory.
  ///
  /// If the root process were killed, its lock file would stay behind, and the owner of the directory could not open it.
  private static func adopt(_ descriptor: Int32, status: stat, path: String) {
    var directory = stat()
    guard geteuid() == 0, status.st_uid == 0, stat(PathText.parent(of: path), &directory) == 0, directory.st_uid != 0 else { return }
    _ = fchown(descriptor, directory.st_uid, directory.st_gid)
  }

  /// Takes or changes the lock without waiting for other holders.
  ///
  /// - Returns: True if the lock was taken, `false` if another holder prevents it.
  func takeLock(_ operation: Int32) throws(RepositoryError) -> Bool { try Self.takeLock(operation, descriptor: descriptor, path: path) }

  static func takeLock(_ operation: Int32, descriptor: Int32, path: String) throws(RepositoryError) -> Bool {
    // LOCK_NB makes `flock` return instead of waiting for the lock. Most callers hold the registry's mutex, so a `flock` that waits would
    // block every other lock and unlock of this process.
    try SystemCall.perform("flock", path, accepting: EWOULDBLOCK) { flock(descriptor, operation | LOCK_NB) }
  }

  /// Returns true if the path still leads to this lock file.
  ///
  /// The last holder removes the lock file while it holds the lock. A process that opened the lock file before its removal can lock the
  /// file afterwards, but a lock on a file without a name excludes nobody.
  func isInPlace() throws(RepositoryError) -> Bool {
    var status = stat()
    return try SystemCall.perform("lstat", path, accepting: ENOENT) { lstat(path, &status) } && FileIdentity(status) == identity
  }

  /// Removes the lock file while it is locked, unless somebody has removed or replaced the file by hand.
  func remove() {
    var status = stat()
    if lstat(path, &status) == 0, FileIdentity(status) == identity { unlink(path) }
  }

  /// Sets the mode of the lock file to 0600, because the umask may have narrowed it when the file was created.
  func setMode() { if hasOneName { _ = fchmod(descriptor, 0o600) } }

  /// Releases the lock and closes the lock file.
  ///
  /// A child process may hold a copy of the descriptor between `fork` and `exec`. While a child process has a copy open, closing the
  /// descriptor alone does not release the lock, so the lock is released explicitly.
  func close() {
    Self.unlock(descriptor)
    _ = closeDescriptor(descriptor)
  }

  static func unlock(_ descriptor: Int32) { _ = flock(descriptor, LOCK_UN) }
}

// O_NONBLOCK keeps `open` from blocking if a named pipe is at the path of the lock file.
private func openLock(_ path: String) -> Int32 { open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600) }

extension RepositoryError {
  /// Returns the error for a file that this process has open already, often because a view opens its store each time the view is created.
  static func openInThisProcess(_ path: String) -> RepositoryError {
    RepositoryError(
      .alreadyOpen,
      "this process has the file open, maybe by another name: open it once, and hand the repository to all code that needs it; close it before it is "
        + "opened again", file: path)
  }
}

/// The text in a lock file: the process that holds the lock, and how that process uses the lock.
struct LockNote {
  /// The way in which a holder uses its lock: exclusive, shared, or held alone while the holder opens or closes a shared store.
  enum Use: String {
    case exclusive = ""
    case opening, shared, closing
  }

  /// Process id of the lock's holder, or `nil` if the text of the lock file has none.
  var process: pid_t?
  /// Use of the lock, or `nil` if the lock file's text is empty, because its holder has not written the text yet or could not write it.
  var use: Use?

  /// Description of the lock's holder for an error message.
  var holder: String {
    // A shared lock has many holders, and the text of the lock file names only the process that wrote the text.
    if use == .shared { return "other processes share the store" }
    return process.map { "process \($0) holds the lock" } ?? "another process holds the lock"
  }
}

extension LockFile {
  /// Writes this process's id and its use of the lock into the lock file.
  ///
  /// An exclusive lock works without a text in the lock file. A shared lock needs the text, because other processes take a shared lock only
  /// if the text says "shared". `write` does not change a file with several names (hard links).
  ///
  /// - Returns: The `errno` of the call that failed, or `nil` on success.
  @discardableResult
  func write(_ use: LockNote.Use) -> Int32? {
    // A file with several names may belong to another program, and its contents must not be overwritten.
    guard hasOneName else { return nil }
    let text = use == .exclusive ? "\(getpid())\n" : "\(getpid()) \(use.rawValue)\n"
    // Without `ftruncate`, a shorter text would leave the end of the longer old text in the file.
    guard ftruncate(descriptor, 0) == 0 else { return errno }
    return Array(text.utf8).withUnsafeBytes { bytes in
      SystemCall.writeAll(bytes, at: 0) { piece, offset in
        SystemCall.uninterrupted { pwrite(descriptor, piece.baseAddress, piece.count, off_t(offset)) }
      }
    }
  }

  /// The text in the lock file, read from the file at each access.
  var note: LockNote {
    // The longest text has 19 bytes: a process id of ten digits, a space, seven letters of the use, and a line feed.
    var bytes = [UInt8](repeating: 0, count: 32)
    let count = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
    // A lock file's text without a line feed is incomplete, because its writer is still writing it or was killed.
    guard count > 0, let end = bytes.prefix(count).firstIndex(of: UInt8(ascii: "\n")) else { return LockNote() }
    let words = String(decoding: bytes[..<end], as: UTF8.self).split(separator: " ")
    return LockNote(
      process: words.first.flatMap { pid_t($0) },
      use: words.count == 1 ? .exclusive : words.last.flatMap { LockNote.Use(rawValue: String($0)) })
  }
}
