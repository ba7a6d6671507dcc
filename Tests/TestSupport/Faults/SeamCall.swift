internal import Foundation

/// A call of the seam `FileSystem`, or of a file that it has opened.
package enum SeamCall: String, CaseIterable, Sendable {
  case open, status, create, rename, remove, createDirectory, syncDirectory, entries, lock, lockShared
  case fileStatus, fileLock, setOwner, size, mode, setMode, read, write, allocate, cut, sync, close

  /// Whether the call changes or syncs something.
  package var isChange: Bool {
    switch self {
    case .open, .status, .entries, .fileStatus, .fileLock, .size, .mode, .read, .close: false
    case .create, .rename, .remove, .createDirectory, .syncDirectory, .lock, .lockShared: true
    case .setOwner, .setMode, .write, .allocate, .cut, .sync: true
    }
  }

  /// Whether the call takes space on the disk.
  private var takesSpace: Bool { [.create, .createDirectory, .lock, .lockShared, .write, .allocate, .sync, .syncDirectory].contains(self) }

  /// Whether the call opens something.
  private var opens: Bool { [.open, .create, .createDirectory, .syncDirectory, .entries, .lock, .lockShared].contains(self) }

  /// Whether a disk in the state that a fault shows fails this call too.
  package func follows(_ first: SeamCall, _ errorNumber: Int32) -> Bool {
    switch errorNumber {
    case ENOSPC, EDQUOT: takesSpace
    case EMFILE: opens
    case EROFS: isChange
    case EACCES, EPERM: opens || self == .rename || self == .remove || self == .setMode || self == .setOwner
    default: isChange == first.isChange
    }
  }

  /// The system call that fails in this one.
  package func systemCall(_ errorNumber: Int32) -> String {
    switch self {
    case .open, .create: "open"
    case .status: "lstat"
    case .rename: "rename"
    case .remove: "unlink"
    case .createDirectory: "mkdir"
    // A directory is opened for its sync.
    case .syncDirectory: [EMFILE, EACCES, EPERM].contains(errorNumber) ? "open" : "fsync"
    case .entries: "readdir"
    case .lock, .lockShared, .fileLock: "flock"
    case .fileStatus, .size, .mode: "fstat"
    case .setOwner: "fchown"
    case .setMode: "fchmod"
    case .read: "pread"
    case .write: "pwrite"
    case .allocate: "fallocate"
    case .cut: "ftruncate"
    case .sync: "fsync"
    case .close: "close"
    }
  }
}
