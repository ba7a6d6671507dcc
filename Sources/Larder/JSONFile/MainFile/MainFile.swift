internal import Foundation

/// The main file of a store: open, and locked itself, so that no other store uses it by another name.
struct MainFile: Sendable {
  let file: any OpenFile
  /// The identity of the file.
  let identity: FileIdentity?
  let header: MainFileHeader
  /// Its size in bytes.
  let size: Int
  /// The permission bits and the owner, which the next one gets too.
  let mode: UInt16
  let owner: FileOwner?
  /// The tombstones in it, and the commits of their deletions.
  let tombstones: [RecordAddress: UInt64]

  init(_ file: any OpenFile, _ header: MainFileHeader, tombstones: [RecordAddress: UInt64]) throws(RepositoryError) {
    let status = try file.status()
    self.file = file
    self.header = header
    self.tombstones = tombstones
    (identity, size, mode, owner) = (status.identity, status.size, status.mode, status.owner)
  }

  /// Returns the same main file by another descriptor of it.
  func reopened(as file: any OpenFile) throws(RepositoryError) -> MainFile { try MainFile(file, header, tombstones: tombstones) }

  /// Gives another file the owner of this one and the attributes that an app has set on it, such as the exclusion from backups.
  func passOn(to target: any OpenFile) throws(RepositoryError) {
    if let owner { try target.setOwner(owner) }
    try target.copyAttributes(of: file)
  }

  /// Opens the main file and locks it; `nil` when there is none.
  ///
  /// - Throws: `.locked` or `.alreadyOpen` when it is open by whatever name; `.unsupported` when it has several names, since what is
  ///   written by one of them would not be seen by the others.
  static func open(_ path: String, _ fileSystem: any FileSystem) throws(RepositoryError) -> (any OpenFile)? {
    // A round ends without a lock only when a holder has put another file in place in this very moment.
    for _ in 0..<1_000 {
      guard let file = try fileSystem.open(path, writable: false) else { return nil }
      try file.lock()
      let status = try file.status()
      if let found = try fileSystem.status(of: path), found.identity == status.identity {
        guard status.linkCount <= 1 else {
          throw RepositoryError(
            .unsupported, "the file has \(status.linkCount) names (hard links), and a store has one; remove the others, or copy it",
            file: path)
        }
        return file
      }
      try file.close()
    }
    throw RepositoryError(.locked, "other processes keep replacing the file", file: path)
  }
}
