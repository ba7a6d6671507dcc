internal import Foundation

/// The status of a file: kind, identity, size, mode, links and owner.
public struct FileStatus: Hashable, Sendable {
  /// The kind of a file.
  public enum Kind: Hashable, Sendable {
    case file, directory, symbolicLink
    /// A named pipe, a socket or a device.
    case other
  }

  /// The kind of the file; stores are kept in plain files only.
  public var kind: Kind
  /// The identity of the file, whatever its name; `nil` where the file system does not tell files apart.
  public var identity: FileIdentity?
  /// The size in bytes.
  public var size: Int
  /// The permission bits.
  public var mode: UInt16
  /// The number of names that the file has; 0 when it was removed while it was open.
  public var linkCount: Int
  /// The owner; `nil` where files have none.
  public var owner: FileOwner?

  /// Describes a file.
  public init(kind: Kind = .file, identity: FileIdentity?, size: Int, mode: UInt16, linkCount: Int = 1, owner: FileOwner? = nil) {
    self.kind = kind
    self.identity = identity
    self.size = size
    self.mode = mode
    self.linkCount = linkCount
    self.owner = owner
  }
}

/// The identity of a file, whatever its name: two paths with equal identities lead to one file.
public struct FileIdentity: Hashable, Sendable {
  /// The device that holds the file.
  public let device: UInt64
  /// The number of the file on its device; given out again once the file is removed and closed everywhere.
  public let inode: UInt64

  /// Makes an identity.
  public init(device: UInt64, inode: UInt64) {
    self.device = device
    self.inode = inode
  }
}

/// The owner of a file.
public struct FileOwner: Hashable, Sendable {
  /// The number of the user.
  public var user: UInt32
  /// The number of the group.
  public var group: UInt32

  /// Names an owner.
  public init(user: UInt32, group: UInt32) {
    self.user = user
    self.group = group
  }
}

extension FileIdentity {
  init(_ status: stat) {
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
      default: .other
      }
    self.init(
      kind: kind, identity: FileIdentity(status), size: Int(clamping: status.st_size),
      mode: UInt16(truncatingIfNeeded: status.st_mode & 0o7777),
      linkCount: Int(clamping: status.st_nlink), owner: FileOwner(user: status.st_uid, group: status.st_gid))
  }
}

extension RepositoryError {
  /// Returns the error for anything else in the place of a plain file: a store is never read from it or written to it.
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
