import Foundation
import TestSupport

/// The work that a store is at when its writer is killed.
enum KillRow: String, CaseIterable, Sendable {
  /// Saves, deletions, batches and transactions of four tasks, and now and then a checkpoint.
  case exclusive
  /// The same, and batches of some hundred records, while one checkpoint follows the other.
  case checkpoint
  /// Imports: one batch of many records after the other.
  case importing
  /// Two processes of two tasks each; see ``SharedKillTests``.
  case shared
  /// A rewrite of old records; see ``MigrationKillTests``.
  case migration

  /// The rows of one writer that goes on where the last one was killed.
  static let ofOneWriter: [KillRow] = [.exclusive, .checkpoint, .importing]

  /// The number of kills of one backend.
  ///
  /// All rows but `shared` have 25 together; with `LARDER_TORTURE` they have 10,000, or 1,000 in a debug build.
  ///
  /// `LARDER_KILLS` sets another number for each row.
  var kills: Int {
    if let number = ProcessInfo.processInfo.environment["LARDER_KILLS"].flatMap(Int.init) { return number }
    switch self {
    case .exclusive: return Torture.count(8, full: 4_000 / Self.slowness)
    case .checkpoint: return Torture.count(6, full: 3_000 / Self.slowness)
    case .importing: return Torture.count(6, full: 2_000 / Self.slowness)
    case .shared: return Torture.count(6, full: 2_000 / Self.slowness)
    case .migration: return Torture.count(5, full: 1_000 / Self.slowness)
    }
  }

  /// How many stores are written at once: a kill waits for its processes most of the time.
  static let lanes = Torture.isOn ? ProcessInfo.processInfo.activeProcessorCount : 1

  #if DEBUG
    private static let slowness = 10
  #else
    private static let slowness = 1
  #endif

  /// The seed from which all seeds of a test follow: the one in `LARDER_SEED`, if it is set.
  static func seed() -> UInt64 {
    let seed = ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)
    print("LARDER_SEED=\(seed) (the kills' moments do not replay exactly)")
    return seed
  }

  /// Makes the kills of a row in several lanes at once, each with a seed of its own, and says what they found.
  func run(
    _ kind: DiskBackend, _ seed: UInt64, lane: @escaping @Sendable (_ kills: Int, _ seed: UInt64) async throws -> KillFigures
  ) async throws -> KillFigures {
    let (kills, lanes) = (kills, min(Self.lanes, kills))
    let figures = try await withThrowingTaskGroup(of: KillFigures.self) { group in
      for number in 0..<lanes {
        let share = kills / lanes + (number < kills % lanes ? 1 : 0)
        group.addTask { try await lane(share, seed &+ UInt64(number)) }
      }
      return try await group.reduce(into: KillFigures()) { $0.add($1) }
    }
    print("figures: kills \(figures.kills), acknowledged \(figures.acknowledged), \(kind), \(self), amid it \(figures.amid)")
    return figures
  }
}

/// The outcomes of kills.
struct KillFigures: Sendable {
  var kills = 0
  var acknowledged = 0
  /// The kills that fell while something was under way: a commit, a checkpoint or a rewrite, as the row has it.
  var amid = 0

  mutating func add(_ other: KillFigures) {
    kills += other.kills
    acknowledged += other.acknowledged
    amid += other.amid
  }
}
