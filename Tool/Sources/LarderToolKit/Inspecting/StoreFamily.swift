// Inspecting/ describes a store without its records: files, locks, sizes and journal.
// Invariant: no key and no value is in its output. Called by the command `inspect`.

internal import Foundation
package import Larder

/// Files of a store: the main file and every file beside it whose name begins with the main file's name and a hyphen.
package struct StoreFamily: Sendable {
  /// One file of a store.
  package struct Member: Sendable {
    /// Path of the file.
    package let path: String
    /// Name of the file.
    package let name: String
    /// Purpose of the file, such as "journal".
    package let role: String
    /// Size of the file in bytes.
    package let byteCount: Int
    /// Device and inode of the file.
    let identity: FileNumber
  }

  /// The files in the order of their names.
  ///
  /// The main file's name is the shortest and comes first.
  package let members: [Member]

  /// Lists the files of a store.
  /// - Throws: `.protectedDataUnavailable` if the directory cannot be read.
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
      // A file that was removed since the directory was read is left out. An app may be running.
      guard lstat(path, &status) == 0 else { return nil }
      return Member(
        path: path, name: name, role: Self.role(of: String(name.dropFirst(main.count)), file.kind), byteCount: Int(status.st_size),
        identity: FileNumber(status))
    }
  }

  /// Returns the purpose of a file whose name is the main file's name followed by `ending`.
  private static func role(of ending: String, _ kind: StoreKind) -> String {
    switch (ending, kind) {
    case ("", _): return "main file"
    case ("-journal", .jsonFile): return "journal"
    // Larder's databases use a write-ahead log and never a rollback journal.
    case ("-journal", .sqliteFile): return "rollback journal of another program"
    case ("-wal", .sqliteFile): return "log"
    case ("-shm", .sqliteFile): return "index of the log"
    case ("-lock", _): return "lock"
    case ("-previous", .jsonFile): return "previous main file"
    default: break
    }
    // A database is created under a name with `-new`, beside its own `-new-wal` and the like.
    if ending.hasSuffix("-tmp") || ending.hasPrefix("-new") { return "temporary" }
    if ending.hasPrefix("-quarantine-") { return "quarantine" }
    return ending.hasPrefix("-before-") ? "copy from before a migration" : "other"
  }
}

/// Device and inode of a file, by which the lines of `/proc/locks` name it.
struct FileNumber: Hashable, Sendable {
  let device: UInt64
  let inode: UInt64

  init(_ status: stat) {
    device = UInt64(truncatingIfNeeded: status.st_dev)
    inode = UInt64(status.st_ino)
  }

  init(device: UInt64, inode: UInt64) { (self.device, self.inode) = (device, inode) }
}
