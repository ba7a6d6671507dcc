internal import Foundation

/// The outcome of a system call: its result, or the value of `errno`.
package enum CallOutcome: Hashable, Sendable {
  case done(Int)
  case failed(Int32)
}

/// Loops around system calls that may be interrupted or end early.
///
/// The calls are closures, so that tests can simulate that.
package enum SystemCall {
  /// Largest number of bytes for one call.
  ///
  /// Linux moves at most 0x7FFFF000, and Darwin refuses more than `INT32_MAX`.
  package static let largestTransfer = 1 << 30

  /// Calls the closure, which returns -1 for failure, and repeats it while a signal interrupts it (EINTR).
  ///
  /// Not for `close`, which must not be repeated.
  package static func uninterrupted(_ call: () -> Int) -> CallOutcome {
    while true {
      let result = call()
      if result != -1 { return .done(result) }
      // Read at once: any other call may change `errno`.
      let number = errno
      if number != EINTR { return .failed(number) }
    }
  }

  /// Calls the closure for a file, and repeats it while a signal interrupts it.
  ///
  /// - Parameters:
  ///   - name: Name of the call, for the error.
  ///   - accepted: An `errno` that is a result and no failure, if any.
  /// - Returns: True if the call succeeded, `false` if it failed with the accepted `errno`.
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

  /// Writes all bytes, and goes on after a short write.
  ///
  /// Returns the `errno` of the call that failed.
  ///
  /// A call that writes nothing and reports no error counts as EIO, since repeating it would never end.
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

  /// Reads until the buffer is full, and continues after short reads.
  ///
  /// The result is smaller only if a call reports the end of the file.
  package static func readAll(
    into buffer: UnsafeMutableRawBufferPointer, at offset: Int, with call: (UnsafeMutableRawBufferPointer, Int) -> CallOutcome
  ) -> CallOutcome {
    var filled = 0
    while filled < buffer.count {
      let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[filled..<min(buffer.count, filled + largestTransfer)])
      switch call(piece, offset + filled) {
      case .done(0): return .done(filled)
      case .done(let count) where count > 0 && count <= piece.count: filled += count
      // More bytes than asked for cannot be true, and would move the next piece out of the buffer.
      case .done: return .failed(EIO)
      case .failed(EINTR): continue
      case .failed(let number): return .failed(number)
      }
    }
    return .done(filled)
  }

  /// Calls a sync, and a second one only if the file system does not support the first.
  ///
  /// The second call after any other failure would report lost data as a success.
  package static func flush(_ call: () -> CallOutcome, unknown other: () -> CallOutcome) -> CallOutcome {
    let outcome = call()
    guard case .failed(let number) = outcome, isUnknownSync(number) else { return outcome }
    return other()
  }

  /// True if an `errno` of `fcntl(F_FULLFSYNC)` or `fcntl(F_BARRIERFSYNC)` means that the file system has no such call.
  ///
  /// ENOTSUP comes from file systems that refuse the call by name, ENOTTY from those without such a control. A sync that lost data fails
  /// with EIO, ENOSPC or another error.
  package static func isUnknownSync(_ number: Int32) -> Bool { [ENOTSUP, EOPNOTSUPP, ENOTTY].contains(number) }
}

/// The sync calls of this platform.
enum DurableSync {
  /// Flushes contents and size and, with `metadata`, also attributes such as permission bits.
  ///
  /// Linux: `fdatasync` covers contents and every size change needed to read them back, `fsync` the rest of the inode. Darwin: `fsync`
  /// leaves the data in the drive's cache, so the call is `F_FULLFSYNC`.
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

    /// Makes contents and size reach the medium before later writes, or flushes them if the file system has no barrier.
    static func ordered(_ descriptor: Int32) -> (call: String, outcome: CallOutcome) {
      let outcome = SystemCall.flush(
        { SystemCall.uninterrupted { Int(fcntl(descriptor, F_BARRIERFSYNC)) } }, unknown: { full(descriptor) })
      return ("fcntl(F_BARRIERFSYNC)", outcome)
    }
  #endif
}
