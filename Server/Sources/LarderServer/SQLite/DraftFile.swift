package import Foundation

/// File that is written under a temporary name beside its target, and renamed once it is complete and synced.
package struct DraftFile: Sendable {
  /// File that the given name leads to through symbolic links.
  ///
  /// A rename onto a link would replace the link and leave its file as it is.
  let target: String
  /// Path of the draft, which is the temporary file.
  package let path: String

  /// Chooses the path of a draft for a target.
  ///
  /// - Throws: ``ServerError`` if the name leads to a folder, a device or a circle of links.
  package init(for name: String) throws(ServerError) {
    target = try Self.followed(name)
    let kind = FileManager.default.attributes(ofFileAt: target)[.type] as? FileAttributeType
    guard kind == nil || kind == .typeRegular else {
      throw ServerError(expected: "a file at \(name)", found: "something else", advice: "name another file")
    }
    // In the folder of the target, since a rename cannot leave its file system. The target's name may have the greatest length already.
    path = Self.folder(of: target) + ".larder-server-\(String(UInt32.random(in: .min ... .max), radix: 16)).draft"
  }

  /// Writes data to the draft, which must not exist.
  ///
  /// - Throws: ``ServerError``. There is no draft then.
  package func write(_ data: Data, permissions: mode_t) throws(ServerError) {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions)
    guard descriptor >= 0 else { throw failure(errno) }
    do { try FileHandle(fileDescriptor: descriptor, closeOnDealloc: true).write(contentsOf: data) } catch {
      discard()
      // Foundation wraps the POSIX error, whose code decides the advice.
      let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError ?? error as NSError
      throw failure(cause.domain == NSPOSIXErrorDomain ? Int32(cause.code) : EIO)
    }
  }

  /// Syncs the draft and renames it to its target.
  ///
  /// - Parameter replaces: Whether an existing target is replaced. Otherwise a file that was made meanwhile stays, as it may be in use.
  /// - Throws: ``ServerError``. There is no draft then, and the target is as it was.
  package func publish(replacing replaces: Bool) throws(ServerError) {
    // Synced before the rename, or a crash could leave the name with an incomplete file.
    let code = Self.sync(path) ?? (replaces ? Self.number(rename(path, target)) : place())
    if let code {
      discard()
      guard code != EEXIST else { throw ServerError(expected: "no file at \(target)", found: "one", advice: "name another file") }
      throw failure(code)
    }
    // Some systems cannot sync a folder. After a crash, the name then has the old contents or the new ones, each of them whole.
    _ = Self.sync(Self.folder(of: target))
  }

  /// Renames the draft to its target unless a file has that name, and returns the error number or `nil`.
  private func place() -> Int32? {
    // `link` fails if the name exists, and `rename` would replace the file.
    guard let code = Self.number(link(path, target)) else {
      unlink(path)
      return nil
    }
    // Some file systems, such as exFAT, have no hard links. There an empty file takes the name first, which one process alone can make.
    guard [EPERM, ENOTSUP, EOPNOTSUPP, ENOSYS].contains(code) else { return code }
    let descriptor = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return errno }
    close(descriptor)
    guard let code = Self.number(rename(path, target)) else { return nil }
    unlink(target)
    return code
  }

  /// Removes the draft and the files that SQLite makes beside it.
  package func discard() { for suffix in ["", "-journal", "-wal", "-shm"] { unlink(path + suffix) } }

  /// Returns the error number of a failed system call, or `nil` for a result of 0.
  private static func number(_ result: Int32) -> Int32? { result == 0 ? nil : errno }

  /// Syncs a file or a folder, and returns the error number or `nil`.
  private static func sync(_ path: String) -> Int32? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return errno }
    defer { close(descriptor) }
    return fsync(descriptor) == 0 ? nil : errno
  }

  private func failure(_ code: Int32) -> ServerError {
    let advice =
      switch code {
      case ENOSPC, EDQUOT, EFBIG: "free some space on its disk"
      case ENOENT, ENOTDIR: "make its folder, or name another file"
      case EACCES, EPERM, EROFS: "change the owner or the mode of its folder, or name another file"
      default: "check the disk, or name another file"
      }
    return ServerError(expected: "room and permission to write \(target)", found: "'\(String(cString: strerror(code)))'", advice: advice)
  }

  private static func folder(of path: String) -> String { path.lastIndex(of: "/").map { String(path[...$0]) } ?? "./" }

  /// Returns the path that a name leads to through symbolic links.
  ///
  /// There need not be a file.
  private static func followed(_ name: String) throws(ServerError) -> String {
    var path = name
    // Linux follows 40 links as well, and a circle must end.
    for _ in 0..<40 {
      let link: String
      do { link = try FileManager.default.destinationOfSymbolicLink(atPath: path) } catch { return path }
      path = link.hasPrefix("/") ? link : folder(of: path) + link
    }
    throw ServerError(expected: "a file at \(name)", found: "links that lead in a circle", advice: "name the file itself")
  }
}
