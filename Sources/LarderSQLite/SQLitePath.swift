internal import Foundation
internal import Larder

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Where a store's files are.
struct SQLitePath {
  let directory: String
  let main: String

  var log: String { main + "-wal" }
  var lock: String { main + "-lock" }
  /// A store that is being created; it gets its name when it is complete.
  var draft: String { main + "-new" }
  var rollbackJournal: String { main + "-journal" }

  /// A copy of a log that was not whole, by the last commit in it and the place of the damage.
  func quarantine(commit: UInt64, offset: Int) -> String { "\(main)-quarantine-\(commit)-\(offset)" }

  /// Resolves the directory, because SQLite refuses links anywhere in a path; the file itself must not be one.
  ///
  /// - Parameter makeDirectory: Makes a missing directory; without it, that is `.dataMissing`.
  init(_ file: URL, makeDirectory: ((String) throws(RepositoryError) -> Void)?) throws(RepositoryError) {
    let path = file.standardizedFileURL.path(percentEncoded: false)
    guard file.isFileURL, !file.hasDirectoryPath, !path.utf8.contains(0), path.hasPrefix("/") else {
      throw RepositoryError(.unsupported, "the URL does not name a file", file: path)
    }
    let parent = file.standardizedFileURL.deletingLastPathComponent().path(percentEncoded: false)
    if Self.isAbsent(parent) {
      guard let makeDirectory else { throw RepositoryError(.dataMissing, "there is no such file", file: path) }
      try makeDirectory(parent.count > 1 && parent.hasSuffix("/") ? String(parent.dropLast()) : parent)
    }
    guard let resolved = realpath(parent, nil) else {
      let number = errno
      let code: RepositoryError.Code = number == EACCES || number == EPERM ? .protectedDataUnavailable : .inputOutput
      throw RepositoryError(
        code, "the directory cannot be reached", file: parent, underlying: SystemCallError(call: "realpath", errorNumber: number))
    }
    defer { free(resolved) }
    directory = String(cString: resolved)
    main = (directory == "/" ? "" : directory) + "/" + file.lastPathComponent
  }

  /// Whether there is nothing at a path, without opening what may be there; `false` when that cannot be known.
  static func isAbsent(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) != 0 && errno == ENOENT
  }
}
