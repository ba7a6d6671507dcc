import Foundation
import Testing

/// The clusters that the other tests on PostgreSQL run on.
@Suite(.needsPostgres, .timeLimit(.minutes(15))) struct PostgresClusterTests {
  @Test func databasesAreFreshAndOwnedByARoleWithoutRights() async throws {
    let cluster = try await PostgresCluster.shared()
    for isolation in ["read committed", "serializable"] {
      let uri = try await cluster.freshDatabase(options: ["default_transaction_isolation=" + isolation.replacing(" ", with: "%5C%20")])
      let settings = "current_setting('transaction_isolation'), current_setting('fsync'), current_setting('is_superuser')"
      #expect(try await cluster.run("psql", [uri, "-XAtq", "--command=SELECT \(settings)"]) == "\(isolation)|on|off\n")
      // The order of a language and not that of bytes.
      #expect(try await cluster.run("psql", [uri, "-XAtq", "--command=SELECT 'a' < 'B'"]) == "t\n")
    }
  }

  @Test func aStandbyHasWhatAKilledPrimaryHasAcknowledged() async throws {
    try await PostgresCluster.run { primary in
      let standby = try await primary.standby()
      try await primary.query("CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n")
      try await primary.kill()
      await #expect(throws: PostgresFailure.self) { try await primary.query("SELECT 1") }
      try await standby.promote()
      #expect(try await standby.query("SELECT count(*) FROM kept") == "1000")
      #expect(try await standby.query("INSERT INTO kept VALUES (1) RETURNING n") == "1")
      await standby.remove()
    }
  }

  @Test func aCopyBringsBackWhatWasThen() async throws {
    try await PostgresCluster.run { cluster in
      try await cluster.query("CREATE TABLE kept AS SELECT 1 AS n")
      try await cluster.copyData(to: "copy")
      try await cluster.query("INSERT INTO kept VALUES (2)")
      try await cluster.stop(.immediate)
      try await cluster.restoreData(from: "copy")
      try await cluster.start()
      #expect(try await cluster.query("SELECT n FROM kept") == "1")
    }
  }

  /// What the end of the test's process does, however it ends: the pipe of the watchdog closes.
  @Test func nothingStaysBehind() async throws {
    let cluster = try await PostgresCluster.make()
    #expect(!PostgresCluster.processes(in: cluster.data).isEmpty)
    await cluster.remove()
    #expect(PostgresCluster.processes(in: cluster.data).isEmpty)
    #expect(!FileManager.default.fileExists(atPath: cluster.directory))
  }
}
