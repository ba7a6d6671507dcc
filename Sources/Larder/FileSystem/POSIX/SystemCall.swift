internal import Foundation

/// The outcome of a system call: its result, or the value of `errno`.
package enum CallOutcome: Hashable, Sendable {
  case done(Int)
  case failed(Int32)
}

/// The loops around system calls that POSIX lets stop half-way; the calls are closures, so that tests can make them stop.
package enum SystemCall {
  /// The most bytes that one call is asked to move: Linux moves at most 0x7FFFF000, Darwin refuses more than `INT32_MAX`.
  package static let largestTransfer = 1 << 30

  /// Makes a call that returns -1 for failure, again for as long as a signal interrupts it.
  ///
  /// Not for `close`, which must not be repeated.
  package static func uninterrupted(_ call: () -> Int) -> CallOutcome {
    while true {
      let result = call()
      if result != -1 { return .done(result) }
      let number = errno
      if number != EINTR { return .failed(number) }
    }
  }

  /// Makes a call on a file, again for as long as a signal interrupts it.
  ///
  /// - Parameters:
  ///   - name: The name of the call, for the error.
  ///   - accepted: The `errno` that is an answer and no failure, if one is.
  /// - Returns: Whether the call has succeeded; `false` where it failed with the accepted `errno`.
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

  /// Writes all the bytes, going on after a short write; returns the `errno` of the call that failed.
  ///
  /// A call that takes nothing of a piece without saying why would be repeated for ever, so it counts as EIO.
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

  /// Fills the buffer, going on after a short read; fewer bytes only where a call says that the file ends.
  package static func readAll(
    into buffer: UnsafeMutableRawBufferPointer, at offset: Int, with call: (UnsafeMutableRawBufferPointer, Int) -> CallOutcome
  ) -> CallOutcome {
    var filled = 0
    while filled < buffer.count {
      let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[filled..<min(buffer.count, filled + largestTransfer)])
      switch call(piece, offset + filled) {
      case .done(0): return .done(filled)
      case .done(let count) where count > 0 && count <= piece.count: filled += count
      case .done: return .failed(EIO)
      case .failed(EINTR): continue
      case .failed(let number): return .failed(number)
      }
    }
    return .done(filled)
  }

  /// Makes a sync, and another one instead where the file system does not know the first.
  ///
  /// Taking the other after any other failure would turn lost data into success: the second call reports nothing any more.
  package static func flush(_ call: () -> CallOutcome, unknown other: () -> CallOutcome) -> CallOutcome {
    let outcome = call()
    guard case .failed(let number) = outcome, isUnknownSync(number) else { return outcome }
    return other()
  }

  /// Whether an `errno` of `fcntl(F_FULLFSYNC)` or `fcntl(F_BARRIERFSYNC)` says that the file system has no such call.
  ///
  /// ENOTSUP comes from file systems that refuse the call by name, ENOTTY from those that have no such control at all. A sync that lost
  /// data fails with EIO, ENOSPC or another one.
  package static func isUnknownSync(_ number: Int32) -> Bool { [ENOTSUP, EOPNOTSUPP, ENOTTY].contains(number) }
}

/// The calls that make a descriptor's data durable on this platform.
enum DurableSync {
  /// Flushes contents and size; with `metadata` also what `fdatasync` may leave out, such as permission bits.
  ///
  /// Linux: `fdatasync` covers contents and every size change needed to read them back, `fsync` the rest of the inode.
  /// Darwin: `fsync` leaves the data in the drive's cache, so `F_FULLFSYNC` it is.
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

    /// Has contents and size reach the medium before what is written later; flushes them where the file system has no barrier.
    static func ordered(_ descriptor: Int32) -> (call: String, outcome: CallOutcome) {
      let outcome = SystemCall.flush(
        { SystemCall.uninterrupted { Int(fcntl(descriptor, F_BARRIERFSYNC)) } }, unknown: { full(descriptor) })
      return ("fcntl(F_BARRIERFSYNC)", outcome)
    }
  #endif
}
