internal import Foundation
internal import Larder

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// A store that is being created: complete under another name before it gets its own, so that a crash leaves none or a whole one.
enum SQLiteDraft {
  /// The settings that are not kept in the file.
  static var pragmas: [String] {
    // A batch stays in memory until COMMIT, so that a batch that fails leaves nothing in the log.
    var pragmas = ["cache_spill = OFF", "cache_size = -8000", "secure_delete = FAST"]
    #if canImport(Darwin)
      pragmas += ["fullfsync = ON", "checkpoint_fullfsync = ON"]
    #endif
    return pragmas
  }

  private static func files(of draft: String) -> [String] { ["", "-journal", "-wal", "-shm"].map { draft + $0 } }

  /// Removes what an interrupted creation left, and nothing else that has its name.
  static func removeLeftovers(of path: SQLitePath, _ fileSystem: any FileSystem) throws(RepositoryError) -> [String] {
    guard try isLeftover(path.draft, fileSystem) else { return [] }
    var removed: [String] = []
    for file in files(of: path.draft) where !SQLitePath.isAbsent(file) {
      try fileSystem.remove(file)
      removed.append(file)
    }
    return removed
  }

  /// The most bytes that a store without a record has.
  private static let emptySize = 16_384

  /// Whether a file is a store that was never complete, or complete and never used.
  private static func isLeftover(_ draft: String, _ fileSystem: any FileSystem) throws(RepositoryError) -> Bool {
    guard !SQLitePath.isAbsent(draft), try SQLitePath.status(of: draft).map({ $0.st_mode & S_IFMT }) == S_IFREG,
      let file = try fileSystem.open(draft, writable: false)
    else { return false }
    let (size, header) = (try file.size(), [UInt8](try file.read(at: 0, count: 100)))
    try file.close()
    if size == 0 { return true }
    let isDatabase = header.starts(with: Array("SQLite format 3\u{0}".utf8))
    guard size <= emptySize, isDatabase || header.allSatisfy({ $0 == 0 }) else { return false }
    guard isDatabase, let connection = try SQLiteConnection(path: draft, .immutable) else { return true }
    do throws(RepositoryError) {
      return try SQLiteStoreRow(on: connection).commit == 0
    } catch {
      // Half a store; what another program has in its place is not half of ours.
      return header.count == 100 && header[68..<72].elementsEqual([0x4C, 0x52, 0x44, 0x52])
    }
  }

  /// A name that nothing lies under.
  private static func freeName(_ path: SQLitePath) throws(RepositoryError) -> String {
    for draft in [path.draft] + path.otherDrafts where files(of: draft).allSatisfy(SQLitePath.isAbsent) { return draft }
    throw RepositoryError(.alreadyExists, "expected nothing under the name of a store that is being made: move it away", file: path.draft)
  }

  /// Creates the store, durably.
  static func create(_ path: SQLitePath, _ row: SQLiteStoreRow, _ fileSystem: any FileSystem) throws(RepositoryError) {
    try make(path, freeName(path), fileSystem) { draft throws(RepositoryError) in try fill(draft, row) }
  }

  /// Makes a copy of a store under another name, durably, and gives it its own when it is complete.
  ///
  /// Removes what earlier copies to this name have left that were cut short.
  static func copy(
    to path: SQLitePath, _ fileSystem: any FileSystem, _ body: (String) throws(RepositoryError) -> Void
  ) throws(RepositoryError) {
    removeInterruptedCopies(to: path, fileSystem)
    try make(path, path.newCopy, fileSystem, body)
  }

  /// Removes what nobody is at work on any more; a copy that is being made is locked.
  private static func removeInterruptedCopies(to path: SQLitePath, _ fileSystem: any FileSystem) {
    // What cannot be looked at or removed is in nobody's way.
    do throws(RepositoryError) {
      for name in try (fileSystem.entries(of: path.directory) ?? []).filter(path.isCopy) {
        let draft = (path.directory == "/" ? "" : path.directory) + "/" + name
        guard let file = try fileSystem.open(draft, writable: false) else { continue }
        do throws(RepositoryError) { try lock(file) } catch { continue }
        for other in files(of: draft).reversed() { try fileSystem.remove(other) }
        try file.close()
      }
    } catch {}
  }

  /// Locks a copy that is being made, until it is closed.
  ///
  /// Not on Darwin, where the lock and SQLite's own would be in each other's way: of two processes that copy to one name at once, one may fail there.
  private static func lock(_ file: any OpenFile) throws(RepositoryError) {
    #if !canImport(Darwin)
      try file.lock()
    #endif
  }

  /// Makes a store under another name, durably, and gives it its own when it is complete.
  private static func make(
    _ path: SQLitePath, _ draft: String, _ fileSystem: any FileSystem, _ body: (String) throws(RepositoryError) -> Void
  ) throws(RepositoryError) {
    do {
      // Ours is 0600 whatever the umask, and SQLite gives the log and its index the mode of the database.
      let file = try fileSystem.create(draft)
      try lock(file)
      try body(draft)
      try sync(draft, fileSystem)
      try fileSystem.rename(draft, to: path.main)
      // Not earlier: closing drops the locks of SQLite's own connection.
      try file.close()
      try fileSystem.syncDirectory(path.directory)
    } catch {
      // The first failure is what the caller must hear; a draft that stays is removed by the next open or copy, or by a person.
      do { for file in files(of: draft) { try fileSystem.remove(file) } } catch {}
      throw error
    }
  }

  private static func fill(_ draft: String, _ row: SQLiteStoreRow) throws(RepositoryError) {
    guard let connection = try SQLiteConnection(path: draft, .readWrite) else {
      throw RepositoryError(.dataMissing, "the file went away while it was created", file: draft)
    }
    // Builds of SQLite differ in their defaults, so what the format depends on is said.
    let format = ["page_size = 4096", "encoding = 'UTF-8'", "auto_vacuum = NONE", "journal_mode = DELETE", "synchronous = FULL"]
    for pragma in format + pragmas { try connection.execute("PRAGMA \(pragma)") }
    try connection.execute("BEGIN IMMEDIATE")
    try connection.execute("PRAGMA application_id = \(SQLiteLayout.applicationID)")
    try connection.execute("PRAGMA user_version = \(SQLiteLayout.formatVersion)")
    try connection.execute(SQLiteLayout.createStore)
    try connection.execute(SQLiteLayout.createTombstones)
    do {
      let statement = try connection.prepare(SQLiteStoreRow.insert)
      try row.bind(to: statement)
      try statement.run()
    }
    try connection.execute("COMMIT", while: .committing)
    try connection.execute("PRAGMA journal_mode = WAL")
    try connection.close()
  }

  /// Syncs a database to which there is no connection.
  static func sync(_ path: String, _ fileSystem: any FileSystem) throws(RepositoryError) {
    guard let file = try fileSystem.open(path, writable: true) else {
      throw RepositoryError(.dataMissing, "the file went away while it was written", file: path)
    }
    try file.sync()
    try file.close()
  }
}
