import Foundation
import LarderSync
import Testing

extension PostgresProofs {
  /// How soon the streams of one process tell of a push that another one took.
  @Suite struct PokeProofs {
    /// Returns the times in milliseconds from before each push to its news in the other process.
    private func latencies(_ pushes: Int, _ arguments: [String]) async throws -> [Double] {
      var found: [Double] = []
      let uri = try await PostgresCluster.shared().freshDatabase()
      let seed = PostgresProofs.seed("latencies")
      try await ServerGroup.run(2, on: uri, arguments) { group in
        var heads = try await group.transports[1].heads(of: "s0").makeAsyncIterator()
        #expect(try await heads.next() == 0)
        let clock = ContinuousClock()
        for number in 1...pushes {
          let device = LoadDevice(name: "d\(number)", scope: "s0", servers: [group.transports[0]], counts: false)
          let since = clock.now
          _ = try await device.run(1, seed: seed)
          while let head = try await heads.next(), head < number {}
          found.append((clock.now - since).milliseconds)
        }
      }
      return found
    }

    private func text(_ found: [Double]) -> String {
      "\(found.count) pushes, median \(Int(percentile(0.5, of: found))) ms, p95 \(Int(percentile(0.95, of: found))) ms, "
        + "most \(Int(percentile(1, of: found))) ms"
    }

    @Test func newsComeAtOnceWhereProcessesListen() async throws {
      let found = try await latencies(count(10, 200), [])
      report("LISTEN on: \(text(found))")
      // Without listening, one push after another takes a second each, which is the time between two looks.
      if PostgresProofs.isTorture {
        #expect(percentile(0.5, of: found) < 500)
        #expect(percentile(0.95, of: found) <= 200)
      } else {
        // On a machine that is busy with other tests, most may be late; but without listening, only the first one is not.
        #expect(percentile(0.1, of: found) < 500)
      }
    }

    @Test func newsComeWithoutListening() async throws {
      let found = try await latencies(count(3, 30), ["--listen", "off"])
      report("LISTEN off: \(text(found))")
      #expect(percentile(0.5, of: found) > 250, "somebody listens")
      if PostgresProofs.isTorture { #expect(percentile(1, of: found) <= 2_500) }
    }
  }
}
