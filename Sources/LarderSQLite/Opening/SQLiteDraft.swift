internal import Foundation
internal import Larder

/// The creation of a store or copy under a temporary name that is renamed when complete, so that a crash leaves none or a whole one.
enum SQLiteDraft {
  private static func files(of draft: String) -> [String] { ["", "-journal", "-wal", "-shm"].map { draft + $0 } }

  /// Removes the files of an interrupted creation and returns their paths, and leaves other programs' files of those names.
  static func removeLeftovers(of path: SQLitePath, _ fileSystem: any FileSystem) throws(RepositoryError) -> [String] {
    var removed: [String] = []
    for draft in [path.draft] + path.otherDrafts {
      // A store or database of that name has a log or a lock. A creation writes neither.
      if SQLitePath.isPresent(draft + "-lock") || !isEmptyOrAbsent(draft + "-wal") { continue }
      // SQLite makes plain files only. Another entry was put there by another program, and stays with the files beside it. A creation takes
      // another name.
      if files(of: draft).contains(where: isNotPlain) { continue }
      if SQLitePath.isAbsent(draft) {
        removed += removeOrphans(of: draft, fileSystem)
      } else if try isLeftover(draft, fileSystem) {
        // The draft last: after an interruption here, the files beside it are recognized by it.
        for file in files(of: draft).reversed() where SQLitePath.isPresent(file) {
          try fileSystem.remove(file)
          removed.append(file)
        }
      }
    }
    return removed
  }

  private static func isNotPlain(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
  }

  private static func isEmptyOrAbsent(_ file: String) -> Bool {
    var status = stat()
    return lstat(file, &status) != 0 || status.st_mode & S_IFMT == S_IFREG && status.st_size == 0
  }

  /// Removes the files that a power cut has left beside a draft whose own name was not durable.
  ///
  /// A file that cannot be removed stays, and a creation takes another name.
  private static func removeOrphans(of draft: String, _ fileSystem: any FileSystem) -> [String] {
    files(of: draft).dropFirst().filter { file in
      do throws(RepositoryError) {
        guard try isOrphan(file, fileSystem) else { return false }
        try fileSystem.remove(file)
        return true
      } catch {
        return false
      }
    }
  }

  /// First bytes of SQLite's rollback journal.
  private static let journalMagic: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]

  private static func isOrphan(_ path: String, _ fileSystem: any FileSystem) throws(RepositoryError) -> Bool {
    guard let status = try SQLitePath.status(of: path), status.st_mode & S_IFMT == S_IFREG else { return false }
    // The index of a short log has one block of 32 KiB. A longer one served a store in use.
    if path.hasSuffix("-shm") { return status.st_size <= 32_768 }
    guard path.hasSuffix("-journal"), status.st_size <= emptySize else { return status.st_size == 0 }
    guard let file = try fileSystem.open(path, writable: false) else { return false }
    let start = try [UInt8](file.read(at: 0, count: journalMagic.count))
    try file.close()
    guard start.count == min(Int(clamping: status.st_size), journalMagic.count) else { return false }
    // SQLite writes zeros first, and the magic bytes over them, which a kill may cut short.
    let written = zip(start, journalMagic).prefix { $0 == $1 }.count
    return start.dropFirst(written).allSatisfy { $0 == 0 }
  }

  /// Largest size of a store without a record, in bytes.
  private static let emptySize = 16_384

  /// Whether a file is a store that was never completed, or completed and never used.
  private static func isLeftover(_ draft: String, _ fileSystem: any FileSystem) throws(RepositoryError) -> Bool {
    guard try SQLitePath.status(of: draft).map({ $0.st_mode & S_IFMT }) == S_IFREG,
      let file = try fileSystem.open(draft, writable: false)
    else { return false }
    let (size, header) = (try file.size(), [UInt8](try file.read(at: 0, count: 100)))
    try file.close()
    // A disk that returns fewer bytes than there are must not make a database look like the beginning of one.
    guard header.count == min(size, 100) else { return false }
    if size == 0 { return true }
    let magic = Array("SQLite format 3\u{0}".utf8)
    let isDatabase = header.starts(with: magic)
    // A kill may cut the first write after any byte.
    if header.count < 100, header.starts(with: magic.prefix(header.count)) { return true }
    guard size <= emptySize, isDatabase || header.allSatisfy({ $0 == 0 }) else { return false }
    guard isDatabase, let connection = try SQLiteConnection(path: draft, .immutable) else { return true }
    do throws(RepositoryError) {
      _ = try SQLiteLayout.collections(on: connection)
      return try SQLiteStoreRow(on: connection).commit == 0
    } catch {
      // Half a store, by its application id, and not a database of another program.
      return header.count == 100 && header[68..<72].elementsEqual([0x4C, 0x52, 0x44, 0x52])
    }
  }

  /// Returns a draft's path under which there is no file, or throws `.alreadyExists` if all are taken.
  private static func freeName(_ path: SQLitePath) throws(RepositoryError) -> String {
    for draft in [path.draft] + path.otherDrafts where files(of: draft).allSatisfy(SQLitePath.isAbsent) { return draft }
    throw RepositoryError(
      .alreadyExists, "expected no file under the name of a store that is being created, found one: move it away", file: path.draft)
  }

  /// Creates an empty store, durably.
  static func create(_ path: SQLitePath, _ row: SQLiteStoreRow, _ fileSystem: any FileSystem) throws(RepositoryError) {
    try make(path, freeName(path), fileSystem) { draft throws(RepositoryError) in try fill(draft, row) }
  }

  /// Writes a durable, compact copy of a connection's database under a temporary name and renames it.
  ///
  /// Removes the files of earlier copies to this path that were interrupted.
  /// - Parameter isRepeated: Whether the caller has made a copy at this path before, which the new one replaces.
  /// - Throws: `.alreadyExists`. `.inputOutput` also where a read of the copy failed and the store is sound, and where the copy could not
  ///   be synced.
  static func copy(
    of connection: SQLiteConnection, to path: SQLitePath, replacing isRepeated: Bool = false, _ fileSystem: any FileSystem
  ) throws(RepositoryError) {
    guard isRepeated || SQLitePath.isAbsent(path.main) else {
      throw RepositoryError(.alreadyExists, "expected no file at the path of the copy, found one: choose another path", file: path.main)
    }
    removeInterruptedCopies(to: path, fileSystem)
    do throws(RepositoryError) {
      try make(path, path.newCopy, fileSystem) { draft throws(RepositoryError) in
        try connection.withAttachment { () throws(RepositoryError) in
          let statement = try connection.prepare("VACUUM INTO ?1")
          try statement.bind(draft, at: 1)
          try statement.run(while: .copying)
        }
      }
    } catch {
      // The damage may be in the copy's new file, and a caller would restore a backup over a sound store.
      if error.code == .corrupted, try connection.problemCount(.quick, limit: 1) == 0 {
        throw RepositoryError(
          .inputOutput, "the disk failed during a read of the copy, and the store is sound: check the disk, and try again",
          file: path.main, underlying: error)
      }
      // A copy has no commits to be in doubt: it is removed, and may be made again.
      if error.code != .outcomeUnknown { throw error }
      throw RepositoryError(
        .inputOutput, "the copy could not be synced: check the disk, and try again", file: path.main, underlying: error)
    }
  }

  /// Removes the files of interrupted copies, which a copy in progress is not, since it is locked.
  private static func removeInterruptedCopies(to path: SQLitePath, _ fileSystem: any FileSystem) {
    // A file that cannot be read or removed must not keep the new copy from being made.
    do throws(RepositoryError) {
      for name in try (fileSystem.entries(of: path.directory) ?? []).filter(path.isCopy) {
        let draft = (path.directory == "/" ? "" : path.directory) + "/" + name
        guard !isNotPlain(draft) else { continue }
        let lock: SQLiteFileLock?
        do throws(RepositoryError) { lock = try SQLiteFileLock.lock(draft, .exclusive) } catch { continue }
        defer { lock?.release() }
        for other in files(of: draft).reversed() { try fileSystem.remove(other) }
      }
    } catch {}
  }

  /// Runs `body` to write a database under a temporary name, syncs it, and renames it.
  private static func make(
    _ path: SQLitePath, _ draft: String, _ fileSystem: any FileSystem, _ body: (String) throws(RepositoryError) -> Void
  ) throws(RepositoryError) {
    do {
      // Created here, because this sets mode 0600 under any umask. SQLite gives the log and its index the mode of the database.
      let file = try fileSystem.create(draft)
      let lock = try SQLiteFileLock.lock(draft, .exclusive)
      defer { lock?.release() }
      try body(draft)
      // Before the rename: a power cut must not leave the name with contents that are not on the disk.
      try sync(draft, fileSystem)
      try fileSystem.rename(draft, to: path.main)
      // Not earlier: closing a descriptor drops the locks of SQLite's own connection.
      try file.close()
      try fileSystem.syncDirectory(path.directory)
    } catch {
      // The first failure is the one to report. The next open or copy removes a draft that stays.
      do { for file in files(of: draft) { try fileSystem.remove(file) } } catch {}
      throw error
    }
  }

  private static func fill(_ draft: String, _ row: SQLiteStoreRow) throws(RepositoryError) {
    guard let connection = try SQLiteConnection(path: draft, .readWrite) else {
      throw RepositoryError(.dataMissing, "the file was removed while it was created: try again", file: draft)
    }
    // Builds of SQLite differ in their defaults, so everything that the format depends on is set.
    let format = ["page_size = 4096", "encoding = 'UTF-8'", "auto_vacuum = NONE", "journal_mode = DELETE", "synchronous = FULL"]
    for pragma in format { try connection.execute("PRAGMA \(pragma)") }
    try connection.prepareForWriting()
    try connection.execute("BEGIN IMMEDIATE")
    try connection.execute("PRAGMA application_id = \(SQLiteLayout.applicationID)")
    try connection.execute("PRAGMA user_version = \(SQLiteLayout.formatVersion)")
    try connection.execute(SQLiteLayout.createStore)
    try connection.execute(SQLiteLayout.createTombstones)
    // The statement must be finalized before the connection closes.
    do {
      let statement = try connection.prepare(SQLiteStoreRow.insert)
      try row.bind(to: statement)
      try statement.run()
    }
    try connection.execute("COMMIT", while: .committing)
    // The header keeps this mode: every later connection uses a write-ahead log.
    try connection.execute("PRAGMA journal_mode = WAL")
    try connection.close()
  }

  /// Syncs a database file that no connection of this process has open.
  ///
  /// Closing the descriptor would drop the locks of a connection.
  static func sync(_ path: String, _ fileSystem: any FileSystem) throws(RepositoryError) {
    guard let file = try fileSystem.open(path, writable: true) else {
      throw RepositoryError(.dataMissing, "the file was removed while it was written: try again", file: path)
    }
    try file.sync()
    try file.close()
  }
}
