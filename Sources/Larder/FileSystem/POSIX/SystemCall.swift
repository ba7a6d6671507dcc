internal import Foundation

/// The outcome of a system call: its result, or the value of `errno`.
package enum CallOutcome: Hashable, Sendable {
  case done(Int)
  case failed(Int32)
}

/// Loops around system calls that a signal may interrupt or that may transfer fewer bytes than requested.
///
/// The system calls are passed as closures, so that tests can simulate interrupted and short calls.
package enum SystemCall {
  /// Largest number of bytes that Larder passes to one read or write call.
  ///
  /// Linux transfers at most 0x7FFFF000 bytes in a read or write call, and Darwin refuses more than `INT32_MAX` bytes.
  package static let largestTransfer = 1 << 30

  /// Calls the closure, which returns -1 for failure, and repeats it while a signal interrupts the call (EINTR).
  ///
  /// Do not use `uninterrupted` for `close`: a repeated `close` could close another file that got the same descriptor number.
  package static func uninterrupted(_ call: () -> Int) -> CallOutcome {
    while true {
      let result = call()
      if result != -1 { return .done(result) }
      // `errno` is read directly after the call, because any other call may change it.
      let number = errno
      if number != EINTR { return .failed(number) }
    }
  }

  /// Makes a system call for a file, and repeats it while a signal interrupts the call (EINTR).
  ///
  /// - Parameters:
  ///   - name: Name of the system call, for the error message.
  ///   - accepted: An `errno` that is a valid result of the system call and not a failure, or `nil` if every `errno` is a failure.
  /// - Returns: True if the system call succeeded, `false` if it failed with the accepted `errno`.
  @discardableResult static func perform(
    _ name: String, _ path: String, accepting accepted: Int32? = nil, _ call: () -> Int32
  ) throws(RepositoryError) -> Bool {
    switch uninterrupted({ Int(call()) }) {
    case .done: return true
    case .failed(let number):
      guard number == accepted else { throw .system(name, number, file: path) }
      return false
    }
  }

  /// Writes all bytes of a buffer, repeats calls that write fewer bytes than requested, and returns the `errno` of a failed call.
  ///
  /// A write call that writes no bytes and reports no error counts as EIO, because the loop of repeated calls would never end.
  package static func writeAll(
    _ bytes: UnsafeRawBufferPointer, at offset: Int, with call: (UnsafeRawBufferPointer, Int) -> CallOutcome
  ) -> Int32? {
    var written = 0
    while written < bytes.count {
      let piece = UnsafeRawBufferPointer(rebasing: bytes[written..<min(bytes.count, written + largestTransfer)])
      switch call(piece, offset + written) {
      case .done(let count) where count > 0 && count <= piece.count: written += count
      case .done: return EIO
      case .failed(EINTR): continue
      case .failed(let number): return number
      }
    }
    return nil
  }

  /// Reads until the buffer is full, in several calls if a call reads fewer bytes than were requested.
  ///
  /// The returned number of bytes is smaller than the buffer only if a call reports the end of the file by returning 0.
  package static func readAll(
    into buffer: UnsafeMutableRawBufferPointer, at offset: Int, with call: (UnsafeMutableRawBufferPointer, Int) -> CallOutcome
  ) -> CallOutcome {
    var filled = 0
    while filled < buffer.count {
      let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[filled..<min(buffer.count, filled + largestTransfer)])
      switch call(piece, offset + filled) {
      case .done(0): return .done(filled)
      case .done(let count) where count > 0 && count <= piece.count: filled += count
      // A call that returns a larger count than was requested is faulty, and adding this count to `filled` would put the next piece outside
      // the buffer.
      case .done: return .failed(EIO)
      case .failed(EINTR): continue
      case .failed(let number): return .failed(number)
      }
    }
    return .done(filled)
  }

  /// Makes a sync call, and makes a second, weaker sync call only if the file system does not support the first.
  ///
  /// If the first sync call fails although the file system supports it, no second sync call is made, because a second call could succeed
  /// although data was lost.
  package static func flush(_ call: () -> CallOutcome, unknown other: () -> CallOutcome) -> CallOutcome {
    let outcome = call()
    guard case .failed(let number) = outcome, isUnknownSync(number) else { return outcome }
    return other()
  }

  /// Returns true if an `errno` of `fcntl(F_FULLFSYNC)` or `fcntl(F_BARRIERFSYNC)` means that the file system does not support the call.
  ///
  /// A file system that recognizes the call without supporting it returns ENOTSUP, and a file system that does not recognize the call
  /// returns ENOTTY. A sync that lost data fails with EIO, ENOSPC or another error.
  package static func isUnknownSync(_ number: Int32) -> Bool { [ENOTSUP, EOPNOTSUPP, ENOTTY].contains(number) }
}

/// The sync calls of this platform, for files and directories.
enum DurableSync {
  /// Flushes the contents and the size of a file and, if `metadata` is true, also attributes such as permission bits.
  ///
  /// On Linux `fdatasync` covers the contents and every size change that is needed to read them back, and `fsync` also covers the rest of
  /// the inode. On Darwin `fsync` leaves the data in the drive's cache, so Larder calls `F_FULLFSYNC`.
  static func file(_ descriptor: Int32, metadata: Bool) -> (call: String, outcome: CallOutcome) {
    #if canImport(Darwin)
      return ("fcntl(F_FULLFSYNC)", full(descriptor))
    #else
      return metadata
        ? ("fsync", SystemCall.uninterrupted { Int(fsync(descriptor)) })
        : ("fdatasync", SystemCall.uninterrupted { Int(fdatasync(descriptor)) })
    #endif
  }

  /// Flushes the entries of an open directory.
  static func directory(_ descriptor: Int32) -> (call: String, outcome: CallOutcome) {
    #if canImport(Darwin)
      return ("fcntl(F_FULLFSYNC)", full(descriptor))
    #else
      return ("fsync", SystemCall.uninterrupted { Int(fsync(descriptor)) })
    #endif
  }

  #if canImport(Darwin)
    private static func full(_ descriptor: Int32) -> CallOutcome {
      SystemCall.flush(
        { SystemCall.uninterrupted { Int(fcntl(descriptor, F_FULLFSYNC)) } },
        unknown: { SystemCall.uninterrupted { Int(fsync(descriptor)) } })
    }

    /// Orders a file's contents and size before all later writes by a barrier, or flushes them if the file system has no barrier.
    static func ordered(_ descriptor: Int32) -> (call: String, outcome: CallOutcome) {
      let outcome = SystemCall.flush(
        { SystemCall.uninterrupted { Int(fcntl(descriptor, F_BARRIERFSYNC)) } }, unknown: { full(descriptor) })
      return ("fcntl(F_BARRIERFSYNC)", outcome)
    }
  #endif
}
