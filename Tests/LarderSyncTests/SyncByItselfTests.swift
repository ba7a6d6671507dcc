import Foundation
import Larder
import LarderTesting
import Synchronization
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
/// A seed repeats what the network and the users do; the order of the tasks is the system's.
@Suite struct SyncByItselfTests {
  private static let scopes = ["user/1", "user/2"]

  private struct Device: Sendable {
    let spots: LocalRepository<Spot>
    let sync: SyncEngine
    let transport: FlakyTransport
  }

  @Test(.timeLimit(.minutes(5)), arguments: Seeds.list(12, for: "devicesEndEqualByThemselves"))
  func devicesEndEqualByThemselves(seed: UInt64) async throws {
    var generator = SeededGenerator(seed)
    let (server, clock, told) = (SimulatedSyncServer(), ManualClock(), Told())
    var devices: [Device] = []
    for _ in 0..<3 {
      let transport = FlakyTransport(server, seed: generator.next()) { told.tell() }
      let store = try await Store.open(InMemoryBackend())
      let schema = RepositorySchema<Spot>("spots").synced(
        in: { $0.id.hasPrefix("1") ? "user/1" : "user/2" }, merge: .fields(counters: [\.visits]))
      let spots = try await store.repository(schema)
      let sync = try await SyncEngine(store, transport: transport, scopes: Self.scopes, clock: clock)
      devices.append(Device(spots: spots, sync: sync, transport: transport))
      await sync.start()
    }
    told.set(devices.map(\.transport))
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
    for device in devices { device.transport.setPerfect() }
    let expected = visits.map { Spot(id: $0.key, visits: $0.value) }.sorted { $0.id < $1.id }
    while !devices.allSatisfy({ isQuiet($0.sync.status.current) && stored($0.spots) == expected }) { try await pass(.seconds(1), clock) }
    let atServer = Self.scopes.reduce(0) { $0 + server.records(of: $1).count }
    #expect(atServer == expected.count)
    #expect(devices.allSatisfy { $0.sync.status.current.rejected == 0 })
    let counts = devices.map { ($0.transport.failures, $0.transport.pokes, $0.transport.polls) }
    #expect(counts.allSatisfy { $0.0 > 0 } && counts.contains { $0.1 > 0 } && counts.contains { $0.2 > 0 }, "LARDER_SEED=\(seed)")
    for device in devices { await device.sync.stop() }
  }

  private func isQuiet(_ status: SyncStatus) -> Bool { status.phase == .idle && status.pending == 0 }

  private func stored(_ spots: LocalRepository<Spot>) -> [Spot] { spots.snapshot.loadAll().sorted { $0.id < $1.id } }

  /// Lets time pass, and the tasks that it wakes begin.
  private func pass(_ time: Duration, _ clock: ManualClock) async throws {
    try Task.checkCancellation()
    clock.advance(by: time)
    for _ in 0..<20 { await Task.yield() }
  }
}

/// The devices that are told of each commit.
private final class Told: Sendable {
  private let transports = Mutex<[FlakyTransport]>([])

  func set(_ transports: [FlakyTransport]) { self.transports.withLock { $0 = transports } }
  func tell() { for transport in transports.withLock({ $0 }) { transport.poke() } }
}
