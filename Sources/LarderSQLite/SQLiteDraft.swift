internal import Foundation
internal import Larder

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

  private static func files(of path: SQLitePath) -> [String] {
    ["", "-journal", "-wal", "-shm"].map { path.draft + $0 }
  }

  /// Removes what an interrupted creation left.
  static func removeLeftovers(of path: SQLitePath, _ fileSystem: any FileSystem) throws(RepositoryError) -> [String] {
    var removed: [String] = []
    for file in files(of: path) where !SQLitePath.isAbsent(file) {
      try fileSystem.remove(file)
      removed.append(file)
    }
    return removed
  }

  /// Creates the store, durably.
  static func create(_ path: SQLitePath, _ row: SQLiteStoreRow, _ fileSystem: any FileSystem) throws(RepositoryError) {
    do {
      // Ours is 0600 whatever the umask, and SQLite gives the log and its index the mode of the database.
      try fileSystem.create(path.draft).close()
      try fill(path.draft, row)
      try sync(path.draft, fileSystem)
      try fileSystem.rename(path.draft, to: path.main)
      try fileSystem.syncDirectory(path.directory)
    } catch {
      // The first failure is what the caller must hear; what is left now is removed by the next open.
      do { for file in files(of: path) { try fileSystem.remove(file) } } catch {}
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
