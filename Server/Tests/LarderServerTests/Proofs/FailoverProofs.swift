import Foundation
import LarderSync
import Testing

extension PostgresProofs {
  /// What is left when a primary is killed under load, or an older copy is put in its place.
  @Suite struct FailoverProofs {
    private struct Found {
      var outcome = LoadDevice.Outcome()
      /// The pushes that were answered before the kill or after it and are not there.
      var lost = 0
      var before = 0
    }

    /// Kills the primary while devices push, promotes the standby, and looks for what was answered.
    ///
    /// - Parameter isSynchronous: Without, the standby is cut off before, so that it lacks what comes afterwards.
    private func failOver(isSynchronous: Bool, _ arguments: [String]) async throws -> Found {
      let seed = PostgresProofs.seed("failOver")
      var found = Found()
      try await PostgresCluster.run { primary in
        let standby = try await primary.standby(isSynchronous: isSynchronous)
        let database = PostgresProofs.database(try await primary.freshDatabase())
        let uri = primary.uri(of: database).replacing(":\(primary.port)/", with: ":\(primary.port),127.0.0.1:\(standby.port)/")
        try await ServerGroup.run(2, on: uri, arguments) { group in
          _ = try await LoadDevice(name: "first", scope: "s0", servers: group.transports, counts: false).run(1, seed: seed)
          if !isSynchronous {
            // Until it has come that far, the standby has not even the database.
            let hasFirst = try await eventually {
              do { return try await standby.query("SELECT count(*) FROM larder_records", in: database) == "1" } catch is PostgresFailure {
                return false
              }
            }
            #expect(hasFirst)
            try await standby.query("ALTER SYSTEM SET primary_conninfo = ''")
            try await standby.query("SELECT pg_reload_conf()")
            #expect(try await eventually { try await primary.query("SELECT count(*) FROM pg_stat_replication") == "0" })
          }
          let answered = Counter()
          let least = count(60, 1_000)
          let load = Task {
            try await withThrowingTaskGroup(of: (String, LoadDevice.Outcome).self) { tasks in
              for number in 0..<16 {
                let device = LoadDevice(name: "d\(number)", scope: "s\(number % 4)", servers: group.transports, counts: false)
                tasks.addTask {
                  let outcome = try await device.run(least / 4, seed: seed &+ UInt64(number)) { answered.add() }
                  return (device.scope, outcome)
                }
              }
              return try await tasks.reduce(into: [(String, LoadDevice.Outcome)]()) { $0.append($1) }
            }
          }
          #expect(try await eventually { answered.value >= least })
          found.before = answered.value
          try await primary.kill()
          try await standby.promote()
          let outcomes = try await load.value
          for (scope, outcome) in outcomes {
            found.outcome.add(outcome)
            let page = try await group.transports[0].changes(SyncChangesRequest(device: "reader", since: 0, limit: 1_000_000), in: scope)
            let there = Dictionary(page.changes.map { ($0.id, $0.revision) }, uniquingKeysWith: { $1 })
            found.lost += outcome.commits.filter { there[$0.key] != $0.value }.count
          }
        }
        await standby.remove()
      }
      return found
    }

    @Test func whatWasAcknowledgedIsThereAfterAFailover() async throws {
      let found = try await failOver(isSynchronous: true, ["--trust-failover"])
      #expect(found.lost == 0)
      #expect(!found.outcome.wasForgotten)
      // Devices just go on: as many pushes as they had to make, under one history.
      #expect(found.outcome.commits.count == 16 * (count(60, 1_000) / 4))
      #expect(found.outcome.histories.count == 1)
      report(
        "failover, synchronous: killed after \(found.before) answers, \(found.outcome.commits.count) acknowledged, \(found.lost) lost, "
          + "\(found.outcome.unavailable) times unavailable, \(found.outcome.histories.count) history")
    }

    /// Without trust the history is another one, since nobody knows whether the standby had everything.
    @Test func aStandbyThatIsBehindIsSeen() async throws {
      let found = try await failOver(isSynchronous: false, [])
      #expect(found.lost > 0)
      #expect(found.outcome.wasForgotten || found.outcome.histories.count > 1)
      report("failover, standby cut off before: \(found.lost) of \(found.outcome.commits.count) lost, which is seen")
    }
  }
}
