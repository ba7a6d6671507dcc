import Foundation
import LarderTesting
import Testing

/// The first histories of `SyncSimulation`, in the order of their seeds.
///
/// A history costs five times as much here as in an optimised build, in which `make test-all` runs 500 (Scripts/smoke.sh) and `make torture`
/// 100,000 (Scripts/Torture/sync.sh).
@Suite struct SyncSimulationTests {
  private static let environment = ProcessInfo.processInfo.environment

  /// The first seeds behind 50 that show a mutant in Tests/Mutants/Sync which none of the first 50 shows: no-horizon-fence.
  private static let keptSeeds: [UInt64] = [58, 155]

  @Test func everyHistoryConverges() async throws {
    let first = UInt64(Self.environment["LARDER_SYNC_SEED"] ?? "") ?? 0
    let asked = UInt64(Self.environment["LARDER_SYNC_HISTORIES"] ?? "")
    let seeds = (0..<(asked ?? 50)).map { first + $0 } + (asked == nil ? Self.keptSeeds : [])
    let count = seeds.count
    // Of two tasks each takes every other seed: what goes wrong early is found early.
    let events = try await withThrowingTaskGroup(of: [SyncSimulation.Event: Int].self) { group in
      for part in 0..<min(2, count) {
        group.addTask { try await Self.run(stride(from: part, to: count, by: 2).map { seeds[$0] }) }
      }
      return try await group.reduce(into: [:]) { $0.merge($1, uniquingKeysWith: +) }
    }
    print(
      "\(count) histories: \(events.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))")
    if count >= 200 {
      for event in SyncSimulation.Event.allCases { #expect(events[event, default: 0] > 0, "\(event) never happened") }
    }
  }

  /// A push that came late brought back a record that was deleted meanwhile, and its device had taken another value from a page.
  @Test func aPushThatComesBehindItsOwnValueIsTaken() async throws {
    let report = try await SyncSimulation(seed: 46_448).run()
    #expect(report.problems.isEmpty)
  }

  private static func run(_ seeds: [UInt64]) async throws -> [SyncSimulation.Event: Int] {
    var events: [SyncSimulation.Event: Int] = [:]
    for seed in seeds {
      let report: SyncSimulation.Report
      do { report = try await SyncSimulation(seed: seed).run() } catch {
        Issue.record("LARDER_SYNC_SEED=\(seed) LARDER_SYNC_HISTORIES=1 repeats it: \(error)")
        continue
      }
      let problems = report.problems.joined(separator: "; ")
      #expect(report.problems.isEmpty, "LARDER_SYNC_SEED=\(seed) LARDER_SYNC_HISTORIES=1 repeats it: \(problems)")
      events.merge(report.events, uniquingKeysWith: +)
    }
    return events
  }
}
