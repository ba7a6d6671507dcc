internal import CLarderFiles
internal import Foundation
internal import Synchronization

/// An open file of the operating system.
///
/// A mutex guards every use of the file descriptor and its closing. Without the mutex, a call could use a descriptor number that another
/// thread has closed and that now belongs to another file.
final class POSIXFile: OpenFile {
  let path: String
  private let state: Mutex<State>

  private struct State {
    /// Descriptor of the file, or `nil` after the file was closed.
    var descriptor: Int32?
    /// True if the next sync must cover the whole inode, by `fsync`.
    ///
    /// `fdatasync` may leave the mode or owner of a new file unwritten.
    var metadataChanged: Bool
    /// Identity of the file if ``lock()`` has locked it, or `nil` otherwise.
    var lock: FileIdentity?
  }

  /// Creates a file object that owns an open descriptor and closes it.
  init(path: String, descriptor: Int32, isNew: Bool) {
    self.path = path
    state = Mutex(State(descriptor: descriptor, metadataChanged: isNew))
  }

  deinit {
    // A `deinit` cannot throw, so an error of closing is ignored. Code that needs the error of closing calls `close()` before it releases
    // the file object.
    _ = closeOnce()
  }

  func size() throws(RepositoryError) -> Int {
    let size = try currentStatus().st_size
    // `off_t` can be wider than `Int`, which has 32 bits on some systems, and a size that is cut off would be wrong.
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
      // `fdatasync` may leave the changed mode unwritten, so the next sync must be an `fsync`.
      state.metadataChanged = true
    }
  }

  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
    try withState("pread") { (_, descriptor) throws(RepositoryError) in
      // A negative offset is refused before it is subtracted from the size, because the subtraction could overflow and trap.
      guard offset >= 0 else { throw .system("pread", EINVAL, file: path) }
      let size = Int(clamping: try Self.status(of: descriptor, path).st_size)
      // `read` allocates at most the size of the file. A caller may pass a `count` that a damaged file holds, and an unbounded `count`
      // could allocate gigabytes.
      var data = Data(count: max(0, min(count, size - offset)))
      let outcome = data.withUnsafeMutableBytes { buffer in
        SystemCall.readAll(into: buffer, at: offset) { piece, offset in
          SystemCall.uninterrupted { pread(descriptor, piece.baseAddress, piece.count, off_t(offset)) }
        }
      }
      switch outcome {
      // The returned data is shorter than the allocated buffer if another process cut the file between `fstat` and `pread`.
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
    /// Allocates disk space for the range without writing to it, or writes zero bytes if the file system cannot allocate.
    func allocate(_ range: Range<Int>) throws(RepositoryError) {
      let isAllocated = try withState("fallocate") { (_, descriptor) throws(RepositoryError) in
        guard range.lowerBound >= 0 else { throw .system("fallocate", EINVAL, file: path) }
        // `posix_fallocate` refuses an empty range with EINVAL. EINVAL counts as a sign of a file system that cannot allocate, so an empty
        // range returns before the call.
        guard !range.isEmpty else { return true }
        // `posix_fallocate` returns its error instead of setting `errno`. If the file system cannot allocate, glibc writes to each block
        // and musl returns an error.
        let outcome = SystemCall.uninterrupted {
          errno = posix_fallocate(descriptor, off_t(range.lowerBound), off_t(range.count))
          return errno == 0 ? 0 : -1
        }
        switch outcome {
        case .done: return true
        // The range is known to be valid, so EINVAL also means that the file system cannot allocate.
        case .failed(EOPNOTSUPP), .failed(ENOSYS), .failed(EINVAL): return false
        case .failed(let number): throw .system("fallocate", number, file: path, offset: range.lowerBound)
        }
      }
      // `writeZeros` is called outside `withState`, because `writeZeros` locks the mutex of `withState`, and locking a mutex twice in one
      // thread would deadlock.
      if !isAllocated { try writeZeros(range) }
    }
  #endif

  func cut(to size: Int) throws(RepositoryError) {
    try withState("ftruncate") { (state, descriptor) throws(RepositoryError) in
      guard size >= 0 else { throw .system("ftruncate", EINVAL, file: path) }
      // `cut` ignores a size beyond the end of the file, because `ftruncate` would grow the file by a hole without space on the disk.
      guard size < Int(clamping: try Self.status(of: descriptor, path).st_size) else { return }
      try SystemCall.perform("ftruncate", path) { ftruncate(descriptor, off_t(size)) }
      // `ftruncate` has changed the size, and the next sync must make the size durable with the whole inode.
      state.metadataChanged = true
    }
  }

  func sync() throws(RepositoryError) {
    try withState("fsync") { (state, descriptor) throws(RepositoryError) in
      let (call, outcome) = DurableSync.file(descriptor, metadata: state.metadataChanged)
      // `metadataChanged` is cleared only after a successful sync, because after a failure the metadata may not be on the disk.
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
    // A second `close` after EINTR could close another file, because the first `close` has freed the descriptor. EINTR does not mean that
    // data was lost, so EINTR is ignored.
    if let number = closeOnce(), number != EINTR { throw .system("close", number, file: path) }
  }

  /// Closes the descriptor and releases the file's lock, and returns the `errno` of a failure.
  private func closeOnce() -> Int32? {
    // A file without a lock is closed without the registry's mutex, so that closing the file does not wait for a thread that takes a lock.
    guard let lock = state.withLock({ $0.lock }) else { return state.withLock { $0.descriptor.take() }.flatMap(closeDescriptor) }
    // The registry's mutex is locked before the file's mutex, as in `lock()`. Two threads that lock the two mutexes in opposite orders
    // could deadlock.
    return LockFile.registry.withLock { held in
      guard let descriptor = state.withLock({ $0.descriptor.take() }) else { return nil }
      held[lock] = nil
      // A child process may hold a copy of the descriptor between `fork` and `exec`. While a child process holds a copy, closing the
      // descriptor in this process does not release the lock, so the file is unlocked first.
      LockFile.unlock(descriptor)
      return closeDescriptor(descriptor)
    }
  }

  func lock() throws(RepositoryError) {
    try LockFile.registry.withLock { (held) throws(RepositoryError) in
      let identity = FileIdentity(try currentStatus())
      // The registry of locks shows that this process itself has locked the file. `flock` would only report that the file is locked.
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
      // Only root may change the user of a file. Other users may set a group that they belong to, so the second `fchown` changes only the
      // group.
      if fchown(descriptor, owner.user, owner.group) != 0, fchown(descriptor, uid_t.max, owner.group) != 0 { return }
      state.metadataChanged = true
    }
  }

  func copyAttributes(of file: any OpenFile) throws(RepositoryError) {
    // Copying a file's attributes to the same file would lock its mutex twice in one thread and deadlock.
    guard let file = file as? POSIXFile, file !== self else { return }
    try file.withState("fgetxattr") { (_, source) throws(RepositoryError) in
      try withState("fsetxattr") { (state, descriptor) throws(RepositoryError) in
        // `larder_copy_attributes` skips an extended attribute that this process may not set, as `setOwner` skips the owner. All other
        // failures of `larder_copy_attributes` are thrown.
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

  /// Returns the status of an open descriptor, from `fstat`.
  static func status(of descriptor: Int32, _ path: String) throws(RepositoryError) -> stat {
    var status = stat()
    try SystemCall.perform("fstat", path) { fstat(descriptor, &status) }
    return status
  }
}

/// Closes a descriptor once, and returns the `errno` of a failure.
///
/// `close` is not repeated after EINTR. When `close` returns EINTR, Linux has already released the descriptor, and another thread may have
/// got the same number.
func closeDescriptor(_ descriptor: Int32) -> Int32? {
  close(descriptor) == 0 ? nil : errno
}
