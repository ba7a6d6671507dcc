internal import Foundation

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
