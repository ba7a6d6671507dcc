internal import Foundation

/// Tables of the store, and their numbered migrations, which only go forward.
enum SQLSchema {
  /// Version of the tables that this code reads and writes.
  static let version = 4

  /// Returns the statements that lead to each version from the one before it.
  private static func migrations(_ dialect: SQLDialect) -> [[String]] {
    let key = dialect.key
    return [
      [
        "CREATE TABLE larder_scopes (scope \(key) NOT NULL PRIMARY KEY, head BIGINT NOT NULL, horizon BIGINT NOT NULL, "
          + "minimum BIGINT NOT NULL, token TEXT NOT NULL)",
        "CREATE TABLE larder_records (scope \(key) NOT NULL, collection \(key) NOT NULL, id \(key) NOT NULL, revision BIGINT NOT NULL, "
          + "version BIGINT NOT NULL, stamp BIGINT NOT NULL, writer TEXT NOT NULL, value TEXT, deleted_at BIGINT, "
          + "PRIMARY KEY (scope, collection, id))",
        // The order of pages, so that reading one needs no sort, and counting the rest reads no values.
        "CREATE INDEX larder_records_changes ON larder_records (scope, revision, collection, id)",
        "CREATE TABLE larder_devices (scope \(key) NOT NULL, device \(key) NOT NULL, owner TEXT NOT NULL, last_seq BIGINT NOT NULL, "
          + "last_token TEXT NOT NULL, outcome TEXT NOT NULL, stamp BIGINT NOT NULL, seen_at BIGINT NOT NULL, PRIMARY KEY (scope, device))",
        "CREATE INDEX larder_devices_owner ON larder_devices (owner, scope)",
      ],
      // Counts for the quotas of identities. Revisions from before have size 0 and count for no device until they are overwritten: counting
      // them would rewrite every record while the server starts.
      [
        "ALTER TABLE larder_records ADD COLUMN size BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE larder_devices ADD COLUMN records BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE larder_devices ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0",
      ],
      // A table apart from `larder_devices`, since a device may only read, and since a push must not wait for the write of a sighting.
      [
        "CREATE TABLE larder_sightings (scope \(key) NOT NULL, device \(key) NOT NULL, owner TEXT NOT NULL, seen_at BIGINT NOT NULL, "
          + "history TEXT NOT NULL, position BIGINT NOT NULL, pending BIGINT, app TEXT, PRIMARY KEY (scope, device))",
        "CREATE INDEX larder_sightings_owner ON larder_sightings (owner, seen_at)",
      ],
      // Receipts from before count for no device until its next push.
      ["ALTER TABLE larder_devices ADD COLUMN receipt_bytes BIGINT NOT NULL DEFAULT 0"],
    ]
  }

  /// Brings the tables to the version of this code, within the transaction of the connection.
  ///
  /// - Throws: `.unusable` for a newer version.
  static func migrate(_ connection: any SQLConnection) throws(StoreError) {
    try connection.execute(
      "CREATE TABLE IF NOT EXISTS larder_meta (one BIGINT NOT NULL PRIMARY KEY, version BIGINT NOT NULL, history TEXT NOT NULL)")
    try connection.execute(
      "INSERT INTO larder_meta (one, version, history) VALUES (1, 0, ?) ON CONFLICT (one) DO NOTHING",
      [.text(UUID().uuidString.lowercased())])
    // The row is locked before the decision, so that only one of several starting processes migrates.
    let found = try connection.row("SELECT version FROM larder_meta WHERE one = 1" + connection.dialect.forUpdate)?.integer(0) ?? 0
    try check(found)
    for statements in migrations(connection.dialect).dropFirst(found) {
      for statement in statements { try connection.execute(statement) }
    }
    if found < version { try connection.execute("UPDATE larder_meta SET version = ? WHERE one = 1", [.integer(version)]) }
  }

  /// Returns whether the tables have the version of this code.
  ///
  /// - Throws: `.unusable` for a newer version, `.database` if there are no tables.
  static func isCurrent(_ connection: any SQLConnection) throws(StoreError) -> Bool {
    let found = try connection.row("SELECT version FROM larder_meta WHERE one = 1")?.integer(0) ?? 0
    try check(found)
    return found == version
  }

  private static func check(_ found: Int) throws(StoreError) {
    guard found <= version else {
      throw .unusable(
        ServerError(
          expected: "tables of version \(version) or below", found: "version \(found)",
          advice: "use the larder-server that made it, or a newer one"))
    }
  }

  /// Returns the history of the tables, followed by the timeline of the database if it has one.
  static func history(_ connection: any SQLConnection) throws(StoreError) -> String {
    let history = try connection.row("SELECT history FROM larder_meta WHERE one = 1")?.text(0) ?? ""
    return connection.timeline.map { "\(history)-\($0)" } ?? history
  }
}
