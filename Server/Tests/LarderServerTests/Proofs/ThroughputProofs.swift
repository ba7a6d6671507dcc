import Foundation
import LarderWire
import Synchronization
import Testing

@testable import LarderServer

extension PostgresProofs {
  /// Scopes do not wait for each other: what many take together is a multiple of what one takes.
  @Suite(.enabled("takes time and a quiet machine: LARDER_TORTURE=1") { PostgresProofs.isTorture }) struct ThroughputProofs {
    /// Returns the pushes per second of 64 devices to a number of scopes.
    private func rate(_ scopes: Int, _ uri: String, seconds: Double) async throws -> Double {
      var options = PostgreSQLOptions()
      (options.writers, options.readers, options.listening) = (16, 1, .off)
      let store = try await SQLSyncStore.open(postgreSQL: uri, options: options, logger: LogLines().logger())
      // Each measurement is by devices of its own, which begin to count anew.
      let run = UUID().uuidString
      let clock = ContinuousClock()
      let since = clock.now
      let pushes = try await withThrowingTaskGroup(of: Int.self) { group in
        for number in 0..<64 {
          group.addTask {
            var seq = 0
            while clock.now - since < .seconds(seconds) {
              seq += 1
              let push = onePush(device: "\(run)-\(number)", seq: seq, id: "\(run)-\(number)-\(seq)")
              _ = try await store.push(push, to: "scopes-\(scopes)-\(number % scopes)", by: "x")
            }
            return seq
          }
        }
        return try await group.reduce(0, +)
      }
      let rate = Double(pushes) / ((clock.now - since) / .seconds(1))
      await store.close()
      return rate
    }

    /// With the disk as it is, and with one whose flush takes four milliseconds more: PostgreSQL's own `commit_delay` waits before it.
    @Test(arguments: [0, 4_000]) func manyScopesTakeEightTimesWhatOneTakes(delay: Int) async throws {
      let settings = ["track_wal_io_timing = on"] + (delay == 0 ? [] : ["commit_delay = \(delay)", "commit_siblings = 0"])
      try await PostgresCluster.run(settings: settings) { cluster in
        let uri = try await cluster.freshDatabase()
        _ = try await rate(64, uri, seconds: 2)
        var (one, many): ([Double], [Double]) = ([], [])
        for _ in 0..<3 {
          one.append(try await rate(1, uri, seconds: 5))
          many.append(try await rate(64, uri, seconds: 5))
        }
        let flush = try await cluster.query("SELECT round((wal_sync_time / wal_sync)::numeric, 2) FROM pg_stat_wal")
        let (slow, fast) = (percentile(0.5, of: one), percentile(0.5, of: many))
        report(
          "throughput, commit_delay \(delay) µs, 16 connections, 64 devices: one scope \(Int(slow)), 64 scopes \(Int(fast)) pushes/s, "
            + "\((fast / slow).formatted(.number.precision(.fractionLength(1)))) times; a flush takes \(flush) ms")
        if delay > 0 { #expect(fast >= 8 * slow) } else { #expect(fast > slow) }
      }
    }
  }
}
