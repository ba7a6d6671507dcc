// Format/ defines the store on the disk: the names of its files, its tables, and the row of `larder_store`.
// Invariant: these definitions are format 1, byte for byte (Docs/Larder.docc/Formats/SQLiteFormat.md).
// Called by every other folder of LarderSQLite.

internal import Larder

/// The tables of format 1 of a SQLite store, and the checks that a file has these tables unaltered.
///
/// Every table is WITHOUT ROWID: one B-tree ordered by key. A scan and a look-up by key read the same tree, so a scan that finds the keys
/// in order proves that a look-up finds each record. In a rowid table a look-up by key goes through a second tree, which a scan never
/// reads. With 100,000 rows of 100 bytes, a scan was measured at 30 ms in WITHOUT ROWID tables and at 43 ms in rowid tables. The database
/// files were 14 % smaller with WITHOUT ROWID tables than with rowid tables, and a save cost the same. Rowid tables are faster for rows
/// above 1 KB (docs: Formats/SQLiteFormat).
enum SQLiteLayout {
  /// The value of `application_id` in the header of every store: the letters "LRDR".
  static let applicationID: UInt32 = 0x4C52_4452
  /// The number of this file format, which the header of the database keeps as `user_version`.
  static let formatVersion: UInt32 = 1

  static let store = "larder_store"
  static let tombstones = "larder_tombstones"

  /// Returns the columns of a collection's table or of the table of tombstones, in the order in which statements bind and read them.
  static func columns(of table: String) -> String { "id, revision, version, crc, " + (table == tombstones ? "collection" : "value") }

  static let createStore = """
    CREATE TABLE larder_store (id TEXT NOT NULL PRIMARY KEY, commit_number INTEGER NOT NULL, tombstones_since INTEGER NOT NULL, \
    records INTEGER NOT NULL, tombstones INTEGER NOT NULL, digest INTEGER NOT NULL, buffered INTEGER NOT NULL, \
    crc INTEGER NOT NULL) WITHOUT ROWID
    """
  static let createTombstones = """
    CREATE TABLE larder_tombstones (collection TEXT NOT NULL, id TEXT NOT NULL, revision INTEGER NOT NULL, version INTEGER NOT NULL, \
    crc INTEGER NOT NULL, PRIMARY KEY (collection, id)) WITHOUT ROWID
    """

  static func createCollection(_ name: String) -> String {
    "CREATE TABLE \(quoted(name)) (\(collectionColumns.joined(separator: ", "))) WITHOUT ROWID"
  }

  // Opening compares the CREATE statement of each table in the file with the statement of this format. A statement that differs even in one
  // space is not accepted.
  private static let collectionColumns = [
    "id TEXT NOT NULL PRIMARY KEY", "revision INTEGER NOT NULL", "version INTEGER NOT NULL", "crc INTEGER NOT NULL", "value TEXT NOT NULL",
  ]

  /// Whether a CREATE statement is that of a collection's table in which a column was added, renamed or dropped.
  private static func isAlteredCollection(_ sql: String) -> Bool {
    sql.hasSuffix("WITHOUT ROWID") && collectionColumns.count { sql.contains($0) } >= collectionColumns.count - 1
  }

  /// Returns the statement that creates a table's index by revision, which makes it cheap to find the commits of other processes.
  ///
  /// Stores opened `.shared` create an index by revision for each table. The indexes by revision change only the cost of finding commits,
  /// so they are no part of the format. A file may have all, some or none of the indexes by revision.
  static func createRevisionIndex(_ name: String) -> String {
    "CREATE INDEX IF NOT EXISTS \(quoted(revisionIndex(name))) ON \(quoted(name)) (revision)"
  }

  static func revisionIndex(_ name: String) -> String { "larder_revisions_\(name)" }

  /// Returns a table's name as a quoted identifier of SQL.
  ///
  /// Call `quoted(_:)` only with the names of this format and with names that passed ``isCollectionName(_:)``, because these contain no
  /// quotation mark.
  static func quoted(_ name: String) -> String { "\"\(name)\"" }

  /// Whether a collection's table can have this name.
  ///
  /// The name must follow the rule of `StorageBackend` for the names of collections. The name must not begin with the prefixes that SQLite
  /// and this format reserve.
  static func isCollectionName(_ name: String) -> Bool {
    let bytes = Array(name.utf8)
    guard (1...64).contains(bytes.count), bytes[0] != 0x2D, bytes[0] != 0x2E else { return false }
    let isAllowed = bytes.allSatisfy { byte in
      (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || [0x5F, 0x2D, 0x2E].contains(byte)
    }
    let lowered = folded(name)
    return isAllowed && !lowered.hasPrefix("sqlite_") && !lowered.hasPrefix("larder_")
  }

  /// Returns a table's name in lower case, because SQLite ignores the case of ASCII letters in names.
  static func folded(_ name: String) -> String { name.lowercased() }

  // MARK: Checks

  /// Throws an error unless the first 100 bytes of a file are those of a store of this format.
  static func check(header bytes: [UInt8], size: Int64, file: String) throws(RepositoryError) {
    func number(_ offset: Int) -> UInt32 { bytes[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) } }
    // A store is created complete under another name and then renamed, so no crash leaves an empty file. Therefore an empty file is
    // reported as a store that has lost its contents.
    if size == 0 {
      throw RepositoryError(
        .corrupted, "expected a store, found an empty file: restore a backup, or remove the file to begin anew", file: file, offset: 0)
    }
    let magic = Array("SQLite format 3\u{0}".utf8)
    let isDatabase = bytes.starts(with: magic)
    let isOurs = number(68) == applicationID
    if size < 100 {
      // A file of less than 100 bytes that begins as a database was cut short. Any other file of less than 100 bytes belongs to another
      // program.
      if bytes.prefix(Int(size)).elementsEqual(magic.prefix(Int(size))) || isDatabase {
        throw RepositoryError(
          .corrupted, "expected a header of 100 bytes, found a file of \(size): restore a backup", file: file, offset: UInt64(size))
      }
      throw notADatabase(file)
    }
    switch (isDatabase, isOurs) {
    // A file whose first 100 bytes are zeros has lost its header. A database file without its header is reported as damaged, and not as a
    // file of another program.
    case (false, false) where bytes.allSatisfy({ $0 == 0 }):
      throw RepositoryError(
        .corrupted, "expected the header of a SQLite database, found zeros only: restore a backup", file: file, offset: 0)
    case (false, false): throw notADatabase(file)
    case (true, false): throw anotherProgram(file)
    // A file with the store's application id but without SQLite's header is a damaged store, and must not be reported as a file of another
    // program.
    case (false, true):
      throw RepositoryError(
        .corrupted, "expected the header of a SQLite database, found other bytes: restore a backup", file: file, offset: 0)
    case (true, true): try check(formatVersion: number(60), file: file)
    }
  }

  /// Throws `.corrupted` for a database header whose version number makes SQLite refuse writes.
  static func checkWriting(header bytes: [UInt8], file: String) throws(RepositoryError) {
    guard bytes[18] <= 2 else {
      throw RepositoryError(
        .corrupted,
        "expected at most 2 as the version for writing in SQLite's header, found \(bytes[18]): restore a backup, or open it read-only",
        file: file, offset: 18)
    }
  }

  /// Throws `.newerSchema` for a later format version, and `.corrupted` for a number that no version of Larder writes.
  static func check(formatVersion found: UInt32, file: String) throws(RepositoryError) {
    // SQLite's `user_version` is a signed number, so a number above `Int32.max` is negative and no later format.
    if found > formatVersion && found <= Int32.max {
      throw RepositoryError(
        .newerSchema, "expected format \(formatVersion), found format \(found): update the app", file: file, offset: 60,
        versions: .init(found: Int(found), supported: Int(formatVersion)))
    }
    if found != formatVersion {
      throw RepositoryError(
        .corrupted, "expected format \(formatVersion), found \(found), which no version writes: restore a backup", file: file, offset: 60)
    }
  }

  private static func notADatabase(_ file: String) -> RepositoryError {
    RepositoryError(.notOurStore, "expected a SQLite database, found a file of another kind: open a store, or another path", file: file)
  }

  private static func anotherProgram(_ file: String) -> RepositoryError {
    RepositoryError(
      .notOurStore, "expected the application id of a store, found that of another program: open a store, or another path", file: file,
      offset: 68)
  }

  /// Reads the names of the collections' tables, in ascending order.
  ///
  /// The function skips the objects of other programs: indexes, views, triggers, and tables whose CREATE statement is not that of a
  /// collection. If another program's table has replaced a collection's table, the number and the digest of the records differ from the row
  /// of `larder_store`. The scan of all records reports such a difference as damage.
  /// - Throws: `.corrupted` for a collection's table that another program has altered.
  static func collections(on connection: SQLiteConnection) throws(RepositoryError) -> [String] {
    // The application id is compared again, because the write-ahead log may hold a newer header than the database file.
    guard try connection.number("PRAGMA application_id") == Int64(applicationID) else { throw anotherProgram(connection.path) }
    let version = try connection.number("PRAGMA user_version") ?? 0
    try check(formatVersion: UInt32(truncatingIfNeeded: version), file: connection.path)
    // Records are ordered by the UTF-8 bytes of their keys. In a UTF-16 database SQLite would order the records differently.
    guard try connection.text("PRAGMA encoding") == "UTF-8" else {
      throw connection.damaged("expected a database in UTF-8, found another encoding")
    }

    var names: [String] = []
    var own = 0
    let statement = try connection.prepare("SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY name")
    while try statement.step() {
      let (type, name, sql) = (try statement.text(0), try statement.text(1), try statement.text(2))
      switch (type, name) {
      case ("table", store) where sql == createStore: own += 1
      case ("table", tombstones) where sql == createTombstones: own += 1
      case ("table", _) where isCollectionName(name) && sql == createCollection(name): names.append(name)
      // If an altered table were skipped like a table of another program, it would look like a collection whose records were all deleted.
      case ("table", _) where isCollectionName(name) && isAlteredCollection(sql):
        throw connection.damaged("expected \"\(name)\" as a table of format \(formatVersion), found it altered: restore a backup")
      default: break
      }
    }
    guard own == 2 else { throw connection.damaged("expected larder_store and larder_tombstones, found \(own) of these two tables") }
    return names
  }
}
