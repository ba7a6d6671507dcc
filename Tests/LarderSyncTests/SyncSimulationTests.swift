import Foundation
import LarderTesting
import Testing

@Suite struct SyncSimulationTests {
  @Test func everyHistoryConverges() async throws {
    let count = Int(ProcessInfo.processInfo.environment["LARDER_SYNC_HISTORIES"] ?? "") ?? 600
    let first = UInt64(ProcessInfo.processInfo.environment["LARDER_SYNC_SEED"] ?? "") ?? 0
    var events: [SyncSimulation.Event: Int] = [:]
    for seed in first..<first + UInt64(count) {
      let report = try await SyncSimulation(seed: seed).run()
      #expect(report.problems.isEmpty, "seed \(seed): LARDER_SYNC_SEED=\(seed) LARDER_SYNC_HISTORIES=1 repeats it")
      for (event, number) in report.events { events[event, default: 0] += number }
    }
    print(
      "\(count) histories: \(events.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))")
    if count >= 100 {
      for event in SyncSimulation.Event.allCases { #expect(events[event, default: 0] > 0, "\(event) never happened") }
    }
  }
}
