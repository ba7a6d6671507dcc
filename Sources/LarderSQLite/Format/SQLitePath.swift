internal import Foundation
internal import Larder

/// The paths of a store's files: the database and the files beside it.
struct SQLitePath {
  let directory: String
  let main: String

  var log: String { main + "-wal" }
  /// Path of SQLite's index of the write-ahead log.
  var logIndex: String { main + "-shm" }
  var lock: String { main + "-lock" }
  /// Path of a store that is being created, which is renamed to ``main`` when it is complete.
  var draft: String { main + "-new" }
  /// Further paths for a store that is being created, for use when another program has a file at ``draft``.
  var otherDrafts: [String] { (2...9).map { "\(main)-new\($0)" } }
  var rollbackJournal: String { main + "-journal" }

  /// Length of "-new-journal", the longest ending that is usually appended to the name (those of `otherDrafts` are a byte longer).
  private static let longestEnding = 12
  /// Largest number of bytes of a file's name in common file systems.
  private static let nameLimit = 255
  /// Largest number of bytes of a path that SQLite accepts.
  private static let pathLimit = 512

  /// Returns the path for a copy of a torn write-ahead log, named after the store's newest commit and the offset of the damage.
  ///
  /// If the file name would be too long, the store's own name in it is cut short.
  func quarantine(commit: UInt64, offset: Int) -> String {
    let ending = "-quarantine-\(commit)-\(offset)"
    return directoryPrefix + beginning(before: ending.utf8.count + 4) + ending  // 4 bytes stay free for "-tmp" or "-due"
  }

  /// Returns the path at which a quarantine file, a copy of a torn write-ahead log, stays until an opening has reported the cut.
  static func unreported(_ quarantine: String) -> String { quarantine + "-due" }

  /// Parses a name that ``unreported(_:)`` made, and returns the lasting path of the quarantine file and the offset of the damage.
  func unreportedCut(_ name: String) -> (quarantine: String, offset: Int)? {
    guard name.hasSuffix("-due"), let middle = name.range(of: "-quarantine-", options: .backwards) else { return nil }
    let numbers = name[middle.upperBound...].dropLast(4).split(separator: "-")
    guard numbers.count == 2, let commit = UInt64(numbers[0]), let offset = Int(numbers[1]) else { return nil }
    let path = quarantine(commit: commit, offset: offset)
    // The path is made again from the parsed numbers and compared with the name, because another program's file may have a similar name.
    return Self.unreported(path).utf8.elementsEqual((directoryPrefix + name).utf8) ? (path, offset) : nil
  }

  /// A new, random path for a backup that is being written, in the directory of its target.
  var newCopy: String {
    directoryPrefix + beginning(before: Self.copyEnding) + "-copy-" + Self.hexadecimal(UInt64.random(in: .min ... .max)) + "-tmp"
  }

  /// Number of bytes that ``newCopy`` and SQLite append to the name of a database file: "-copy-", 16 digits, "-tmp" and "-journal".
  private static let copyEnding = 34

  /// Whether a name in this directory has the form of ``newCopy``, so that it belongs to a backup of this path.
  func isCopy(_ other: String) -> Bool {
    let beginning = beginning(before: Self.copyEnding) + "-copy-"
    // Names are compared by bytes: Swift compares strings by Unicode equivalence, and two equivalent strings can name two files.
    guard other.utf8.starts(with: beginning.utf8), other.hasSuffix("-tmp") else { return false }
    let number = other.utf8.dropFirst(beginning.utf8.count).dropLast(4)
    return number.count == 16 && number.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }

  private static func hexadecimal(_ number: UInt64) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  private var directoryPrefix: String { directory == "/" ? "/" : directory + "/" }

  /// Returns the name of the database file, cut so that `count` more bytes fit after it.
  private func beginning(before count: Int) -> String {
    // The directory is cut off by bytes, because a name may begin with a mark that combines with the "/" before it.
    var name = String(Substring(main.utf8.dropFirst(directoryPrefix.utf8.count)))
    while name.utf8.count + count > Self.nameLimit || directoryPrefix.utf8.count + name.utf8.count + count > Self.pathLimit, !name.isEmpty {
      name.removeLast()
    }
    return name
  }

  /// Creates the paths for a file URL, and resolves the links in its directory.
  ///
  /// SQLite refuses links anywhere in a path, so links to directories are resolved here. The database file itself must not be a link.
  /// - Parameter makeDirectory: A closure that creates a missing directory. Without this closure, a missing directory throws
  ///   `.dataMissing`.
  init(_ file: URL, makeDirectory: ((String) throws(RepositoryError) -> Void)?) throws(RepositoryError) {
    let path = file.standardizedFileURL.path(percentEncoded: false)
    guard file.isFileURL, !file.hasDirectoryPath, !path.utf8.contains(0), path.hasPrefix("/") else {
      throw RepositoryError(.unsupported, "expected a file URL with the path of a file, found \(file.absoluteString)", file: path)
    }
    let parent = file.standardizedFileURL.deletingLastPathComponent().path(percentEncoded: false)
    if Self.isAbsent(parent) {
      guard let makeDirectory else {
        throw RepositoryError(.dataMissing, "expected a store to read, found no directory of this path", file: path)
      }
      try makeDirectory(parent.count > 1 && parent.hasSuffix("/") ? String(parent.dropLast()) : parent)
    }
    guard let resolved = realpath(parent, nil) else {
      throw RepositoryError("the directory cannot be reached: check its permissions", call: "realpath", errorNumber: errno, file: parent)
    }
    defer { free(resolved) }
    directory = String(cString: resolved)
    // The name is taken byte for byte, because `URL.lastPathComponent` leaves out a byte order mark, and would name another file.
    let fileName = path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(Substring($0)) } ?? "/"
    main = (directory == "/" ? "" : directory) + "/" + fileName
    // SQLite and this module append endings to the name of the database file, and the longest resulting name must fit the limits too.
    let (name, all) = (fileName.utf8.count + Self.longestEnding, main.utf8.count + Self.longestEnding)
    guard name <= Self.nameLimit, all <= Self.pathLimit else {
      throw RepositoryError(
        .unsupported,
        "the name is too long for the files beside it: expected at most \(Self.nameLimit - Self.longestEnding) bytes, "
          + "and \(Self.pathLimit - Self.longestEnding) with all directories", file: main)
    }
  }

  /// Throws `.unsupported` if a file of the store is not a plain file, or has several names (hard links) and is no rollback journal.
  func checkKinds() throws(RepositoryError) {
    for path in [main, log, logIndex, rollbackJournal, lock] {
      guard let status = try Self.status(of: path) else { continue }
      let kind = status.st_mode & S_IFMT
      guard kind == S_IFREG else {
        let found =
          kind == S_IFLNK ? "a symbolic link, which is not followed" : kind == S_IFDIR ? "a directory" : "a device, pipe or socket"
        throw RepositoryError(.unsupported, "expected a plain file, found \(found)", file: path)
      }
      // If a database has several names (hard links), its write-ahead log lies beside one of them, and an opening by another name would
      // miss the log. SQLite also cuts and overwrites the files beside the database, which under a second name may belong to another
      // program.
      guard path == rollbackJournal || status.st_nlink <= 1 else {
        throw RepositoryError(
          .unsupported, "the file has \(status.st_nlink) names (hard links), expected one: remove the others", file: path)
      }
    }
  }

  /// Throws `.notOurStore` for a rollback journal that SQLite would roll into the database.
  ///
  /// A store never has a rollback journal, so such a journal belongs to another copy of the store or to another program. SQLite ignores a
  /// journal that is empty or begins with a zero byte.
  func checkRollbackJournal(_ fileSystem: any FileSystem) throws(RepositoryError) {
    guard !Self.isAbsent(main), let file = try fileSystem.open(rollbackJournal, writable: false) else { return }
    let first = try SQLiteLogInspection.read(file, at: 0, count: 1).first
    try file.close()
    guard let first, first != 0 else { return }
    throw RepositoryError(
      .notOurStore, "expected no rollback journal beside the store, found one that SQLite would roll into it: move it away",
      file: rollbackJournal)
  }

  /// The error for a database file that was removed while it was in use.
  var vanished: RepositoryError {
    RepositoryError(.dataMissing, "the file was removed while it was in use: bring it back, and open the store again", file: main)
  }

  /// The error for a database file at this path that is not the one of the suspended store.
  var replaced: RepositoryError {
    RepositoryError(
      .dataMissing,
      "expected the database that was suspended, found another or an older one in its place: move it back and resume the store, or close it",
      file: main)
  }

  /// The error for a write to a store that was opened `.readOnly`.
  var readOnlyRefusal: RepositoryError {
    RepositoryError(
      .unsupported, "expected a store open for writing, found one opened `.readOnly`: open it `.exclusive` or `.shared`", file: main)
  }

  /// Returns the status of the directory entry at a path without following a link, or `nil` when there is no entry.
  static func status(of path: String) throws(RepositoryError) -> stat? {
    var status = stat()
    guard lstat(path, &status) != 0 else { return status }
    switch errno {
    case ENOENT, ENOTDIR: return nil
    case let number:
      throw RepositoryError("the file cannot be reached: check its permissions", call: "lstat", errorNumber: number, file: path)
    }
  }

  /// Gives a file beside the database to the database's owner, because root may open a store of another user.
  ///
  /// SQLite also gives the write-ahead log and its index to the database's owner. A failure to change the owner is ignored, because it
  /// matters only if a crash leaves a lock file that belongs to root and that the owner of the store cannot lock.
  func giveToOwner(_ file: String) {
    var status = stat()
    guard geteuid() == 0, lstat(main, &status) == 0, status.st_uid != 0 else { return }
    _ = lchown(file, status.st_uid, status.st_gid)
  }

  /// Whether there is a directory entry at a path.
  ///
  /// The result is also false if the status of the entry cannot be read.
  static func isPresent(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }

  /// Whether there is no directory entry at a path.
  ///
  /// The result is false if the status of the entry cannot be read for another reason than absence.
  static func isAbsent(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) != 0 && errno == ENOENT
  }
}
