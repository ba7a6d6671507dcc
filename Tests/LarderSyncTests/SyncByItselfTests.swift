import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderSync

private struct Spot: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var visits = 0
}

/// Random runs of devices whose engines run by themselves, on a network that fails: nobody calls `exchange()`.
///
/// `SyncSimulation` asks for each exchange itself, which leaves out what begins one: edits, news, the retry, ``SyncEngine/wake()``.
/// A seed repeats the users' edits; which request fails, how long a retry waits and the order of the tasks are the system's.
@Suite struct SyncByItselfTests {
  private struct Device: Sendable {
    let spots: LocalRepository<Spot>
    let sync: SyncEngine

    var isQuiet: Bool { sync.status.current.phase == .idle && sync.status.current.pending == 0 }
    var stored: [Spot] { spots.snapshot.loadAll().sorted { $0.id < $1.id } }
  }

  @Test(.timeLimit(.minutes(15)), arguments: Seeds.list(12, for: "devicesEndEqualByThemselves"))
  func devicesEndEqualByThemselves(seed: UInt64) async throws {
    var generator = SeededGenerator(seed)
    let (network, clock) = (FlakyNetwork(seed: seed), ManualClock())
    let scopes = ["user/1", "user/2"]
    var devices: [Device] = []
    for _ in 0..<3 {
      let store = try await Store.open(InMemoryBackend())
      let schema = RepositorySchema<Spot>("spots").synced(
        in: { $0.id.hasPrefix("1") ? "user/1" : "user/2" }, merge: .fields(counters: [\.visits]))
      let spots = try await store.repository(schema)
      let sync = try await SyncEngine(store, transport: FlakyTransport(network: network), scopes: scopes, clock: clock)
      devices.append(Device(spots: spots, sync: sync))
      await sync.start()
    }
    var visits: [String: Int] = [:]
    for _ in 0..<60 {
      let device = devices[generator.int(0..<3)]
      let id = "\(generator.int(1..<3))/\(generator.int(0..<4))"
      // In one piece: a merge between reading and saving would be overwritten.
      let spots = device.spots
      try await spots.transaction { transaction in
        var spot = try transaction.find(by: id, in: spots) ?? Spot(id: id)
        spot.visits += 1
        try transaction.save(spot, in: spots)
      }
      visits[id, default: 0] += 1
      if generator.chance(10) { device.sync.wake() }
      if generator.chance(5) {
        await device.sync.stop()
        await device.sync.start()
      }
      for _ in 0..<generator.int(0..<8) { try await pass(.milliseconds(generator.int(0..<2_000)), clock) }
    }
    // Nothing is edited from here on: what has failed must be tried again, or the time limit ends the test.
    network.setPerfect()
    while try !devices.allSatisfy({ $0.isQuiet && $0.stored == devices[0].stored }) || !isAtServer(devices[0].stored, network, scopes) {
      try await pass(.seconds(1), clock)
    }
    let expected = visits.map { Spot(id: $0.key, visits: $0.value) }.sorted { $0.id < $1.id }
    #expect(devices[0].stored == expected, "LARDER_SEED=\(seed)")
    #expect(devices.allSatisfy { $0.sync.status.current.rejected == 0 }, "LARDER_SEED=\(seed)")
    let counts = network.counts
    #expect(counts.failures > 0 && counts.pokes > 0 && counts.polls > 0, "LARDER_SEED=\(seed)")
    for device in devices { await device.sync.stop() }
  }

  private func isAtServer(_ spots: [Spot], _ network: FlakyNetwork, _ scopes: [String]) throws -> Bool {
    let values = scopes.flatMap { network.server.records(of: $0) }.compactMap(\.value)
    return try values.map { try JSONDecoder().decode(Spot.self, from: $0) }.sorted { $0.id < $1.id } == spots
  }

  /// Lets time pass, and gives turns to the tasks that it wakes.
  private func pass(_ time: Duration, _ clock: ManualClock) async throws {
    try Task.checkCancellation()
    clock.advance(by: time)
    for _ in 0..<20 { await Task.yield() }
  }
}
