internal import Foundation
internal import Larder

/// Creates a store or copy under a temporary name (a draft) and renames it when complete, so a crash leaves a whole store or none.
enum SQLiteDraft {
  private static func files(of draft: String) -> [String] { ["", "-journal", "-wal", "-shm"].map { draft + $0 } }

  /// Removes the draft files of an interrupted creation of the store, and returns their paths.
  ///
  /// Files of other programs stay, even if they have the names that a draft (an unfinished store) would have.
  static func removeLeftovers(of path: SQLitePath, _ fileSystem: any FileSystem) throws(RepositoryError) -> [String] {
    var removed: [String] = []
    for draft in [path.draft] + path.otherDrafts {
      // A draft (an unfinished store under a temporary name) has no lock file and no frame in a write-ahead log. A database with a lock
      // file or such a frame belongs to a program that uses it, and its files stay.
      if SQLitePath.isPresent(draft + "-lock") || !isEmptyOrAbsent(draft + "-wal") { continue }
      // SQLite makes plain files only. A directory entry of another kind was made by another program, so the entry and the files beside it
      // stay, and a new store uses another temporary name.
      if files(of: draft).contains(where: isNotPlain) { continue }
      if SQLitePath.isAbsent(draft) {
        removed += removeOrphans(of: draft, fileSystem)
      } else if try isLeftover(draft, fileSystem) {
        // The database file of the draft is removed last. If the process is killed between two removals, the next opening recognizes the
        // remaining files by that database file.
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

  /// Removes the files that are left beside a draft (an unfinished store) whose database file was lost in a power cut.
  ///
  /// If one of these files cannot be removed, the next creation of a store uses another temporary name.
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
    // The `-shm` file of an unfinished store has one block of 32 KiB. A longer `-shm` file belonged to a database in use.
    if path.hasSuffix("-shm") { return status.st_size <= 32_768 }
    guard path.hasSuffix("-journal"), status.st_size <= emptySize else { return status.st_size == 0 }
    guard let file = try fileSystem.open(path, writable: false) else { return false }
    let start = try [UInt8](file.read(at: 0, count: journalMagic.count))
    try file.close()
    guard start.count == min(Int(clamping: status.st_size), journalMagic.count) else { return false }
    // SQLite first writes zeros to a new rollback journal and then the magic bytes over them. If the process was killed, only some of the
    // magic bytes may have been written.
    let written = zip(start, journalMagic).prefix { $0 == $1 }.count
    return start.dropFirst(written).allSatisfy { $0 == 0 }
  }

  /// Largest size of a store that holds no record, in bytes.
  private static let emptySize = 16_384

  /// Whether the file is an unfinished store, or a finished store that was never used.
  private static func isLeftover(_ draft: String, _ fileSystem: any FileSystem) throws(RepositoryError) -> Bool {
    guard try SQLitePath.status(of: draft).map({ $0.st_mode & S_IFMT }) == S_IFREG,
      let file = try fileSystem.open(draft, writable: false)
    else { return false }
    let (size, header) = (try file.size(), [UInt8](try file.read(at: 0, count: 100)))
    try file.close()
    // If the disk returns fewer bytes than the file has, a whole database could look like a draft cut short, and would be removed.
    guard header.count == min(size, 100) else { return false }
    if size == 0 { return true }
    let magic = Array("SQLite format 3\u{0}".utf8)
    let isDatabase = header.starts(with: magic)
    // If the process was killed during SQLite's first write to the file, the file may end after any byte of the header.
    if header.count < 100, header.starts(with: magic.prefix(header.count)) { return true }
    guard size <= emptySize, isDatabase || header.allSatisfy({ $0 == 0 }) else { return false }
    guard isDatabase, let connection = try SQLiteConnection(path: draft, .immutable) else { return true }
    do throws(RepositoryError) {
      _ = try SQLiteLayout.collections(on: connection)
      return try SQLiteStoreRow(on: connection).commit == 0
    } catch {
      // The application id shows an unfinished store of Larder. A database of another program has another application id, and stays.
      return header.count == 100 && header[68..<72].elementsEqual([0x4C, 0x52, 0x44, 0x52])
    }
  }

  /// Returns a free path for a store that is being created, or throws `.alreadyExists` if all such paths are taken.
  private static func freeName(_ path: SQLitePath) throws(RepositoryError) -> String {
    for draft in [path.draft] + path.otherDrafts where files(of: draft).allSatisfy(SQLitePath.isAbsent) { return draft }
    throw RepositoryError(
      .alreadyExists, "expected no file under the name of a store that is being created, found one: move it away", file: path.draft)
  }

  /// Creates an empty store that is durable when the call returns.
  static func create(_ path: SQLitePath, row: SQLiteStoreRow, in fileSystem: any FileSystem) throws(RepositoryError) {
    try make(path, draft: freeName(path), in: fileSystem) { draft throws(RepositoryError) in try fill(draft, row) }
  }

  /// Writes a durable, compact copy of a connection's database under a temporary name and renames it.
  ///
  /// `copy` first removes the files of earlier, interrupted copies to the same path.
  /// - Parameter isRepeated: Whether the caller has already made a copy at this path, which the new copy replaces.
  /// - Throws: `.alreadyExists` if there is a file at the path. `.inputOutput` also if a read of the copy failed and the store is
  ///   undamaged, or if the copy could not be synced.
  static func copy(
    of connection: SQLiteConnection, to path: SQLitePath, replacing isRepeated: Bool = false, _ fileSystem: any FileSystem
  ) throws(RepositoryError) {
    guard isRepeated || SQLitePath.isAbsent(path.main) else {
      throw RepositoryError(.alreadyExists, "expected no file at the path of the copy, found one: choose another path", file: path.main)
    }
    removeInterruptedCopies(to: path, fileSystem)
    do throws(RepositoryError) {
      try make(path, draft: path.newCopy, in: fileSystem) { draft throws(RepositoryError) in
        try connection.withAttachment { () throws(RepositoryError) in
          let statement = try connection.prepare("VACUUM INTO ?1")
          try statement.bind(draft, at: 1)
          try statement.run(while: .copying)
        }
      }
    } catch {
      // Damage that SQLite reports during a copy may be in the copy's new file. If this function threw `.corrupted` for damage of the copy,
      // a caller might restore a backup over an undamaged store.
      if error.code == .corrupted, try connection.problemCount(.quick, limit: 1) == 0 {
        throw RepositoryError(
          .inputOutput, "the disk failed during a read of the copy, and the store is sound: check the disk, and try again",
          file: path.main, underlying: error)
      }
      // A copy holds no commit whose outcome could be unknown. A failed copy is removed and may be made again, so the error
      // `.outcomeUnknown` becomes an ordinary failure.
      if error.code != .outcomeUnknown { throw error }
      throw RepositoryError(
        .inputOutput, "the copy could not be synced: check the disk, and try again", file: path.main, underlying: error)
    }
  }

  /// Removes the files of interrupted copies of the store.
  ///
  /// The files of a copy in progress are locked, and stay.
  private static func removeInterruptedCopies(to path: SQLitePath, _ fileSystem: any FileSystem) {
    // The new copy must be made even if the files of an older copy cannot be read or removed, so failures are ignored.
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

  /// Creates a file under a temporary name, lets `body` write a database into it, syncs the file, and renames it to the store's path.
  private static func make(
    _ path: SQLitePath, draft: String, in fileSystem: any FileSystem, _ body: (String) throws(RepositoryError) -> Void
  ) throws(RepositoryError) {
    do {
      // The file is created before SQLite opens it, because `create` sets mode 0600 under any umask. SQLite gives the log and its index the
      // mode of the database.
      let file = try fileSystem.create(draft)
      // The lock shows other processes that this file is being written, so that their ``removeInterruptedCopies(to:_:)`` does not remove
      // it.
      let lock = try SQLiteFileLock.lock(draft, .exclusive)
      defer { lock?.release() }
      try body(draft)
      // The file is synced before the rename, because a power cut must not leave a file with the final name whose contents are not on the
      // disk.
      try sync(draft, fileSystem)
      try fileSystem.rename(draft, to: path.main)
      // The descriptor is closed after `body`, because closing it earlier would drop the POSIX locks of SQLite's own connection to the
      // file.
      try file.close()
      try fileSystem.syncDirectory(path.directory)
    } catch {
      // The caller gets the first failure, and failures to remove the temporary files are ignored. If a removal fails, the next opening or
      // copy removes these files.
      do { for file in files(of: draft) { try fileSystem.remove(file) } } catch {}
      throw error
    }
  }

  private static func fill(_ draft: String, _ row: SQLiteStoreRow) throws(RepositoryError) {
    guard let connection = try SQLiteConnection(path: draft, .readWrite) else {
      throw RepositoryError(.dataMissing, "the file was removed while it was created: try again", file: draft)
    }
    // Builds of SQLite differ in their defaults, so this function sets each option on which the file format depends.
    let format = ["page_size = 4096", "encoding = 'UTF-8'", "auto_vacuum = NONE", "journal_mode = DELETE", "synchronous = FULL"]
    for pragma in format { try connection.execute("PRAGMA \(pragma)") }
    try connection.prepareForWriting()
    try connection.execute("BEGIN IMMEDIATE")
    try connection.execute("PRAGMA application_id = \(SQLiteLayout.applicationID)")
    try connection.execute("PRAGMA user_version = \(SQLiteLayout.formatVersion)")
    try connection.execute(SQLiteLayout.createStore)
    try connection.execute(SQLiteLayout.createTombstones)
    // SQLite closes a connection only after its statements are finalized, so a block of its own ends the statement's lifetime before
    // `close()`.
    do {
      let statement = try connection.prepare(SQLiteStoreRow.insert)
      try row.bind(to: statement)
      try statement.run()
    }
    try connection.execute("COMMIT", while: .committing)
    // The header of the database file keeps the journal mode, so every later connection uses a write-ahead log.
    try connection.execute("PRAGMA journal_mode = WAL")
    try connection.close()
  }

  /// Syncs a database file that no connection of this process has open.
  ///
  /// If a connection of this process had the file open, closing the descriptor in `sync` would drop the connection's POSIX locks.
  static func sync(_ path: String, _ fileSystem: any FileSystem) throws(RepositoryError) {
    guard let file = try fileSystem.open(path, writable: true) else {
      throw RepositoryError(.dataMissing, "the file was removed while it was written: try again", file: path)
    }
    try file.sync()
    try file.close()
  }
}
