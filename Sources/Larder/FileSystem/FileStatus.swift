internal import Foundation

/// The status of a file: kind, identity, size, mode, links and owner.
public struct FileStatus: Hashable, Sendable {
  /// The kind of a file: a plain file, a directory, a symbolic link, or another kind.
  ///
  /// Stores read and write plain files only.
  public enum Kind: Hashable, Sendable {
    case file, directory, symbolicLink
    /// A named pipe, a socket or a device.
    case other
  }

  /// Kind of the file.
  public var kind: Kind
  /// Device and inode of the file, which are the same for all hard links to the file, or `nil` if the file system has no identities.
  public var identity: FileIdentity?
  /// Size of the file in bytes.
  public var size: Int
  /// Permission bits of the file.
  public var mode: UInt16
  /// Number of names (hard links) of the file, which is 0 if the file was removed while it was open.
  public var linkCount: Int
  /// Owner of the file, or `nil` if the file system has no owners.
  public var owner: FileOwner?

  /// Creates a file status.
  public init(kind: Kind = .file, identity: FileIdentity?, size: Int, mode: UInt16, linkCount: Int = 1, owner: FileOwner? = nil) {
    self.kind = kind
    self.identity = identity
    self.size = size
    self.mode = mode
    self.linkCount = linkCount
    self.owner = owner
  }
}

/// The identity of a file, by device and inode: two paths with equal identities lead to the same file.
public struct FileIdentity: Hashable, Sendable {
  /// Device that holds the file.
  public let device: UInt64
  /// Inode number of the file on its device.
  ///
  /// The system may give the inode number to a new file once the old file is removed and closed by every process.
  public let inode: UInt64

  /// Creates the identity of a file.
  public init(device: UInt64, inode: UInt64) {
    self.device = device
    self.inode = inode
  }
}

/// The user and group that own a file.
public struct FileOwner: Hashable, Sendable {
  /// Numeric id of the user that owns the file.
  public var user: UInt32
  /// Numeric id of the group that owns the file.
  public var group: UInt32

  /// Creates the owner of a file.
  public init(user: UInt32, group: UInt32) {
    self.user = user
    self.group = group
  }
}

extension FileIdentity {
  init(_ status: stat) {
    // `st_dev` and `st_ino` have different types and signs on Linux and Darwin, so their bits are converted without a check for overflow.
    self.init(device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(truncatingIfNeeded: status.st_ino))
  }
}

extension FileStatus {
  init(_ status: stat) {
    let kind: Kind =
      switch status.st_mode & S_IFMT {
      case S_IFREG: .file
      case S_IFDIR: .directory
      case S_IFLNK: .symbolicLink
      // Opening a pipe, socket or device could block or have side effects, so they all have the kind `other`, which a store refuses.
      default: .other
      }
    self.init(
      kind: kind, identity: FileIdentity(status), size: Int(clamping: status.st_size),
      mode: UInt16(truncatingIfNeeded: status.st_mode & 0o7777),
      linkCount: Int(clamping: status.st_nlink), owner: FileOwner(user: status.st_uid, group: status.st_gid))
  }
}

extension RepositoryError {
  /// Returns the error for a symbolic link, directory, pipe, socket or device at the path of a plain file, which no store reads or writes.
  static func notAPlainFile(_ kind: FileStatus.Kind, _ path: String) -> RepositoryError {
    let found =
      switch kind {
      case .symbolicLink: "a symbolic link, which is not followed"
      case .directory: "a directory"
      case .file, .other: "a device, pipe or socket"
      }
    return RepositoryError(.unsupported, "expected a plain file, found \(found)", file: path)
  }
}
