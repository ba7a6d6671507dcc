import LarderTesting

/// Histories of devices that sync, optimised.
///
/// `Smoke histories [FIRST COUNT]` runs them; LarderSyncTests has those of the first 50 seeds in a debug build.
enum SyncHistories {
  static func run() async throws {
    let arguments = CommandLine.arguments
    let first = arguments.count > 2 ? UInt64(arguments[2]) ?? 0 : 0
    let count = arguments.count > 3 ? Int(arguments[3]) ?? 2_000 : 2_000
    var events: [SyncSimulation.Event: Int] = [:]
    var failures = 0
    for seed in first..<first + UInt64(count) {
      let report = try await SyncSimulation(seed: seed).run()
      events.merge(report.events, uniquingKeysWith: +)
      guard !report.problems.isEmpty else { continue }
      failures += 1
      print("LARDER_SYNC_SEED=\(seed) LARDER_SYNC_HISTORIES=1 repeats it: \(report.problems.joined(separator: "; "))")
    }
    let counted = events.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
    print("figures: sync histories \(count) from seed \(first), failed \(failures): \(counted)")
    let missing = SyncSimulation.Event.allCases.filter { events[$0, default: 0] == 0 }
    if count >= 600, !missing.isEmpty { throw SmokeFailure(description: "these never happened: \(missing)") }
    if failures > 0 { throw SmokeFailure(description: "\(failures) histories did not end as they must") }
  }
}
