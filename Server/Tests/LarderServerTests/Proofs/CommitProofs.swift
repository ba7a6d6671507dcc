import Foundation
import LarderSync
import Testing

extension PostgresProofs {
  /// What becomes of a push whose connection to the database is cut in COMMIT.
  @Suite struct CommitProofs {
    @Test func cutCommitsAreDecidedRight() async throws {
      let cluster = try await PostgresCluster.shared()
      let uri = try await cluster.freshDatabase()
      let proxy = try PostgresProxy(to: cluster.port)
      defer { proxy.close() }
      let seed = PostgresProofs.seed("cutCommitsAreDecidedRight")
      let cuts = count(30, 300)
      try await ServerGroup.run(2, on: PostgresProofs.address(uri, through: proxy, of: cluster)) { group in
        let run = FeedRun(scopes: 4, devices: 4, pushes: cuts / 2, servers: group.transports, seed: seed)
        proxy.cut(cuts, oneOf: 3)
        let found = try await run.run()
        let counts = proxy.counts
        #expect(counts.cut == cuts)
        for cut in PostgresProxy.Cut.allCases { #expect((counts.cuts[cut] ?? 0) >= cuts / 4) }
        #expect(found.isClean, "\(found)")
        // The server decides by itself: no device was told to try again.
        #expect(found.outcome.unavailable == 0)
        // A push that was cut after its commit must not be committed again, nor one before it be lost.
        #expect(found.outcome.commits.count + found.outcome.conflicts == run.scopes * run.devices * run.pushes)
        report(
          "cut COMMITs: \(counts.cuts[.before] ?? 0) before, \(counts.cuts[.after] ?? 0) after, \(counts.cuts[.atOnce] ?? 0) at once of "
            + "\(counts.commits); \(found.outcome.commits.count) commits, \(found.outcome.conflicts) conflicts, "
            + "\(found.contradictions) contradictions, \(found.missed) missed, \(found.outcome.unavailable) times unavailable")
      }
    }

    /// A server that does not look at what it remembers of a device, which the same check must see.
    @Test func forgottenReceiptsAreSeen() async throws {
      let cluster = try await PostgresCluster.shared()
      let uri = try await cluster.freshDatabase()
      let part = "FROM larder_devices WHERE scope = $1 AND device = $2"
      let proxy = try PostgresProxy(to: cluster.port, rewrites: [.init(part: part, replacement: part + " AND last_token LIKE '%-1-%'")])
      defer { proxy.close() }
      let seed = PostgresProofs.seed("forgottenReceiptsAreSeen")
      try await ServerGroup.run(1, on: PostgresProofs.address(uri, through: proxy, of: cluster)) { group in
        // Two pushes each. The receipt of a second push is not seen, and only the commits of second pushes are cut: their tokens have a
        // 2 behind the name of the device. Which of the pushes is the seventeenth depends on the machine.
        proxy.cut(12, oneOf: 1, binding: "-2-")
        let found = try await FeedRun(scopes: 4, devices: 4, pushes: 2, servers: group.transports, seed: seed).run()
        #expect((proxy.counts.rewritten[part] ?? 0) > 0, "the statement is another one now")
        #expect(proxy.counts.cut == 12)
        #expect(found.outcome.wasForgotten || found.contradictions > 0, "\(found)")
      }
    }
  }
}
