internal import Foundation
internal import Larder

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Which file a name stands for.
struct SQLiteFileIdentity: Hashable {
  private let device: UInt64
  private let inode: UInt64

  init(_ status: stat) {
    device = UInt64(truncatingIfNeeded: status.st_dev)
    inode = UInt64(truncatingIfNeeded: status.st_ino)
  }

  /// The file at a path; `nil` when there is none.
  init?(at path: String) throws(RepositoryError) {
    guard let status = try SQLitePath.status(of: path) else { return nil }
    self.init(status)
  }
}

/// Where a store's files are.
struct SQLitePath {
  let directory: String
  let main: String

  var log: String { main + "-wal" }
  /// SQLite's index of the log.
  var logIndex: String { main + "-shm" }
  var lock: String { main + "-lock" }
  /// A store that is being created; it gets its name when it is complete.
  var draft: String { main + "-new" }
  /// Other names for it, where something lies under that one which is not ours.
  var otherDrafts: [String] { (2...9).map { "\(main)-new\($0)" } }
  var rollbackJournal: String { main + "-journal" }

  /// The longest of the endings that SQLite or this module puts behind a name: "-new-journal".
  private static let longestEnding = 12
  /// The most bytes that a name may have on the file systems of today.
  private static let nameLimit = 255
  /// The most bytes that SQLite takes for a path.
  private static let pathLimit = 512

  /// A copy of a log that was not whole, by the last commit in it and the place of the damage; of a long name only the beginning is kept.
  func quarantine(commit: UInt64, offset: Int) -> String {
    let ending = "-quarantine-\(commit)-\(offset)"
    return directoryPrefix + beginning(before: ending.utf8.count + 4) + ending  // 4: "-tmp", or "-due"
  }

  /// Where a quarantine file lies until its cut was reported.
  static func unreported(_ quarantine: String) -> String { quarantine + "-due" }

  /// What a name in this directory says that ``unreported(_:)`` has made: the path of the file when it was reported, and where the damage begins.
  func unreportedCut(_ name: String) -> (quarantine: String, offset: Int)? {
    guard name.hasSuffix("-due"), let middle = name.range(of: "-quarantine-", options: .backwards) else { return nil }
    let numbers = name[middle.upperBound...].dropLast(4).split(separator: "-")
    guard numbers.count == 2, let commit = UInt64(numbers[0]), let offset = Int(numbers[1]) else { return nil }
    let path = quarantine(commit: commit, offset: offset)
    return Self.unreported(path) == directoryPrefix + name ? (path, offset) : nil
  }

  /// A new name for a copy that is being made.
  var newCopy: String {
    directoryPrefix + beginning(before: Self.copyEnding) + "-copy-" + Self.hexadecimal(UInt64.random(in: .min ... .max)) + "-tmp"
  }

  /// As long as what ``newCopy`` puts behind a name, and SQLite behind that: "-copy-", 16 digits, "-tmp" and "-journal".
  private static let copyEnding = 34

  /// Whether a name in this directory is one that ``newCopy`` has made.
  func isCopy(_ other: String) -> Bool {
    let beginning = beginning(before: Self.copyEnding) + "-copy-"
    guard other.hasPrefix(beginning), other.hasSuffix("-tmp") else { return false }
    let number = other.utf8.dropFirst(beginning.utf8.count).dropLast(4)
    return number.count == 16 && number.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }

  private static func hexadecimal(_ number: UInt64) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  private var directoryPrefix: String { directory == "/" ? "/" : directory + "/" }

  /// The file's name, or as much of it as leaves room for so many bytes behind it.
  private func beginning(before count: Int) -> String {
    var name = String(main.dropFirst(directoryPrefix.count))
    while name.utf8.count + count > Self.nameLimit || directoryPrefix.utf8.count + name.utf8.count + count > Self.pathLimit, !name.isEmpty {
      name.removeLast()
    }
    return name
  }

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
    let (name, all) = (file.lastPathComponent.utf8.count + Self.longestEnding, main.utf8.count + Self.longestEnding)
    guard name <= Self.nameLimit, all <= Self.pathLimit else {
      throw RepositoryError(
        .unsupported,
        "the name is too long for the files beside it: expected at most \(Self.nameLimit - Self.longestEnding) bytes, "
          + "and \(Self.pathLimit - Self.longestEnding) with all directories", file: main)
    }
  }

  /// Refuses whatever is not a plain file under a name that SQLite would open, and a database that has several names.
  func checkKinds() throws(RepositoryError) {
    for path in [main, log, logIndex, rollbackJournal, lock] {
      guard let status = try Self.status(of: path) else { continue }
      let kind = status.st_mode & S_IFMT
      guard kind == S_IFREG else {
        let found =
          kind == S_IFLNK ? "a symbolic link, which is not followed" : kind == S_IFDIR ? "a directory" : "a device, pipe or socket"
        throw RepositoryError(.unsupported, "expected a plain file, found \(found)", file: path)
      }
      // The log lies beside one of the names: whoever comes by another one would not see it.
      guard path != main || status.st_nlink <= 1 else {
        throw RepositoryError(
          .unsupported, "the file has \(status.st_nlink) names (hard links), expected one: remove the others", file: path)
      }
    }
  }

  /// Refuses a rollback journal that SQLite would roll into the database.
  ///
  /// A store never has one: it belongs to another copy, or to another program. SQLite leaves one alone that is empty or begins with zero.
  func checkRollbackJournal(_ fileSystem: any FileSystem) throws(RepositoryError) {
    guard let file = try fileSystem.open(rollbackJournal, writable: false) else { return }
    let first = try file.read(at: 0, count: 1).first
    try file.close()
    guard let first, first != 0 else { return }
    throw RepositoryError(
      .notOurStore, "expected no rollback journal beside the store, found one that SQLite would roll into it: move it away",
      file: rollbackJournal)
  }

  /// Returns what there is at a path, itself and not what a link leads to; `nil` when there is nothing.
  static func status(of path: String) throws(RepositoryError) -> stat? {
    var status = stat()
    guard lstat(path, &status) != 0 else { return status }
    switch errno {
    case ENOENT, ENOTDIR: return nil
    case let number:
      let code: RepositoryError.Code = number == EACCES || number == EPERM ? .protectedDataUnavailable : .inputOutput
      throw RepositoryError(
        code, "the file cannot be reached", file: path, underlying: SystemCallError(call: "lstat", errorNumber: number))
    }
  }

  /// Gives a file that was made for the store to the owner of the store: root may open what belongs to somebody else.
  ///
  /// SQLite does the same for the log and its index. What fails here costs that owner a lock file that he cannot open after a crash.
  func giveToOwner(_ file: String) {
    var status = stat()
    guard geteuid() == 0, lstat(main, &status) == 0, status.st_uid != 0 else { return }
    _ = lchown(file, status.st_uid, status.st_gid)
  }

  /// Whether there is nothing at a path, without opening what may be there; `false` when that cannot be known.
  static func isAbsent(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) != 0 && errno == ENOENT
  }
}
