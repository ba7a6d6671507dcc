import Foundation
import Testing

@testable import LarderServer

/// Where the timeline of the database is read, and what becomes of it when that fails.
@Suite(.needsPostgres, .timeLimit(.minutes(15))) struct TimelineTests {
  /// A database in which functions of its own stand before those that tell the timeline.
  private struct Shadow {
    let uri: String
    private let connection: PostgreSQLConnection

    init() async throws {
      uri = try await PostgresCluster.shared().freshDatabase(options: ["search_path=shadow,pg_catalog"])
      connection = try PostgreSQLConnection.open(try PostgreSQLAddress(uri), PostgreSQLOptions())
      for sql in [
        "CREATE SCHEMA shadow", "CREATE TABLE shadow.answer (name TEXT, failure TEXT)", "INSERT INTO shadow.answer VALUES ('00000001', '')",
        """
        CREATE FUNCTION shadow.pg_walfile_name(place pg_lsn) RETURNS text LANGUAGE plpgsql AS $$
        DECLARE found shadow.answer;
        BEGIN
          SELECT * INTO found FROM shadow.answer;
          IF found.failure <> '' THEN RAISE EXCEPTION 'planned' USING ERRCODE = found.failure; END IF;
          RETURN found.name;
        END $$
        """,
      ] { try connection.simple(sql) }
    }

    func answer(_ name: String, failure: String = "") throws {
      try connection.execute("UPDATE shadow.answer SET name = ?, failure = ?", [.text(name), .text(failure)])
    }

    func connect(pooled: Bool) throws -> PostgreSQLConnection {
      var options = PostgreSQLOptions()
      options.usesPooler = pooled
      return try PostgreSQLConnection.open(try PostgreSQLAddress(uri), options)
    }
  }

  private static func timeline(in connection: PostgreSQLConnection, _ transaction: SQLTransaction) throws -> String? {
    try connection.begin(transaction)
    defer { connection.rollBack() }
    return connection.timeline
  }

  /// A pooler keeps the connections of its clients while it puts another server behind them.
  @Test func behindAPoolerTheTimelineIsThatOfEachTransaction() async throws {
    let shadow = try await Shadow()
    let (direct, pooled) = (try shadow.connect(pooled: false), try shadow.connect(pooled: true))
    for name in ["1", "2", "3"] {
      try shadow.answer("0000000\(name)")
      for transaction in [SQLTransaction.read, .write] { #expect(try Self.timeline(in: pooled, transaction) == name) }
      #expect(try Self.timeline(in: direct, .write) == "1")
    }
  }

  @Test func onlyAMissingFunctionMeansThatThereIsNoTimeline() async throws {
    let shadow = try await Shadow()
    for pooled in [false, true] {
      for code in ["57014", "53200", "42501", "40001"] {
        try shadow.answer("00000001", failure: code)
        #expect { try shadow.connect(pooled: pooled) } throws: { error in
          guard case .database(code, _) = error as? StoreError else { return false }
          return true
        }
        try shadow.answer("00000001")
        #expect(try Self.timeline(in: shadow.connect(pooled: pooled), .write) == "1")
      }
      for code in ["42883", "0A000"] {
        try shadow.answer("00000001", failure: code)
        let connection = try shadow.connect(pooled: pooled)
        for _ in 0..<2 { #expect(try Self.timeline(in: connection, .write) == nil) }
      }
    }
  }

  @Test func aStandbyIsNotTakenUnlessTheAddressSaysSo() async throws {
    try await PostgresCluster.run { primary in
      let uri = try await primary.freshDatabase()
      let standby = try await primary.standby()
      let place = uri.replacing(":\(primary.port)/", with: ":\(standby.port)/")
      let error = #expect(throws: StoreError.self) { try PostgreSQLConnection.open(try PostgreSQLAddress(place), PostgreSQLOptions()) }
      #expect("\(error, default: "nothing")".contains("08001"))
      let any = try PostgreSQLConnection.open(try PostgreSQLAddress(place + "?target_session_attrs=any"), PostgreSQLOptions())
      #expect(try any.row("SELECT pg_is_in_recovery()")?.text(0) == "t")
      await standby.remove()
    }
  }

  /// What libpq reads of a service file, the address does not tell: there may be several hosts in it.
  @Test func theHostsOfAServiceFileAreTakenForWhatTheyAre() async throws {
    let words = try PostgreSQLAddress("service=larder").keywords(PostgreSQLOptions())
    #expect(words.contains { $0.0 == "target_session_attrs" && $0.1 == "read-write" })
  }
}
