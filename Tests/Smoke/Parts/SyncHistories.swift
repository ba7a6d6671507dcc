import Foundation
import Larder
import LarderSQLite
import LarderTesting

/// Histories of devices that sync, optimised.
///
/// `Smoke histories [FIRST COUNT [json | sqlite]]` runs them, in memory or in files; LarderSyncTests has those of the first 50 seeds in a
/// debug build.
enum SyncHistories {
  static func run(in directory: URL) async throws {
    let arguments = CommandLine.arguments
    let first = arguments.count > 2 ? UInt64(arguments[2]) ?? 0 : 0
    let count = arguments.count > 3 ? Int(arguments[3]) ?? 2_000 : 2_000
    let kind = arguments.count > 4 ? arguments[4] : "memory"
    var events: [SyncSimulation.Event: Int] = [:]
    var failures = 0
    for seed in first..<first + UInt64(count) {
      let own = directory.appendingPathComponent("\(seed)", isDirectory: true)
      try FileManager.default.createDirectory(at: own, withIntermediateDirectories: true)
      let report = try await SyncSimulation(seed: seed) { backend(kind, $0, own) }.run()
      try FileManager.default.removeItem(at: own)
      events.merge(report.events, uniquingKeysWith: +)
      guard !report.problems.isEmpty else { continue }
      failures += 1
      print("`Smoke histories \(seed) 1 \(kind)` repeats it: \(report.problems.joined(separator: "; "))")
    }
    let counted = events.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
    print("figures: sync histories in \(kind) \(count) from seed \(first), failed \(failures): \(counted)")
    let missing = SyncSimulation.Event.allCases.filter { events[$0, default: 0] == 0 }
    if count >= 600, !missing.isEmpty { throw SmokeFailure(description: "these never happened: \(missing)") }
    if failures > 0 { throw SmokeFailure(description: "\(failures) histories did not end as they must") }
  }

  private static func backend(_ kind: String, _ device: Int, _ directory: URL) -> any StorageBackend {
    let file = directory.appendingPathComponent("device-\(device)", isDirectory: false)
    return switch kind {
    case "json": JSONFileBackend(file: file)
    case "sqlite": SQLiteBackend(file: file)
    default: InMemoryBackend()
    }
  }
}
