internal import Foundation
internal import Synchronization

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// The steps that exclusive and shared locks are made of.
enum LockFile {
  /// The files that this process has locked, lock files and main files: ``exclusive``, or how often it takes part.
  ///
  /// Taking and releasing happen under this mutex, so neither sees the other half done.
  static let registry = Mutex<[FileIdentity: Int]>([:])
  static let exclusive = -1

  static func open(_ path: String) throws(RepositoryError) -> Int32 {
    switch SystemCall.uninterrupted({ Int(openLock(path)) }) {
    case .done(let number):
      let descriptor = Int32(number)
      do throws(RepositoryError) {
        let status = try POSIXFile.status(of: descriptor, path)
        if status.st_mode & S_IFMT != S_IFREG { throw RepositoryError.notAPlainFile(.other, path) }
        adopt(descriptor, status, path)
        return descriptor
      } catch {
        _ = closeDescriptor(descriptor)
        throw error
      }
    case .failed(EISDIR): throw .notAPlainFile(.directory, path)
    case .failed(ENXIO): throw .notAPlainFile(.other, path)
    case .failed(let number): throw .system("open", number, file: path)
    }
  }

  /// Gives a lock file that root has made to the owner of its directory, who could not open it if root were killed.
  private static func adopt(_ descriptor: Int32, _ status: stat, _ path: String) {
    var directory = stat()
    guard geteuid() == 0, status.st_uid == 0, stat(PathText.parent(of: path), &directory) == 0, directory.st_uid != 0 else { return }
    _ = fchown(descriptor, directory.st_uid, directory.st_gid)
  }

  /// Takes or changes the lock without waiting; `false` when others are in the way.
  static func take(_ operation: Int32, _ descriptor: Int32, _ path: String) throws(RepositoryError) -> Bool {
    switch SystemCall.uninterrupted({ Int(flock(descriptor, operation | LOCK_NB)) }) {
    case .done: return true
    case .failed(EWOULDBLOCK): return false
    case .failed(let number): throw .system("flock", number, file: path)
    }
  }

  /// Gives the lock up before its descriptor is closed: a program that is being started may hold a copy of the descriptor for a moment.
  static func unlock(_ descriptor: Int32) { _ = flock(descriptor, LOCK_UN) }

  /// Returns what the name stands for now; `nil` when it is gone.
  static func identity(ofEntry path: String) throws(RepositoryError) -> FileIdentity? {
    var status = stat()
    switch SystemCall.uninterrupted({ Int(lstat(path, &status)) }) {
    case .done: return FileIdentity(status)
    case .failed(ENOENT): return nil
    case .failed(let number): throw .system("lstat", number, file: path)
    }
  }

  /// Removes the file while it is locked, and only if the name still means it: someone may have removed it by hand meanwhile.
  static func remove(_ path: String, _ identity: FileIdentity) {
    var status = stat()
    if lstat(path, &status) == 0, FileIdentity(status) == identity { unlink(path) }
  }

  // MARK: What the file says

  /// What the last one who was alone with the lock was doing.
  enum Use: String {
    case exclusive = ""
    case opening, shared, closing
  }

  struct Note {
    var process: pid_t?
    /// `nil` where nothing can be read: whoever has just taken the lock has not written yet.
    var use: Use?

    /// Who is in the way, in words.
    var holder: String {
      if use == .shared { return "other processes share the store" }
      return process.map { "process \($0) holds the lock" } ?? "another process holds the lock"
    }
  }

  /// Writes this process's id and what it does, for others to read.
  ///
  /// An exclusive lock does not depend on it. A shared one does, so the caller learns which error there was, if any.
  @discardableResult
  static func write(_ use: Use, to descriptor: Int32) -> Int32? {
    let text = use == .exclusive ? "\(getpid())\n" : "\(getpid()) \(use.rawValue)\n"
    guard ftruncate(descriptor, 0) == 0 else { return errno }
    return Array(text.utf8).withUnsafeBytes { bytes in
      SystemCall.writeAll(bytes, at: 0) { piece, offset in
        SystemCall.uninterrupted { pwrite(descriptor, piece.baseAddress, piece.count, off_t(offset)) }
      }
    }
  }

  /// Reads what is written there.
  static func note(in descriptor: Int32) -> Note {
    var bytes = [UInt8](repeating: 0, count: 32)
    let count = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
    guard count > 0, let end = bytes.prefix(count).firstIndex(of: UInt8(ascii: "\n")) else { return Note(process: nil, use: nil) }
    let words = String(decoding: bytes[..<end], as: UTF8.self).split(separator: " ")
    return Note(
      process: words.first.flatMap { pid_t($0) }, use: words.count == 1 ? .exclusive : words.last.flatMap { Use(rawValue: String($0)) })
  }
}

// A method named `open` hides the function of that name.
private func openLock(_ path: String) -> Int32 { open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600) }
