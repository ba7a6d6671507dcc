import Foundation
import LarderWire
import Synchronization
import Testing

@testable import LarderServer

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// What only a store on PostgreSQL does; what all do is in `StoreConformanceTests`.
@Suite(.needsPostgres, .timeLimit(.minutes(15))) struct PostgreSQLStoreTests {
  static func open(_ uri: String, logs: LogLines = LogLines(), _ change: (inout PostgreSQLOptions) -> Void = { _ in }) async throws
    -> SQLSyncStore
  {
    var options = PostgreSQLOptions()
    (options.writers, options.readers, options.listening) = (3, 2, .off)
    change(&options)
    return try await SQLSyncStore.open(postgreSQL: uri, options: options, logger: logs.logger())
  }

  /// A connection as a process of its own has, to be used in one task.
  private static func connect(_ uri: String, _ change: (inout PostgreSQLOptions) -> Void = { _ in }) throws -> PostgreSQLConnection {
    var options = PostgreSQLOptions()
    change(&options)
    return try PostgreSQLConnection.open(try PostgreSQLAddress(uri), options)
  }

  @Test func severalProcessesMakeTheTablesAtOnce() async throws {
    let uri = try await PostgresCluster.shared().freshDatabase()
    let histories = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<8 {
        group.addTask {
          let store = try await Self.open(uri)
          let history = try await store.history()
          await store.close()
          return history
        }
      }
      return try await group.reduce(into: Set<String>()) { $0.insert($1) }
    }
    #expect(histories.count == 1)
    let connection = try Self.connect(uri)
    try connection.execute("UPDATE larder_meta SET version = 99")
    await #expect(throws: StoreError.self) { try await Self.open(uri) }
  }

  @Test func failuresHaveNeitherValuesNorPasswords() async throws {
    let cluster = try await PostgresCluster.shared()
    let uri = try await cluster.freshDatabase()
    for bad in [
      uri.replacing(cluster.password, with: "sec:ret"), uri.replacing(cluster.password, with: "sec@ret"),
      uri.replacing(cluster.password, with: "secret"),
      "postgresql://larder:sec/ret@127.0.0.1/x", "postgresql://larder:secret@127.0.0.1:1/x", "postgresql://larder:se%zzcret@127.0.0.1/x",
      "host=127.0.0.1 port=1 password=secret", "host=127.0.0.1 password='secret", "secret", "postgresql://secret@[::1/x",
    ] {
      let logs = LogLines()
      let error = await #expect(throws: StoreError.self) { try await Self.open(bad, logs: logs) { $0.connectSeconds = 5 } }
      let said = "\(error, default: "nothing") \(logs.text)"
      #expect(!said.contains("sec") && !said.contains("ret@"), "\(said)")
    }
    let connection = try Self.connect(uri)
    try connection.execute("CREATE TABLE t (a TEXT PRIMARY KEY, b BIGINT)")
    try connection.execute("INSERT INTO t VALUES (?, ?)", [.text("hidden"), .integer(1)])
    for (sql, values) in [
      ("INSERT INTO t VALUES (?, ?)", [SQLValue.text("hidden"), .integer(1)]), ("SELECT CAST(? AS BIGINT)", [.text("hidden")]),
      ("INSERT INTO t VALUES (NULL, CAST(? AS BIGINT))", [.text("hidden")]), ("SELECT ?", [.text("hidden\0")]),
    ] {
      let error = #expect(throws: StoreError.self) { try connection.execute(sql, values) }
      let said = "\(error, default: "nothing")"
      #expect(!said.contains("hidden"), "\(said)")
      #expect(connection.isUsable)
    }
  }

  /// What libpq says of a connection that is gone may stand behind the words of a statement, in any language.
  @Test func lastWordsHaveNoValues() {
    let fixed = "the connection to the database is lost"
    let details = "DETAIL:  Key (a)=(hidden) already exists.\n"
    for (message, hadResult, line) in [
      ("ERROR:  duplicate key (hidden)\n\(details)server closed the connection unexpectedly\n", true, fixed),
      ("FEHLER:  doppelter Schlüsselwert (hidden)\nDETAIL:  Schlüssel »(a)=(hidden)« existiert bereits.\n", true, fixed),
      (details, true, fixed), ("", true, fixed), ("", false, fixed),
      (
        details + "FATAL:  terminating connection due to administrator command\n", true,
        "FATAL:  terminating connection due to administrator command"
      ),
      ("server closed the connection unexpectedly\n\tThis probably means\n", false, "server closed the connection unexpectedly"),
    ] { #expect(PostgreSQLFailure.lastWords(message, hadResult: hadResult) == line) }
  }

  @Test func valuesComeBackAsTheyWere() async throws {
    let connection = try Self.connect(try await PostgresCluster.shared().freshDatabase())
    try connection.execute("CREATE TABLE t (a TEXT, b BIGINT)")
    let texts = ["", "$1 ? \\ ' \" \u{1} \r\n", "å e\u{301} 👩‍👩‍👧", String(repeating: "x", count: 1 << 20), #"{"a":"\u0000"}"#]
    // The types are told when a statement is prepared, also where the first values are none.
    var rows: [[SQLValue]] = [[.null, .null], [.null, .integer(.max)], [.text(""), .null]]
    rows += texts.map { [.utf8(Data($0.utf8)), .integer(.min)] }
    for row in rows { try connection.execute("INSERT INTO t VALUES (?, ?)", row) }
    let found = try connection.rows("SELECT a, b FROM t")
    #expect(found.map { $0.utf8(0) } == [nil, nil, Data()] + texts.map { Data($0.utf8) })
    #expect(found.map { $0.values[1] } == [.null, .integer(.max), .null] + texts.map { _ in .integer(.min) })
    // An answer of which no more is wanted leaves the connection as it was.
    for _ in 0..<3 { #expect(try connection.row("SELECT 7 FROM t")?.integer(0) == 7) }
    // More statements than are kept.
    for number in 0..<250 { #expect(try connection.row("SELECT \(number) + ?", [.integer(1)])?.integer(0) == number + 1) }
  }

  @Test func aTransactionThatFailedIsNotTakenForCommitted() async throws {
    let connection = try Self.connect(try await PostgresCluster.shared().freshDatabase())
    try connection.begin(.write)
    #expect(throws: StoreError.self) { try connection.execute("SELECT nothing") }
    #expect(throws: StoreError.self) { try connection.commit() }
  }

  @Test func aHotScopeLeavesConnectionsToOthers() async throws {
    let uri = try await PostgresCluster.shared().freshDatabase()
    let store = try await Self.open(uri) { ($0.statementSeconds, $0.lockSeconds) = (600, 600) }
    _ = try await store.push(onePush(), to: "hot", by: "x")
    let holder = try Self.connect(uri) { $0.idleSeconds = 600 }
    try holder.begin(.write)
    _ = try holder.row("SELECT head FROM larder_scopes WHERE scope = 'hot' FOR UPDATE")
    let waiting = (2...11).map { number in
      Task { try await store.push(onePush(device: "d\(number)", id: "r\(number)"), to: "hot", by: "x").head }
    }
    for number in 0..<20 { _ = try await store.push(onePush(device: "d\(number)"), to: "cold\(number % 3)", by: "x") }
    #expect(try await store.heads(of: ["hot"]) == ["hot": 1])
    try holder.commit()
    var heads: [Int] = []
    for task in waiting { heads.append(try await task.value) }
    #expect(heads.sorted() == Array(2...11))
    await store.close()
  }

  /// A process that is gone, or whose COMMIT never arrives, looks like this to the database.
  @Test func aSessionInWhichNothingHappensGivesItsLocksUp() async throws {
    let uri = try await PostgresCluster.shared().freshDatabase()
    let store = try await Self.open(uri)
    _ = try await store.push(onePush(), to: "a", by: "x")
    let lost = try Self.connect(uri) { $0.idleSeconds = 3 }
    try lost.begin(.write)
    _ = try lost.row("SELECT head FROM larder_scopes WHERE scope = 'a' FOR UPDATE")
    try lost.execute("UPDATE larder_scopes SET head = 7 WHERE scope = 'a'")
    #expect(try await store.push(onePush(seq: 2, id: "b"), to: "a", by: "x").head == 2)
    #expect(throws: StoreError.self) { try lost.commit() }
    await store.close()
  }

  @Test func processesTellEachOtherAlsoAfterTheirConnectionsWereCut() async throws {
    let cluster = try await PostgresCluster.shared()
    let uri = try await cluster.freshDatabase()
    let (one, other) = (try await Self.open(uri) { $0.listening = .store }, try await Self.open(uri) { $0.listening = .at(uri) })
    let heard = Mutex(0)
    other.pokes?.listen { head, scope in heard.withLock { $0 = scope == "a:b" ? max($0, head) : -1_000 } }
    var seq = 0
    for round in 0..<3 {
      let start = seq
      let isHeard = try await eventually {
        seq += 1
        let head = try await one.push(onePush(seq: seq, id: "r\(seq)"), to: "a:b", by: "x").head
        #expect(head == seq)
        return heard.withLock { $0 } > start
      }
      #expect(isHeard, "round \(round)")
      let name = uri.split(separator: "/").last.map(String.init) ?? ""
      try await cluster.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(name)'")
    }
    await one.close()
    await other.close()
    #expect(
      try await eventually {
        try await cluster.query(
          "SELECT count(*) FROM pg_stat_activity WHERE usename = 'larder' AND datname = '\(uri.split(separator: "/").last ?? "")'") == "0"
      })
  }

  @Test func withoutListeningNewsComeByLooking() async throws {
    let uri = try await PostgresCluster.shared().freshDatabase()
    let other = try await Self.open(uri)
    try await TestServer.run(watch: .milliseconds(50), opening: { try await Self.open(uri, logs: $0) }) { server in
      let (lines, task) = try EventReader.open("\(server.base)/v1/scopes/user%2F42/events", token: TestTokens.ann)
      var fields = EventFields(iterator: lines.makeAsyncIterator())
      #expect(await fields.next() == "id: 0")
      _ = try await other.push(onePush(), to: "user/42", by: "ann")
      while let line = await fields.next() { if line == "id: 1" { break } }
      // The history is another one: the stream ends, and the device begins a new one.
      _ = try await other.changeHistory()
      while await fields.next() != nil {}
      task.cancel()
    }
    await other.close()
  }

  @Test func aPromotedStandbyHasAnotherHistoryUnlessItIsTrusted() async throws {
    try await PostgresCluster.run { primary in
      let uri = try await primary.freshDatabase()
      let store = try await Self.open(uri)
      let history = try await store.history()
      #expect(history.hasSuffix("-1"))
      await store.close()
      let standby = try await primary.standby()
      try await primary.kill()
      try await standby.promote()
      let moved = uri.replacing(":\(primary.port)/", with: ":\(standby.port)/")
      let promoted = try await Self.open(moved)
      #expect(try await promoted.history() == history.dropLast(2) + "-2")
      let trusting = try await Self.open(moved) { $0.trustsFailover = true }
      #expect(try await trusting.history() == history.dropLast(2))
      await promoted.close()
      await trusting.close()
      await standby.remove()
    }
  }

  @Test func aDatabaseThatDoesNotAnswerIsTold() async throws {
    try await PostgresCluster.run { cluster in
      let uri = try await cluster.freshDatabase()
      try await TestServer.run(opening: { try await Self.open(uri, logs: $0) }) { server in
        #expect(try await server.send("GET", "/readyz").status == 200)
        try await cluster.stop(.immediate)
        #expect(try await server.send("GET", "/readyz").status == 503)
        #expect(try await server.push(onePush()).status == 503)
        try await cluster.start()
        #expect(try await eventually { try await server.send("GET", "/readyz").status == 200 })
        #expect(try await server.push(onePush()).status == 200)
        #expect(!server.logs.text.contains(cluster.password))
      }
    }
  }

  @Test func copiesAreMadeByTheToolsOfPostgreSQL() async throws {
    let store = try await Self.open(try await PostgresCluster.shared().freshDatabase())
    let error = await #expect(throws: StoreError.self) { try await store.backUp(to: "/nowhere") }
    #expect("\(error, default: "nothing")".contains("pg_dump"))
    let history = try await store.history()
    let other = try await store.changeHistory()
    #expect(other != history)
    #expect(try await store.history() == other)
    await store.close()
  }
}
