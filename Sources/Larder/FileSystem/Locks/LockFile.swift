internal import Foundation
internal import Synchronization

/// An open lock file, and the steps that exclusive and shared locks are made of.
///
/// `flock` belongs to the descriptor: no `close` of another one drops it, unlike POSIX record locks, and it ends with the process however
/// that ends. It does not say who holds it, so a registry of this process tells `.alreadyOpen` from `.locked`, and the file says what its
/// holder does.
struct LockFile: Sendable {
  /// The files that this process has locked, lock files and main files: ``exclusive``, or the number of shares that it has.
  ///
  /// Taking and releasing happen under this mutex, so neither sees the other half done.
  static let registry = Mutex<[FileIdentity: Int]>([:])
  static let exclusive = -1

  let path: String
  let descriptor: Int32
  let identity: FileIdentity
  /// Whether the file has one name: what is behind several is somebody else's too, and is locked but neither written nor given away.
  let hasOneName: Bool

  /// Opens the file, and creates it if it is missing.
  /// - Throws: `.unsupported` for anything but a plain file.
  init(opening path: String) throws(RepositoryError) {
    switch SystemCall.uninterrupted({ Int(openLock(path)) }) {
    case .done(let number):
      let descriptor = Int32(number)
      do throws(RepositoryError) {
        let status = try POSIXFile.status(of: descriptor, path)
        if status.st_mode & S_IFMT != S_IFREG { throw RepositoryError.notAPlainFile(.other, path) }
        (self.path, self.descriptor, identity) = (path, descriptor, FileIdentity(status))
        hasOneName = status.st_nlink <= 1
        if hasOneName { Self.adopt(descriptor, status, path) }
      } catch {
        _ = closeDescriptor(descriptor)
        throw error
      }
    case .failed(EISDIR): throw .notAPlainFile(.directory, path)
    case .failed(ENXIO): throw .notAPlainFile(.other, path)
    case .failed(let number): throw .system("open", number, file: path)
    }
  }

  /// Opens the file for an attempt to lock it, and closes it again unless the attempt succeeds.
  /// - Parameter attempt: Returns `nil` when it did not get the lock.
  static func attempt<Lock>(
    _ path: String, _ attempt: (LockFile) throws(RepositoryError) -> Lock?
  ) throws(RepositoryError) -> Lock? {
    let file = try LockFile(opening: path)
    var isLocked = false
    defer { if !isLocked { _ = closeDescriptor(file.descriptor) } }
    let lock = try attempt(file)
    isLocked = lock != nil
    return lock
  }

  /// Gives a lock file that root has made to the owner of its directory, who could not open it if root were killed.
  private static func adopt(_ descriptor: Int32, _ status: stat, _ path: String) {
    var directory = stat()
    guard geteuid() == 0, status.st_uid == 0, stat(PathText.parent(of: path), &directory) == 0, directory.st_uid != 0 else { return }
    _ = fchown(descriptor, directory.st_uid, directory.st_gid)
  }

  /// Takes or changes the lock without waiting.
  /// - Returns: Whether it was taken; `false` when others are in the way.
  func take(_ operation: Int32) throws(RepositoryError) -> Bool { try Self.take(operation, descriptor, path) }

  static func take(_ operation: Int32, _ descriptor: Int32, _ path: String) throws(RepositoryError) -> Bool {
    try SystemCall.perform("flock", path, accepting: EWOULDBLOCK) { flock(descriptor, operation | LOCK_NB) }
  }

  /// Whether the name still means this file: the last holder removes it while it has the lock, so a file that was locked may have no name.
  func isInPlace() throws(RepositoryError) -> Bool {
    var status = stat()
    return try SystemCall.perform("lstat", path, accepting: ENOENT) { lstat(path, &status) } && FileIdentity(status) == identity
  }

  /// Removes the file while it is locked, if the name still means it: it may have been removed by hand meanwhile.
  func remove() {
    var status = stat()
    if lstat(path, &status) == 0, FileIdentity(status) == identity { unlink(path) }
  }

  /// Sets the mode to 0600, which it has but for the umask.
  func setMode() { if hasOneName { _ = fchmod(descriptor, 0o600) } }

  /// Gives the lock up, and closes the file.
  ///
  /// A program that is being started may hold a copy of the descriptor for a moment, so closing alone would not do.
  func close() {
    Self.unlock(descriptor)
    _ = closeDescriptor(descriptor)
  }

  static func unlock(_ descriptor: Int32) { _ = flock(descriptor, LOCK_UN) }
}

// A method named `open` hides the function of that name.
private func openLock(_ path: String) -> Int32 { open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600) }

extension RepositoryError {
  /// The error for a file that this process has open: usually a view that opens its store each time it is made.
  static func openInThisProcess(_ path: String) -> RepositoryError {
    RepositoryError(
      .alreadyOpen,
      "this process has the file open, maybe by another name: open it once, and hand the repository to whatever needs it; close it before it is "
        + "opened again", file: path)
  }
}

/// The text in a lock file: which process holds the lock, and what for.
struct LockNote {
  /// The use that the holder makes of the lock.
  enum Use: String {
    case exclusive = ""
    case opening, shared, closing
  }

  var process: pid_t?
  /// `nil` where nothing can be read: the holder has just taken the lock and not written yet.
  var use: Use?

  /// The holder in words, for an error.
  var holder: String {
    if use == .shared { return "other processes share the store" }
    return process.map { "process \($0) holds the lock" } ?? "another process holds the lock"
  }
}

extension LockFile {
  /// Writes this process's id and the use, for others to read.
  ///
  /// An exclusive lock does not depend on it; a shared one does. Does nothing to a file with several names.
  /// - Returns: The `errno` of the call that failed, if one did.
  @discardableResult
  func write(_ use: LockNote.Use) -> Int32? {
    guard hasOneName else { return nil }
    let text = use == .exclusive ? "\(getpid())\n" : "\(getpid()) \(use.rawValue)\n"
    guard ftruncate(descriptor, 0) == 0 else { return errno }
    return Array(text.utf8).withUnsafeBytes { bytes in
      SystemCall.writeAll(bytes, at: 0) { piece, offset in
        SystemCall.uninterrupted { pwrite(descriptor, piece.baseAddress, piece.count, off_t(offset)) }
      }
    }
  }

  /// The note that the file holds now.
  var note: LockNote {
    var bytes = [UInt8](repeating: 0, count: 32)
    let count = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
    guard count > 0, let end = bytes.prefix(count).firstIndex(of: UInt8(ascii: "\n")) else { return LockNote() }
    let words = String(decoding: bytes[..<end], as: UTF8.self).split(separator: " ")
    return LockNote(
      process: words.first.flatMap { pid_t($0) },
      use: words.count == 1 ? .exclusive : words.last.flatMap { LockNote.Use(rawValue: String($0)) })
  }
}
