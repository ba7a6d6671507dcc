// Inspecting/ finds out about a store what is not in its records: its files, its locks, its sizes and its journal.
// Invariant: no key and no value is in what it returns. Called by the command `inspect`.

internal import Foundation
package import Larder

/// The files of a store: the main file, and all beside it whose names begin with its name.
package struct StoreFamily: Sendable {
  /// A file of a store.
  package struct Member: Sendable {
    /// Its path.
    package let path: String
    /// Its name.
    package let name: String
    /// Its purpose in words.
    package let role: String
    /// Its size in bytes.
    package let byteCount: Int
    /// The device and the inode.
    let identity: FileNumber
  }

  /// The files, by name, the main file first.
  package let members: [Member]

  /// Looks at the directory of a store.
  /// - Throws: `.protectedDataUnavailable` for a directory that cannot be read.
  package init(_ file: StoreFile) throws(RepositoryError) {
    let directory = file.url.deletingLastPathComponent()
    let main = file.url.lastPathComponent
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: directory.path(percentEncoded: false))
    } catch {
      throw RepositoryError(
        .protectedDataUnavailable, "the directory of the store cannot be read", file: directory.path(percentEncoded: false))
    }
    members = names.filter { $0 == main || $0.hasPrefix(main + "-") }.sorted().compactMap { name in
      let path = directory.appending(path: name).path(percentEncoded: false)
      var status = stat()
      guard lstat(path, &status) == 0 else { return nil }
      return Member(
        path: path, name: name, role: Self.role(of: String(name.dropFirst(main.count)), file.kind), byteCount: Int(status.st_size),
        identity: FileNumber(status))
    }
  }

  /// Returns the purpose of a file by what its name has behind that of the main file.
  private static func role(of ending: String, _ kind: StoreKind) -> String {
    switch (ending, kind) {
    case ("", _): return "main file"
    case ("-journal", .jsonFile): return "journal"
    case ("-journal", .sqliteFile): return "rollback journal of another program"
    case ("-wal", .sqliteFile): return "log"
    case ("-shm", .sqliteFile): return "index of the log"
    case ("-lock", _): return "lock"
    case ("-previous", .jsonFile): return "previous main file"
    default: break
    }
    if ending.hasSuffix("-tmp") || ending.hasPrefix("-new") { return "temporary" }
    if ending.hasPrefix("-quarantine-") { return "quarantine" }
    return ending.hasPrefix("-before-") ? "copy from before a migration" : "other"
  }
}

/// The device and the inode of a file, as the system's list of locks has them.
struct FileNumber: Hashable, Sendable {
  let device: UInt64
  let inode: UInt64

  init(_ status: stat) {
    device = UInt64(truncatingIfNeeded: status.st_dev)
    inode = UInt64(status.st_ino)
  }

  init(device: UInt64, inode: UInt64) { (self.device, self.inode) = (device, inode) }
}
