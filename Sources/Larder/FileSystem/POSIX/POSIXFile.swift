internal import CLarderFiles
internal import Foundation
internal import Synchronization

/// An open file of the operating system.
///
/// A mutex guards every use of the descriptor and its closing. No call can reach a descriptor that was closed and given out again.
final class POSIXFile: OpenFile {
  let path: String
  private let state: Mutex<State>

  private struct State {
    var descriptor: Int32?
    /// True if the next sync must cover the whole inode.
    ///
    /// `fdatasync` may leave out a new file's mode or owner.
    var metadataChanged: Bool
    /// Identity of the file, if ``lock()`` has locked it.
    var lock: FileIdentity?
  }

  /// Creates a file that owns an open descriptor and closes it.
  init(path: String, descriptor: Int32, isNew: Bool) {
    self.path = path
    state = Mutex(State(descriptor: descriptor, metadataChanged: isNew))
  }

  deinit {
    // No caller is left to receive an error. Code that needs it closes the file first.
    _ = closeOnce()
  }

  func size() throws(RepositoryError) -> Int {
    let size = try currentStatus().st_size
    // `off_t` is wider than `Int` on 32-bit systems.
    guard let count = Int(exactly: size) else {
      throw RepositoryError(
        .tooLarge, "expected a file of at most \(Int.max) bytes, which this system can address, found \(size)", file: path)
    }
    return count
  }

  func mode() throws(RepositoryError) -> UInt16 { UInt16(truncatingIfNeeded: try currentStatus().st_mode & 0o7777) }

  func setMode(_ mode: UInt16) throws(RepositoryError) {
    try withState("fchmod") { (state, descriptor) throws(RepositoryError) in
      try SystemCall.perform("fchmod", path) { fchmod(descriptor, mode_t(mode)) }
      // `fdatasync` may leave the mode out.
      state.metadataChanged = true
    }
  }

  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
    try withState("pread") { (_, descriptor) throws(RepositoryError) in
      guard offset >= 0 else { throw .system("pread", EINVAL, file: path) }
      let size = Int(clamping: try Self.status(of: descriptor, path).st_size)
      // The file's size limits the memory, also if a damaged file asks for a count of gigabytes.
      var data = Data(count: max(0, min(count, size - offset)))
      let outcome = data.withUnsafeMutableBytes { buffer in
        SystemCall.readAll(into: buffer, at: offset) { piece, offset in
          SystemCall.uninterrupted { pread(descriptor, piece.baseAddress, piece.count, off_t(offset)) }
        }
      }
      switch outcome {
      case .done(let filled): return filled == data.count ? data : data.prefix(filled)
      case .failed(let number): throw .system("pread", number, file: path, offset: offset)
      }
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError) {
    try withState("pwrite") { (_, descriptor) throws(RepositoryError) in
      guard offset >= 0 else { throw .system("pwrite", EINVAL, file: path) }
      let failure = SystemCall.writeAll(bytes, at: offset) { piece, offset in
        SystemCall.uninterrupted { pwrite(descriptor, piece.baseAddress, piece.count, off_t(offset)) }
      }
      if let failure { throw .system("pwrite", failure, file: path, offset: offset) }
    }
  }

  #if os(Linux)
    /// Allocates disk space for the range without writing it, or writes zero bytes if the file system cannot.
    func allocate(_ range: Range<Int>) throws(RepositoryError) {
      let isAllocated = try withState("fallocate") { (_, descriptor) throws(RepositoryError) in
        guard range.lowerBound >= 0 else { throw .system("fallocate", EINVAL, file: path) }
        // `posix_fallocate` refuses an empty range with EINVAL, which below means the file system.
        guard !range.isEmpty else { return true }
        // The call returns its error instead of setting `errno`. If the file system has no such call, glibc writes to each block. musl does
        // not.
        let outcome = SystemCall.uninterrupted {
          errno = posix_fallocate(descriptor, off_t(range.lowerBound), off_t(range.count))
          return errno == 0 ? 0 : -1
        }
        switch outcome {
        case .done: return true
        // The range is valid here, so EINVAL too means that the file system cannot do it.
        case .failed(EOPNOTSUPP), .failed(ENOSYS), .failed(EINVAL): return false
        case .failed(let number): throw .system("fallocate", number, file: path, offset: range.lowerBound)
        }
      }
      if !isAllocated { try writeZeros(range) }
    }
  #endif

  func cut(to size: Int) throws(RepositoryError) {
    try withState("ftruncate") { (state, descriptor) throws(RepositoryError) in
      guard size >= 0 else { throw .system("ftruncate", EINVAL, file: path) }
      // `ftruncate` would grow the file, with a hole that has no space on the disk.
      guard size < Int(clamping: try Self.status(of: descriptor, path).st_size) else { return }
      try SystemCall.perform("ftruncate", path) { ftruncate(descriptor, off_t(size)) }
      // Reset only after success: the next sync must still cover the inode.
      state.metadataChanged = true
    }
  }

  func sync() throws(RepositoryError) {
    try withState("fsync") { (state, descriptor) throws(RepositoryError) in
      let (call, outcome) = DurableSync.file(descriptor, metadata: state.metadataChanged)
      if case .failed(let number) = outcome { throw .system(call, number, file: path) }
      state.metadataChanged = false
    }
  }

  #if canImport(Darwin)
    func order() throws(RepositoryError) {
      try withState("fsync") { (_, descriptor) throws(RepositoryError) in
        let (call, outcome) = DurableSync.ordered(descriptor)
        if case .failed(let number) = outcome { throw .system(call, number, file: path) }
      }
    }
  #endif

  func close() throws(RepositoryError) {
    // `close` always frees the descriptor, so a second call could close another file. EINTR says nothing about the data.
    if let number = closeOnce(), number != EINTR { throw .system("close", number, file: path) }
  }

  /// Closes the descriptor and releases its lock.
  ///
  /// Returns the `errno` of a failure.
  private func closeOnce() -> Int32? {
    guard let lock = state.withLock({ $0.lock }) else { return state.withLock { $0.descriptor.take() }.flatMap(closeDescriptor) }
    // The registry's mutex comes first, as in `lock()`: another order could deadlock.
    return LockFile.registry.withLock { held in
      guard let descriptor = state.withLock({ $0.descriptor.take() }) else { return nil }
      held[lock] = nil
      // A child process may hold a copy of the descriptor, so that closing would not release the lock.
      LockFile.unlock(descriptor)
      return closeDescriptor(descriptor)
    }
  }

  func lock() throws(RepositoryError) {
    try LockFile.registry.withLock { (held) throws(RepositoryError) in
      let identity = FileIdentity(try currentStatus())
      // `flock` would only report `.locked`, also if this process itself has the file open.
      if held[identity] != nil { throw .openInThisProcess(path) }
      try withState("flock") { (state, descriptor) throws(RepositoryError) in
        guard try LockFile.takeLock(LOCK_EX, descriptor: descriptor, path: path) else {
          throw RepositoryError(.locked, "another process has the file open, maybe by another name", file: path)
        }
        state.lock = identity
      }
      held[identity] = LockFile.exclusive
    }
  }

  func status() throws(RepositoryError) -> FileStatus { FileStatus(try currentStatus()) }

  func setOwner(_ owner: FileOwner) throws(RepositoryError) {
    try withState("fchown") { (state, descriptor) throws(RepositoryError) in
      let status = try Self.status(of: descriptor, path)
      guard status.st_uid != owner.user || status.st_gid != owner.group else { return }
      // Only root may change the user. Others may set a group that they belong to.
      if fchown(descriptor, owner.user, owner.group) != 0, fchown(descriptor, uid_t.max, owner.group) != 0 { return }
      state.metadataChanged = true
    }
  }

  func copyAttributes(of file: any OpenFile) throws(RepositoryError) {
    guard let file = file as? POSIXFile, file !== self else { return }
    try file.withState("fgetxattr") { (_, source) throws(RepositoryError) in
      try withState("fsetxattr") { (state, descriptor) throws(RepositoryError) in
        // An extended attribute that this process may not set stays unset, as the owner does. Every other failure is thrown.
        try SystemCall.perform("fsetxattr", path) { larder_copy_attributes(source, descriptor) }
        state.metadataChanged = true
      }
    }
  }

  private func currentStatus() throws(RepositoryError) -> stat {
    try withState("fstat") { (_, descriptor) throws(RepositoryError) in try Self.status(of: descriptor, path) }
  }

  private func withState<Result: Sendable>(
    _ call: String, _ body: (inout State, Int32) throws(RepositoryError) -> Result
  ) throws(RepositoryError) -> Result {
    try state.withLock { (state) throws(RepositoryError) -> Result in
      guard let descriptor = state.descriptor else { throw .system(call, EBADF, file: path) }
      return try body(&state, descriptor)
    }
  }

  /// Returns the `fstat` status of an open descriptor.
  static func status(of descriptor: Int32, _ path: String) throws(RepositoryError) -> stat {
    var status = stat()
    try SystemCall.perform("fstat", path) { fstat(descriptor, &status) }
    return status
  }
}

/// Closes a descriptor once, and returns the `errno` of a failure.
///
/// EINTR is not repeated: Linux has released the descriptor by then, and another thread may own the number already.
func closeDescriptor(_ descriptor: Int32) -> Int32? {
  close(descriptor) == 0 ? nil : errno
}
