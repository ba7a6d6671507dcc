extension SQLSyncStore {
  /// Maximum number of sightings in one transaction, for which pushes wait on a database with one writer.
  private static let sightingsAtOnce = 256
  /// Number of days after its last request in which a device can count as behind.
  ///
  /// Most devices that are silent for longer are gone.
  private static let recentDays = 30.0
  /// Maximum number of scopes in the result of ``lags()``.
  static let mostLags = 20

  /// Stores sightings (requests of devices for changes) in scopes that have commits.
  ///
  /// - Parameter most: Maximum number of sightings of one identity. Beyond it, those of the devices seen least recently are dropped.
  /// - Throws: ``StoreError``.
  func note(_ sightings: [DeviceSighting], most: Int) async throws(StoreError) {
    // In one order, so that two server processes do not deadlock.
    let sorted = sightings.sorted { ($0.scope, $0.device) < ($1.scope, $1.device) }
    for start in stride(from: 0, to: sorted.count, by: Self.sightingsAtOnce) {
      let part = Array(sorted[start..<min(start + Self.sightingsAtOnce, sorted.count)])
      try await writers.perform { (connection) throws(StoreError) in
        try Self.write(part, connection)
        for owner in Self.distinct(part.map(\.owner)) { try Self.dropOldest(of: owner, beyond: most, connection) }
      }
    }
  }

  /// Returns each text once, in the order of bytes: two spellings of one Unicode text are two names.
  private static func distinct(_ texts: [String]) -> [String] {
    Set(texts.map { Array($0.utf8) }).sorted { $0.lexicographicallyPrecedes($1) }.map { String(decoding: $0, as: UTF8.self) }
  }

  private static func write(_ sightings: [DeviceSighting], _ connection: any SQLConnection) throws(StoreError) {
    // A client may name any scope that its token covers. A scope without commits gets no row, as there is nothing to read.
    var known: Set<[UInt8]> = []
    for list in InList.lists(of: distinct(sightings.map(\.scope)).map(SQLValue.text)) {
      for row in try connection.rows("SELECT scope FROM larder_scopes WHERE scope IN (\(list.marks))", list.values) {
        known.insert(Array(row.text(0).utf8))
      }
    }
    for sighting in sightings where known.contains(Array(sighting.scope.utf8)) {
      // Another server process may have stored a newer sighting, which stays.
      try connection.execute(
        "INSERT INTO larder_sightings (scope, device, owner, seen_at, history, position, pending, app) VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
          + "ON CONFLICT (scope, device) DO UPDATE SET owner = excluded.owner, seen_at = excluded.seen_at, history = excluded.history, "
          + "position = excluded.position, pending = excluded.pending, app = excluded.app "
          + "WHERE excluded.seen_at >= larder_sightings.seen_at",
        [
          .text(sighting.scope), .text(sighting.device), .text(sighting.owner), .integer(sighting.seenAt), .text(sighting.history),
          .integer(sighting.position), sighting.pending.map(SQLValue.integer) ?? .null, sighting.app.map(SQLValue.text) ?? .null,
        ])
    }
  }

  /// Drops the oldest sightings of an identity beyond a number, since inventing names of devices costs a client nothing.
  private static func dropOldest(of owner: String, beyond most: Int, _ connection: any SQLConnection) throws(StoreError) {
    let count = try connection.row("SELECT COUNT(*) FROM larder_sightings WHERE owner = ?", [.text(owner)])?.integer(0) ?? 0
    guard count > most else { return }
    let oldest = try connection.rows(
      "SELECT scope, device FROM larder_sightings WHERE owner = ? ORDER BY seen_at, scope, device LIMIT ?",
      [.text(owner), .integer(count - most)])
    for row in oldest {
      try connection.execute("DELETE FROM larder_sightings WHERE scope = ? AND device = ?", [row.values[0], row.values[1]])
    }
  }

  /// Returns how far the devices are behind that were seen lately.
  ///
  /// - Throws: ``StoreError``.
  func lags() async throws(StoreError) -> DeviceLags {
    let limit = SQLValue.integer(now() - Self.milliseconds(ofDays: Self.recentDays))
    return try await readers.perform { (connection) throws(StoreError) in
      var lags = DeviceLags()
      lags.seen = try connection.row("SELECT COUNT(*) FROM larder_sightings WHERE seen_at > ?", [limit])?.integer(0) ?? 0
      // A device that has read another history has read nothing of this one.
      let read = "CASE WHEN d.history = ? THEN d.position ELSE 0 END"
      let history = SQLValue.text(try SQLSchema.history(connection))
      let behind = "FROM larder_sightings d JOIN larder_scopes s ON d.scope = s.scope WHERE d.seen_at > ? AND \(read) < s.head"
      lags.scopesBehind = try connection.row("SELECT COUNT(DISTINCT d.scope) \(behind)", [limit, history])?.integer(0) ?? 0
      lags.worst = try connection.rows(
        "SELECT d.scope, COUNT(*), MAX(s.head - \(read)) \(behind) GROUP BY d.scope ORDER BY MAX(s.head - \(read)) DESC, d.scope LIMIT ?",
        // In the order of the question marks, of which `read` has one at each of its three places.
        [history, limit, history, history, .integer(Self.mostLags)]
      ).map { DeviceLags.Scope(scope: $0.text(0), devices: $0.integer(1), commits: $0.integer(2)) }
      return lags
    }
  }
}
