internal import CPostgreSQL
internal import Foundation

/// Connection to PostgreSQL over libpq that prepares each statement once.
final class PostgreSQLConnection: SQLConnection {
  let dialect = SQLDialect(key: "TEXT COLLATE \"C\"", forUpdate: " FOR UPDATE")
  let connection: OpaquePointer
  let options: PostgreSQLOptions
  /// Whether a failure has shown that the connection cannot be used any more.
  var isBroken = false
  /// Names of the prepared statements, by their text.
  var prepared: [String: String] = [:]
  /// Statements with the numbered parameters of PostgreSQL, by their text with question marks.
  var numbered: [String: String] = [:]
  private let keepsIsolation: Bool
  private(set) var timeline: String?
  private var isStandby = false
  private var hasNoTimeline = false

  private init(_ connection: OpaquePointer, _ options: PostgreSQLOptions, keepsIsolation: Bool) {
    (self.connection, self.options, self.keepsIsolation) = (connection, options, keepsIsolation)
  }

  deinit { PQfinish(connection) }

  var isUsable: Bool { !isBroken && PQstatus(connection) == CONNECTION_OK }

  /// Opens a connection.
  ///
  /// - Throws: `.database`, `.unusable` for a database whose texts are not in UTF-8.
  static func open(_ address: PostgreSQLAddress, _ options: PostgreSQLOptions) throws(StoreError) -> PostgreSQLConnection {
    let words = address.keywords(options)
    let pointers = (words.map { strdup($0.0) } + [nil], words.map { strdup($0.1) } + [nil])
    defer { for pointer in pointers.0 + pointers.1 { free(pointer) } }
    let handle = PQconnectdbParams(pointers.0.map { UnsafePointer($0) }, pointers.1.map { UnsafePointer($0) }, 1)
    guard let handle else { throw .database(code: "53200", message: "out of memory") }
    let database = PostgreSQLConnection(handle, options, keepsIsolation: address.namesIsolation)
    guard PQstatus(handle) == CONNECTION_OK else {
      throw .database(code: "08001", message: address.cleaned(PQerrorMessage(handle).map { String(cString: $0) } ?? ""))
    }
    // Notices may quote values, and libpq prints them to standard error by default.
    larder_server_drop_notices(handle)
    let encoding = PQparameterStatus(handle, "server_encoding").map { String(cString: $0) } ?? "UTF8"
    guard ["UTF8", "UTF-8"].contains(encoding.uppercased()) else {
      throw .unusable(
        ServerError(
          expected: "a database in UTF8", found: encoding, advice: "make one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"))
    }
    // The clients of a pooler share sessions, so each transaction sets them there.
    if !options.usesPooler { try database.simple(database.settings("SET")) }
    try database.readTimeline()
    return database
  }

  /// Returns the statements that limit how long other sessions wait for this one, even if this process is gone.
  private func settings(_ word: String) -> String {
    [
      ("statement_timeout", options.statementSeconds), ("lock_timeout", options.lockSeconds),
      ("idle_in_transaction_session_timeout", options.idleSeconds),
    ].map { "\(word) \($0.0) = \($0.1 * 1_000)" }.joined(separator: "; ")
  }

  // MARK: Transactions

  func begin(_ transaction: SQLTransaction) throws(StoreError) {
    if !options.usesPooler { try readTimeline() }
    // A push locks the head first and reads the commits of earlier holders afterwards, for which READ COMMITTED is enough. It never fails
    // with 40001. A page needs one snapshot for all of its statements.
    let isolation = transaction == .write ? "READ COMMITTED" : "REPEATABLE READ"
    var words = "BEGIN" + (keepsIsolation ? "" : " ISOLATION LEVEL \(isolation)") + (transaction == .read ? " READ ONLY" : "")
    // Behind a pooler, the next transaction may run in another session, so these settings belong to one transaction.
    if options.usesPooler { words += "; " + settings("SET LOCAL") }
    try simple(words)
    if options.usesPooler { try readTimeline() }
  }

  func commit() throws(StoreError) {
    // PostgreSQL answers the COMMIT of a failed transaction with the tag ROLLBACK and without an error.
    let tag = try simple("COMMIT")
    if tag != "COMMIT" { throw .database(code: "25P02", message: "the transaction had failed before its end") }
  }

  func rollBack() {
    // Without a transaction, ROLLBACK would only cost a round trip.
    if !isUsable || PQtransactionStatus(connection) == PQTRANS_IDLE { return }
    do throws(StoreError) { try simple("ROLLBACK") } catch { isBroken = true }
  }

  // MARK: The timeline

  /// Reads the timeline, unless the connection has read it: a primary that becomes a standby ends its connections first.
  ///
  /// A pooler keeps the connection while it puts another server behind it. There, the timeline is read within each transaction, which
  /// stays on one server.
  ///
  /// The position in the log shows a new timeline at once. `pg_control_checkpoint()` reports the old one until the first checkpoint after a
  /// promotion, so that devices could push to the new timeline under the name of the old one. A standby writes no log, so its timeline is
  /// read from `pg_control_checkpoint()`, each time.
  private func readTimeline() throws(StoreError) {
    if timeline != nil && !isStandby && !options.usesPooler || options.trustsFailover || hasNoTimeline { return }
    do throws(StoreError) {
      let row = try row(
        """
        SELECT pg_is_in_recovery(), CASE WHEN pg_is_in_recovery() THEN (SELECT timeline_id::text FROM pg_control_checkpoint())
        ELSE ltrim(substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), '0') END
        """)
      (isStandby, timeline) = (row?.text(0) == "t", row?.text(1))
    } catch {
      // Engines other than PostgreSQL lack these functions, and their history is that of the tables. Any other failure says nothing of the
      // engine: with a history of its own, this connection would send devices from one history to the other.
      guard case .database(let code, _) = error, ["42883", "0A000"].contains(code) else { throw error }
      hasNoTimeline = true
    }
  }

  // MARK: Upkeep

  func copy(to path: String) throws(StoreError) {
    throw .unusable(
      ServerError(
        expected: "a store in a file", found: "PostgreSQL", advice: "copy the database with pg_dump, or with the backup of your cluster"))
  }

  func check() throws(StoreError) -> [String] { [] }

  func risks() throws(StoreError) -> [String] {
    try rows("SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') ORDER BY name")
      .filter { $0.text(1) == "off" }.map { "the setting \($0.text(0)) is off: a crash loses what devices were told is stored" }
  }
}
