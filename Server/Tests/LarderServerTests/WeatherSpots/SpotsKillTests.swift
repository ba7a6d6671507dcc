import Foundation
import LarderTesting
import Synchronization
import Testing

/// SIGKILL to either side while two devices visit and sync.
@Suite(.enabled(if: BuiltPrograms.hasWeatherSpots), .timeLimit(.minutes(60))) struct SpotsKillTests {
  private enum Victim: Sendable, CaseIterable { case device, server }

  /// A device, and the visits that are certain.
  private struct Visitor: Sendable {
    let device: SpotsDevice

    /// Visits and syncs once.
    /// - Returns: The number of visits that the store has taken.
    func visitAndSync() async throws -> Int {
      let before = try await visits()
      let visit = try await device.run("visit", "Pier")
      var taken = 1
      if visit.code != 0 {
        #expect(visit.code == -9, "\(visit)")
        // Whether it is stored, the store says.
        taken = try await visits() - before
        #expect([0, 1].contains(taken))
      } else {
        #expect(try await visits() == before + 1, "a visit that was acknowledged is not there")
      }
      let sync = try await device.run("sync", "--timeout", "20")
      #expect([0, 69, -9].contains(sync.code), "\(sync)")
      return taken
    }

    /// Returns what the store says, whoever is killed while it is asked.
    private func visits() async throws -> Int {
      while true {
        let shown = try await device.run("show", "Pier", "--json")
        if shown.code != -9 { return try shown.number("visits") }
      }
    }
  }

  @Test(arguments: Victim.allCases) private func whatWasAcknowledgedIsCountedOnceWhoeverIsKilled(_ victim: Victim) async throws {
    let count = SpotsCounts.value("LARDER_SPOTS_KILLS", 10, torture: 200)
    let environment = ProcessInfo.processInfo.environment
    let seed = environment["LARDER_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 1...1_000_000_000)
    print("weather-spots, kills of a \(victim): LARDER_SEED=\(seed)")
    var random = SeededGenerator(seed: seed)
    let directory = try TemporaryDirectory()
    try await SpotsServer.run(in: directory) { server in
      let visitors = ["one.sqlite", "two.json"].map { Visitor(device: SpotsDevice($0, in: directory)) }
      try await visitors[0].device.addPier()
      for visitor in visitors { try await visitor.device.expect("sync", server.url) }
      // How long it takes tells among which moments to choose; no more than a second, since the machine may be busy only now.
      let start = ContinuousClock.now
      var visits = 0
      for visitor in visitors { visits += try await visitor.visitAndSync() }
      let longest = min(1, max(0.02, (ContinuousClock.now - start) / .seconds(1) / 2))
      var (kills, rounds, acknowledged) = (0, 0, 0)
      while kills < count {
        rounds += 1
        try #require(rounds < 20 * count + 100, "\(kills) of \(rounds) kills have met something")
        let moment = Double.random(in: 0..<longest, using: &random)
        let target = visitors[Int.random(in: 0..<2, using: &random)].device
        async let first = visitors[0].visitAndSync()
        async let second = visitors[1].visitAndSync()
        await Moment.pass(moment)
        switch victim {
        case .device: if target.kill() { kills += 1 }
        case .server:
          try await server.killAndRestart()
          kills += 1
        }
        let taken = [try await first, try await second]
        acknowledged += taken.reduce(0, +)
      }
      visits += acknowledged
      for visitor in visitors + visitors { try await visitor.device.expect("sync") }
      let texts = [try await visitors[0].device.exported(), try await visitors[1].device.exported()]
      #expect(texts[0] == texts[1])
      for visitor in visitors {
        #expect(try await visitor.device.visits() == visits)
        #expect(try await visitor.device.run("verify").code == 0)
      }
      print("figures: weather-spots, \(kills) kills of a \(victim) in \(rounds) rounds: \(visits) visits, none lost, none doubled")
    }
  }
}
