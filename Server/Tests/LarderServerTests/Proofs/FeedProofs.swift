import Foundation
import LarderSync
import Testing

extension PostgresProofs {
  /// Whoever follows the changes of a scope misses none, whichever process the pushes go through.
  @Suite struct FeedProofs {
    @Test(arguments: [false, true]) func changesAreWholeWithoutGapsAndInOrder(isSerializable: Bool) async throws {
      let cluster = try await PostgresCluster.shared()
      let uri = try await cluster.freshDatabase(options: isSerializable ? ["default_transaction_isolation=serializable"] : [])
      let seed = PostgresProofs.seed("changesAreWholeWithoutGapsAndInOrder")
      try await ServerGroup.run(4, on: uri) { group in
        let run = FeedRun(
          scopes: 16, devices: 8, pushes: count(isSerializable ? 2 : 4, isSerializable ? 25 : 100), servers: group.transports, seed: seed)
        let found = try await run.run()
        #expect(found.isClean, "\(found)")
        #expect(found.outcome.conflicts > 0)
        // The server tries again what loses against others; on a busy machine some may lose for the ten seconds that it does.
        #expect(found.outcome.unavailable <= found.outcome.commits.count / 20)
        #expect(try await ServerProcess.run(uri, ["doctor"]).contains("in order"))
        for process in group.processes { #expect(!process.logged.contains(cluster.password)) }
        report(
          "feed\(isSerializable ? ", serializable" : ""): 4 processes, 8 devices, 16 scopes: \(found.outcome.commits.count) commits, "
            + "\(found.outcome.conflicts) conflicts, \(found.pages) pages, \(found.missed) missed, \(found.gaps) gaps, "
            + "\(found.disorder) out of order, \(found.outcome.unavailable) times unavailable, in \(Int(found.seconds)) s")
      }
    }

    /// The same with failures that the database makes so often that most transactions meet one.
    @Test func serializationFailuresChangeNothing() async throws {
      let cluster = try await PostgresCluster.shared()
      let uri = try await cluster.freshDatabase()
      let database = PostgresProofs.database(uri)
      let seed = PostgresProofs.seed("serializationFailuresChangeNothing")
      try await ServerGroup.run(2, on: uri) { group in
        for sql in [
          "CREATE SEQUENCE larder_forced", "GRANT USAGE ON SEQUENCE larder_forced TO larder",
          "CREATE FUNCTION larder_fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF nextval('larder_forced') % 11 = 0 THEN "
            + "RAISE EXCEPTION USING ERRCODE = '40001', MESSAGE = 'forced'; END IF; RETURN NULL; END $$",
        ] { try await cluster.query(sql, in: database) }
        for table in ["larder_scopes", "larder_records", "larder_devices"] {
          try await cluster.query(
            "CREATE TRIGGER forced AFTER INSERT OR UPDATE ON \(table) FOR EACH STATEMENT EXECUTE FUNCTION larder_fail()", in: database)
        }
        let found = try await FeedRun(scopes: 4, devices: 4, pushes: count(3, 50), servers: group.transports, seed: seed).run()
        #expect(found.isClean, "\(found)")
        let forced = Int(try await cluster.query("SELECT last_value / 11 FROM larder_forced", in: database)) ?? 0
        #expect(forced > found.outcome.commits.count / 4)
        #expect(found.outcome.unavailable == 0)
        report(
          "40001: \(forced) forced, \(found.outcome.commits.count) commits, \(found.missed) missed, \(found.contradictions) contradictions, "
            + "\(found.outcome.unavailable) times unavailable")
      }
    }

    /// Ways to number commits that are wrong, which the same check must see.
    enum Mutant: String, CaseIterable {
      /// A sequence in place of the row that is locked: numbers without gaps, which become visible in another order.
      case sequence
      /// The row without its lock.
      case noLock

      var rewrites: [PostgresProxy.Rewrite] {
        let question = "SELECT head, minimum FROM larder_scopes WHERE scope = $1 FOR UPDATE"
        switch self {
        case .sequence:
          return [
            .init(
              part: question, replacement: "SELECT nextval(('mutant_' || $1)::regclass) - 1, minimum FROM larder_scopes WHERE scope = $1"),
            .init(part: "UPDATE larder_scopes SET head = $1", replacement: "UPDATE larder_scopes SET head = GREATEST(head, $1)"),
          ]
        case .noLock: return [.init(part: question, replacement: "SELECT head, minimum FROM larder_scopes WHERE scope = $1")]
        }
      }
    }

    @Test(arguments: Mutant.allCases) func wrongNumbersAreSeen(mutant: Mutant) async throws {
      let cluster = try await PostgresCluster.shared()
      let uri = try await cluster.freshDatabase()
      let proxy = try PostgresProxy(to: cluster.port, rewrites: mutant.rewrites)
      defer { proxy.close() }
      let seed = PostgresProofs.seed("wrongNumbersAreSeen")
      try await ServerGroup.run(4, on: PostgresProofs.address(uri, through: proxy, of: cluster)) { group in
        let run = FeedRun(scopes: 4, devices: 8, pushes: count(15, 50), servers: group.transports, seed: seed)
        for scope in 0..<run.scopes {
          let name = "mutant_\(FeedRun.name(scope))"
          try await cluster.query("CREATE SEQUENCE \(name); GRANT USAGE ON SEQUENCE \(name) TO larder", in: PostgresProofs.database(uri))
        }
        let found = try await run.run()
        for rewrite in mutant.rewrites { #expect((proxy.counts.rewritten[rewrite.part] ?? 0) > 0, "the statement is another one now") }
        switch mutant {
        case .sequence: #expect(found.missed > 0, "\(found)")
        case .noLock: #expect(found.doubled > 0, "\(found)")
        }
        report(
          "mutant \(mutant): \(found.outcome.commits.count) commits, \(found.missed) missed, \(found.gaps) gaps, \(found.doubled) doubled, "
            + "\(found.contradictions) contradictions")
      }
    }
  }
}
