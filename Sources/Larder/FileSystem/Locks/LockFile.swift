// Locks/ holds the locks between processes, and between stores of one process.
// Invariant: a file has one writer, or only writers that share it, under all its names.
// Called by JSONFile, LarderBlobs and LarderSQLite.

internal import Foundation
internal import Synchronization

/// An open lock file, with the steps that exclusive and shared locks are made of.
///
/// `flock` belongs to the descriptor. Unlike with POSIX record locks, no `close` of another descriptor drops it, and it ends with the
/// process, however that ends. It does not name its holder. A registry in this process therefore distinguishes `.alreadyOpen` from
/// `.locked`, and the text of the file says how its holder uses the lock.
struct LockFile: Sendable {
  /// Lock files and main files that this process has locked: ``exclusive``, or the number of shares.
  ///
  /// Locks are taken and released under this mutex, so that no thread sees a lock without its entry.
  static let registry = Mutex<[FileIdentity: Int]>([:])
  static let exclusive = -1

  let path: String
  let descriptor: Int32
  let identity: FileIdentity
  /// True if the file has only one name.
  ///
  /// A file with several may belong to another program: it is locked, but not written or given away.
  let hasOneName: Bool

  /// Opens the lock file, and creates it if it is missing.
  /// - Throws: `.unsupported` for anything but a plain file.
  init(opening path: String) throws(RepositoryError) {
    switch SystemCall.uninterrupted({ Int(openLock(path)) }) {
    case .done(let number):
      let descriptor = Int32(number)
      do throws(RepositoryError) {
        let status = try POSIXFile.status(of: descriptor, path)
        // A named pipe or device can be opened, and must not be written to.
        if status.st_mode & S_IFMT != S_IFREG { throw RepositoryError.notAPlainFile(.other, path) }
        (self.path, self.descriptor, identity) = (path, descriptor, FileIdentity(status))
        hasOneName = status.st_nlink <= 1
        if hasOneName { Self.adopt(descriptor, status: status, path: path) }
      } catch {
        _ = closeDescriptor(descriptor)
        throw error
      }
    case .failed(EISDIR): throw .notAPlainFile(.directory, path)
    case .failed(ENXIO): throw .notAPlainFile(.other, path)
    case .failed(let number): throw .system("open", number, file: path)
    }
  }

  /// Opens the lock file for one attempt to lock it, and closes it again if the attempt fails.
  /// - Parameter attempt: Returns `nil` if it did not get the lock.
  static func attempt<Lock>(
    _ path: String, _ attempt: (LockFile) throws(RepositoryError) -> Lock?
  ) throws(RepositoryError) -> Lock? {
    let file = try LockFile(opening: path)
    var isLocked = false
    // A descriptor that stays open would leak with every round of a wait.
    defer { if !isLocked { _ = closeDescriptor(file.descriptor) } }
    let lock = try attempt(file)
    isLocked = lock != nil
    return lock
  }

  /// Gives a lock file that root has created to the owner of its directory, who could not open it if root were killed.
  private static func adopt(_ descriptor: Int32, status: stat, path: String) {
    var directory = stat()
    guard geteuid() == 0, status.st_uid == 0, stat(PathText.parent(of: path), &directory) == 0, directory.st_uid != 0 else { return }
    _ = fchown(descriptor, directory.st_uid, directory.st_gid)
  }

  /// Takes or changes the lock without waiting.
  /// - Returns: True if it was taken, `false` if other holders prevent it.
  func takeLock(_ operation: Int32) throws(RepositoryError) -> Bool { try Self.takeLock(operation, descriptor: descriptor, path: path) }

  static func takeLock(_ operation: Int32, descriptor: Int32, path: String) throws(RepositoryError) -> Bool {
    try SystemCall.perform("flock", path, accepting: EWOULDBLOCK) { flock(descriptor, operation | LOCK_NB) }
  }

  /// True if the path still leads to this file.
  ///
  /// The last holder removes the file while it has the lock, so a file that was locked may have no name.
  func isInPlace() throws(RepositoryError) -> Bool {
    var status = stat()
    return try SystemCall.perform("lstat", path, accepting: ENOENT) { lstat(path, &status) } && FileIdentity(status) == identity
  }

  /// Removes the lock file while it is locked, unless somebody has removed or replaced it by hand.
  func remove() {
    var status = stat()
    if lstat(path, &status) == 0, FileIdentity(status) == identity { unlink(path) }
  }

  /// Sets the mode to 0600, which the umask may have narrowed when the file was created.
  func setMode() { if hasOneName { _ = fchmod(descriptor, 0o600) } }

  /// Releases the lock and closes the file.
  ///
  /// A child process may hold a copy of the descriptor between `fork` and `exec`, so that closing alone would not release the lock.
  func close() {
    Self.unlock(descriptor)
    _ = closeDescriptor(descriptor)
  }

  static func unlock(_ descriptor: Int32) { _ = flock(descriptor, LOCK_UN) }
}

// A method named `open` hides the C function of that name. O_NONBLOCK keeps a named pipe from blocking the call.
private func openLock(_ path: String) -> Int32 { open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600) }

extension RepositoryError {
  /// The error for a file that this process has open already, often because a view opens its store each time it is made.
  static func openInThisProcess(_ path: String) -> RepositoryError {
    RepositoryError(
      .alreadyOpen,
      "this process has the file open, maybe by another name: open it once, and hand the repository to all code that needs it; close it before it is "
        + "opened again", file: path)
  }
}

/// The text in a lock file: the process that holds the lock, and how it uses the lock.
struct LockNote {
  /// The use of a lock by its holder.
  enum Use: String {
    case exclusive = ""
    case opening, shared, closing
  }

  var process: pid_t?
  /// `nil` if the text is empty, as when the holder has just taken the lock and not written yet.
  var use: Use?

  /// Description of the holder for an error message.
  var holder: String {
    if use == .shared { return "other processes share the store" }
    return process.map { "process \($0) holds the lock" } ?? "another process holds the lock"
  }
}

extension LockFile {
  /// Writes this process's id and its use of the lock into the file.
  ///
  /// An exclusive lock works without this text, a shared one does not. Does nothing to a file with several names.
  /// - Returns: The `errno` of the call that failed, if one did.
  @discardableResult
  func write(_ use: LockNote.Use) -> Int32? {
    guard hasOneName else { return nil }
    let text = use == .exclusive ? "\(getpid())\n" : "\(getpid()) \(use.rawValue)\n"
    // A shorter text over a longer one would leave the end of the old one behind.
    guard ftruncate(descriptor, 0) == 0 else { return errno }
    return Array(text.utf8).withUnsafeBytes { bytes in
      SystemCall.writeAll(bytes, at: 0) { piece, offset in
        SystemCall.uninterrupted { pwrite(descriptor, piece.baseAddress, piece.count, off_t(offset)) }
      }
    }
  }

  /// The text that the lock file holds now.
  var note: LockNote {
    var bytes = [UInt8](repeating: 0, count: 32)
    let count = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
    // A text without its line feed is still being written.
    guard count > 0, let end = bytes.prefix(count).firstIndex(of: UInt8(ascii: "\n")) else { return LockNote() }
    let words = String(decoding: bytes[..<end], as: UTF8.self).split(separator: " ")
    return LockNote(
      process: words.first.flatMap { pid_t($0) },
      use: words.count == 1 ? .exclusive : words.last.flatMap { LockNote.Use(rawValue: String($0)) })
  }
}
