internal import Foundation
internal import Larder

/// The paths of a store's files.
struct SQLitePath {
  let directory: String
  let main: String

  var log: String { main + "-wal" }
  /// SQLite's index of the log.
  var logIndex: String { main + "-shm" }
  var lock: String { main + "-lock" }
  /// The path of a store that is being created; it gets its name when it is complete.
  var draft: String { main + "-new" }
  /// Other paths for it, where the first one holds a file of another program.
  var otherDrafts: [String] { (2...9).map { "\(main)-new\($0)" } }
  var rollbackJournal: String { main + "-journal" }

  /// The longest of the endings that SQLite or this module puts behind a name: "-new-journal".
  private static let longestEnding = 12
  /// The most bytes that a name may have on the file systems of today.
  private static let nameLimit = 255
  /// The most bytes that SQLite takes for a path.
  private static let pathLimit = 512

  /// Returns the path for a copy of a torn log, named after its last commit and the offset of the damage.
  ///
  /// Of a long name only the beginning is kept.
  func quarantine(commit: UInt64, offset: Int) -> String {
    let ending = "-quarantine-\(commit)-\(offset)"
    return directoryPrefix + beginning(before: ending.utf8.count + 4) + ending  // 4: "-tmp", or "-due"
  }

  /// Returns the path of a quarantine file before its cut was reported.
  static func unreported(_ quarantine: String) -> String { quarantine + "-due" }

  /// Reads a name that ``unreported(_:)`` has made: the path that the file gets once it is reported, and the offset of the damage.
  func unreportedCut(_ name: String) -> (quarantine: String, offset: Int)? {
    guard name.hasSuffix("-due"), let middle = name.range(of: "-quarantine-", options: .backwards) else { return nil }
    let numbers = name[middle.upperBound...].dropLast(4).split(separator: "-")
    guard numbers.count == 2, let commit = UInt64(numbers[0]), let offset = Int(numbers[1]) else { return nil }
    let path = quarantine(commit: commit, offset: offset)
    return Self.unreported(path).utf8.elementsEqual((directoryPrefix + name).utf8) ? (path, offset) : nil
  }

  /// A new path for a copy that is being made.
  var newCopy: String {
    directoryPrefix + beginning(before: Self.copyEnding) + "-copy-" + Self.hexadecimal(UInt64.random(in: .min ... .max)) + "-tmp"
  }

  /// The bytes that ``newCopy`` puts behind a name, and SQLite behind that: "-copy-", 16 digits, "-tmp" and "-journal".
  private static let copyEnding = 34

  /// Whether ``newCopy`` has made a name in this directory.
  func isCopy(_ other: String) -> Bool {
    let beginning = beginning(before: Self.copyEnding) + "-copy-"
    // By their bytes: texts that are equal but for their Unicode form name two files.
    guard other.utf8.starts(with: beginning.utf8), other.hasSuffix("-tmp") else { return false }
    let number = other.utf8.dropFirst(beginning.utf8.count).dropLast(4)
    return number.count == 16 && number.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }

  private static func hexadecimal(_ number: UInt64) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  private var directoryPrefix: String { directory == "/" ? "/" : directory + "/" }

  /// Returns the file's name, cut so that it leaves room for some bytes behind it.
  private func beginning(before count: Int) -> String {
    // By bytes: a name may begin with a mark that combines with the "/" before it.
    var name = String(Substring(main.utf8.dropFirst(directoryPrefix.utf8.count)))
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
    // Byte for byte: `URL.lastPathComponent` leaves out a byte order mark, and the store would be another file.
    let fileName = path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(Substring($0)) } ?? "/"
    main = (directory == "/" ? "" : directory) + "/" + fileName
    let (name, all) = (fileName.utf8.count + Self.longestEnding, main.utf8.count + Self.longestEnding)
    guard name <= Self.nameLimit, all <= Self.pathLimit else {
      throw RepositoryError(
        .unsupported,
        "the name is too long for the files beside it: expected at most \(Self.nameLimit - Self.longestEnding) bytes, "
          + "and \(Self.pathLimit - Self.longestEnding) with all directories", file: main)
    }
  }

  /// Refuses anything but a plain file at a path that SQLite would open, and a file of the store with several names.
  func checkKinds() throws(RepositoryError) {
    for path in [main, log, logIndex, rollbackJournal, lock] {
      guard let status = try Self.status(of: path) else { continue }
      let kind = status.st_mode & S_IFMT
      guard kind == S_IFREG else {
        let found =
          kind == S_IFLNK ? "a symbolic link, which is not followed" : kind == S_IFDIR ? "a directory" : "a device, pipe or socket"
        throw RepositoryError(.unsupported, "expected a plain file, found \(found)", file: path)
      }
      // The log lies beside one of the names: an open by another name would miss it. And SQLite cuts and overwrites the files beside it,
      // which are another program's too where they have another name.
      guard path == rollbackJournal || status.st_nlink <= 1 else {
        throw RepositoryError(
          .unsupported, "the file has \(status.st_nlink) names (hard links), expected one: remove the others", file: path)
      }
    }
  }

  /// Refuses a rollback journal that SQLite would roll into the database.
  ///
  /// A store never has one: it belongs to another copy, or to another program. SQLite ignores one that is empty or begins with zero.
  func checkRollbackJournal(_ fileSystem: any FileSystem) throws(RepositoryError) {
    guard !Self.isAbsent(main), let file = try fileSystem.open(rollbackJournal, writable: false) else { return }
    let first = try SQLiteLogInspection.read(file, at: 0, count: 1).first
    try file.close()
    guard let first, first != 0 else { return }
    throw RepositoryError(
      .notOurStore, "expected no rollback journal beside the store, found one that SQLite would roll into it: move it away",
      file: rollbackJournal)
  }

  /// The error for a database that was removed while it was in use.
  var vanished: RepositoryError {
    RepositoryError(.dataMissing, "the file was removed while it was in use: bring it back, and open the store again", file: main)
  }

  /// The error for a database that is not the one that was suspended.
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

  /// Returns the status of the entry at a path, without following a link; `nil` when there is none.
  static func status(of path: String) throws(RepositoryError) -> stat? {
    var status = stat()
    guard lstat(path, &status) != 0 else { return status }
    switch errno {
    case ENOENT, ENOTDIR: return nil
    case let number:
      throw RepositoryError("the file cannot be reached: check its permissions", call: "lstat", errorNumber: number, file: path)
    }
  }

  /// Gives a file that was made for the store to the store's owner, because root may open a store of another user.
  ///
  /// SQLite does the same for the log and its index. A failure is ignored: it costs the owner a lock file that stays locked after a crash.
  func giveToOwner(_ file: String) {
    var status = stat()
    guard geteuid() == 0, lstat(main, &status) == 0, status.st_uid != 0 else { return }
    _ = lchown(file, status.st_uid, status.st_gid)
  }

  /// Whether a path holds something; `false` when that cannot be known.
  static func isPresent(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }

  /// Whether a path holds nothing; `false` when that cannot be known.
  static func isAbsent(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) != 0 && errno == ENOENT
  }
}
