internal import Foundation

/// The store's own tables, and their numbered migrations, which go forward only.
enum SQLSchema {
  /// The version that this code reads and writes.
  static let version = 4

  /// The statements that lead to each version from the one before it.
  private static func migrations(_ dialect: SQLDialect) -> [[String]] {
    let key = dialect.key
    return [
      [
        "CREATE TABLE larder_scopes (scope \(key) NOT NULL PRIMARY KEY, head BIGINT NOT NULL, horizon BIGINT NOT NULL, "
          + "minimum BIGINT NOT NULL, token TEXT NOT NULL)",
        "CREATE TABLE larder_records (scope \(key) NOT NULL, collection \(key) NOT NULL, id \(key) NOT NULL, revision BIGINT NOT NULL, "
          + "version BIGINT NOT NULL, stamp BIGINT NOT NULL, writer TEXT NOT NULL, value TEXT, deleted_at BIGINT, "
          + "PRIMARY KEY (scope, collection, id))",
        // The order in which changes are read, so that a page needs no sort, and its count no values.
        "CREATE INDEX larder_records_changes ON larder_records (scope, revision, collection, id)",
        "CREATE TABLE larder_devices (scope \(key) NOT NULL, device \(key) NOT NULL, owner TEXT NOT NULL, last_seq BIGINT NOT NULL, "
          + "last_token TEXT NOT NULL, outcome TEXT NOT NULL, stamp BIGINT NOT NULL, seen_at BIGINT NOT NULL, PRIMARY KEY (scope, device))",
        "CREATE INDEX larder_devices_owner ON larder_devices (owner, scope)",
      ],
      // Counts for the quotas of identities. Revisions from before have size 0 and count for nobody until they are overwritten: to count
      // them would rewrite every record while the server starts.
      [
        "ALTER TABLE larder_records ADD COLUMN size BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE larder_devices ADD COLUMN records BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE larder_devices ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0",
      ],
      // Apart from the devices that push, since a device may only read, and since a push must not wait for a sighting.
      [
        "CREATE TABLE larder_sightings (scope \(key) NOT NULL, device \(key) NOT NULL, owner TEXT NOT NULL, seen_at BIGINT NOT NULL, "
          + "history TEXT NOT NULL, position BIGINT NOT NULL, pending BIGINT, app TEXT, PRIMARY KEY (scope, device))",
        "CREATE INDEX larder_sightings_owner ON larder_sightings (owner, seen_at)",
      ],
      // Receipts from before count for nobody until the next push of their device.
      ["ALTER TABLE larder_devices ADD COLUMN receipt_bytes BIGINT NOT NULL DEFAULT 0"],
    ]
  }

  /// Brings the tables to the version of this code, in the transaction of the connection.
  ///
  /// - Throws: `.unusable` for a newer version.
  static func migrate(_ connection: any SQLConnection) throws(StoreError) {
    try connection.execute(
      "CREATE TABLE IF NOT EXISTS larder_meta (one BIGINT NOT NULL PRIMARY KEY, version BIGINT NOT NULL, history TEXT NOT NULL)")
    try connection.execute(
      "INSERT INTO larder_meta (one, version, history) VALUES (1, 0, ?) ON CONFLICT (one) DO NOTHING",
      [.text(UUID().uuidString.lowercased())])
    // The row is locked before anything is decided: of several processes that start at once, one migrates.
    let found = try connection.row("SELECT version FROM larder_meta WHERE one = 1" + connection.dialect.forUpdate)?.integer(0) ?? 0
    try check(found)
    for statements in migrations(connection.dialect).dropFirst(found) {
      for statement in statements { try connection.execute(statement) }
    }
    if found < version { try connection.execute("UPDATE larder_meta SET version = ? WHERE one = 1", [.integer(version)]) }
  }

  /// Whether the tables are of the version of this code.
  ///
  /// - Throws: `.unusable` for a newer version, `.database` where there are none.
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

  /// Returns the history of the tables, with the timeline of the database.
  static func history(_ connection: any SQLConnection) throws(StoreError) -> String {
    let history = try connection.row("SELECT history FROM larder_meta WHERE one = 1")?.text(0) ?? ""
    return connection.timeline.map { "\(history)-\($0)" } ?? history
  }
}
