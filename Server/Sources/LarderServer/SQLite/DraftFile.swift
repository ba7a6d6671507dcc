package import Foundation

/// A file that is written under a name of its own beside its place, and renamed when it is whole and synced.
package struct DraftFile: Sendable {
  /// The file that the name leads to.
  ///
  /// A rename onto a link would replace the link, and leave the file as it is.
  let target: String
  /// The draft.
  package let path: String

  /// Chooses the name of a draft.
  ///
  /// - Throws: ``ServerError`` where a folder, a device or a circle of links has the name.
  package init(for name: String) throws(ServerError) {
    target = try Self.followed(name)
    let kind = FileManager.default.attributes(ofFileAt: target)[.type] as? FileAttributeType
    guard kind == nil || kind == .typeRegular else {
      throw ServerError(expected: "a file at \(name)", found: "something else", advice: "name another file")
    }
    // Without the name of the file, which may be as long as a name can be.
    path = Self.folder(of: target) + ".larder-server-\(String(UInt32.random(in: .min ... .max), radix: 16)).draft"
  }

  /// Writes the draft.
  ///
  /// - Throws: ``ServerError``, after which there is no draft.
  package func write(_ data: Data, permissions: mode_t) throws(ServerError) {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions)
    guard descriptor >= 0 else { throw failure(errno) }
    do { try FileHandle(fileDescriptor: descriptor, closeOnDealloc: true).write(contentsOf: data) } catch {
      discard()
      let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError ?? error as NSError
      throw failure(cause.domain == NSPOSIXErrorDomain ? Int32(cause.code) : EIO)
    }
  }

  /// Syncs the draft, and gives it its name.
  ///
  /// - Parameter replaces: Whether a file of that name goes. Otherwise one that was made since is left as it is: it may be in use.
  /// - Throws: ``ServerError``, after which there is no draft, and the file is as it was.
  package func publish(replacing replaces: Bool) throws(ServerError) {
    let code = Self.sync(path) ?? (replaces ? Self.number(rename(path, target)) : place())
    if let code {
      discard()
      guard code != EEXIST else { throw ServerError(expected: "no file at \(target)", found: "one", advice: "name another file") }
      throw failure(code)
    }
    // Some systems do not sync folders. The file is whole all the same, under its old contents or its new ones.
    _ = Self.sync(Self.folder(of: target))
  }

  /// Gives the draft a name that no file has, and returns the error number.
  private func place() -> Int32? {
    guard let code = Self.number(link(path, target)) else {
      unlink(path)
      return nil
    }
    // Some file systems, such as exFAT, give a file one name alone. There, a file is lost that another program makes between the two calls.
    guard [EPERM, ENOTSUP, EOPNOTSUPP, ENOSYS].contains(code) else { return code }
    return FileManager.default.fileExists(atPath: target) ? EEXIST : Self.number(rename(path, target))
  }

  /// Removes the draft, and the files that SQLite makes beside it.
  package func discard() { for suffix in ["", "-journal", "-wal", "-shm"] { unlink(path + suffix) } }

  /// Returns the error number of a call.
  ///
  /// `nil` for a call that has succeeded.
  private static func number(_ result: Int32) -> Int32? { result == 0 ? nil : errno }

  /// Syncs a file or a folder, and returns the error number.
  ///
  /// `nil` for a sync that has succeeded.
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

  /// Returns the file that a name leads to, which need not be there.
  private static func followed(_ name: String) throws(ServerError) -> String {
    var path = name
    // As many links as Linux follows.
    for _ in 0..<40 {
      let link: String
      do { link = try FileManager.default.destinationOfSymbolicLink(atPath: path) } catch { return path }
      path = link.hasPrefix("/") ? link : folder(of: path) + link
    }
    throw ServerError(expected: "a file at \(name)", found: "links that lead in a circle", advice: "name the file itself")
  }
}
