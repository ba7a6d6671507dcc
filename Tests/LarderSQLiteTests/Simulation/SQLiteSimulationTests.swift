import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderSQLite

/// Power cuts, kills and torn writes at every operation, by the explorer that the JSON store is tested with.
@Suite("SQLite on a simulated disk", .timeLimit(.minutes(Torture.isOn ? 60 : 15)))
struct SQLiteSimulationTests {
  private static let workloads: [CrashWorkload] = [
    .creation, .firstSave, .batches, .deletes, .checkpoints, .closing, .largeRecords, .buffered, .bufferedAnew,
  ]

  private static func explore(
    _ workload: CrashWorkload, seed: UInt64, images: Int, with defect: MirroredDirectory.Defect? = nil
  ) throws -> CrashExplorer.Exploration {
    let invariants = SQLiteCrashInvariants(workload: workload)
    var sample = SeededGenerator(seed)
    return try CrashExplorer(seed: seed, imagesPerPoint: images).explore { files, promise in
      guard let files = files as? SimulatedFileSystem else { return }
      let mirror = try MirroredDirectory(files, defect: defect)
      try workload.run(on: { mirror.backend() }, promise)
      try mirror.checkIsFaithful()
    } check: { image, promises in
      let goesOn = Torture.isOn || sample.int(0..<4) == 0
      try invariants.check(image.fileSystem, image.kind, promises, andGoOn: goesOn)
    }
  }

  @Test func noCrashLosesAnAcknowledgedWrite() async throws {
    let seed = try #require(Seeds.list(1, for: "SQLite: noCrashLosesAnAcknowledgedWrite").first)
    let workloads = Self.workloads + (0..<1).map { .random(seed: seed &+ $0) }
    let clock = ContinuousClock.now
    let result = try await Explorations.run(workloads, thenFrom: seed &+ 1, images: Torture.count(700, full: 200_000)) {
      try Self.explore($0, seed: seed, images: Torture.count(2, full: 200))
    }
    print("figures: crash images of SQLite: \(result.images) at \(result.points) points in \(clock.duration(to: .now))")
    #expect(result.images >= Torture.count(700, full: 200_000))
  }

  /// Every operation of recovery is a crash point too, and what is left must recover to at least what the interrupted recovery had found.
  @Test func aCrashDuringRecoveryLosesNothingEither() async throws {
    let seed = try #require(Seeds.list(1, for: "SQLite: aCrashDuringRecoveryLosesNothingEither").first)
    let workloads: [CrashWorkload] = [.creation, .deletes, .checkpoints, .buffered, .random(seed: seed)]
    let result = try await Explorations.run(workloads, thenFrom: seed &+ 1, images: Torture.count(100, full: 20_000)) { workload in
      let invariants = SQLiteCrashInvariants(workload: workload)
      let first = CrashExplorer(seed: seed, imagesPerPoint: Torture.count(1, full: 5))
      let second = CrashExplorer(seed: seed, imagesPerPoint: Torture.count(1, full: 5))
      var result = CrashExplorer.Exploration()
      var sample = SeededGenerator(seed)
      var checked = sample.int(0..<96)
      _ = try first.explore { files, promise in
        guard let files = files as? SimulatedFileSystem else { return }
        let mirror = try MirroredDirectory(files)
        try workload.run(on: { mirror.backend() }, promise)
      } check: { image, promises in
        // A sample of the first crashes, for each has some thirty second ones: counted, so that none of the longer workloads is left out.
        checked += 1
        guard Torture.isOn || checked % 96 == 0 else { return }
        result += try second.explore(from: { image.fileSystem.copy() }) { (files, promise: (CrashWorkload.Promise) -> Void) in
          guard let files = files as? SimulatedFileSystem else { return }
          let report = try MirroredDirectory(files).backend().openAndRecover(workload.options) { _ in }
          promise(.kept(report.commit.number, .durable))
        } check: { again, found in
          // A power loss during recovery may also take what only survived the first crash because it was a kill.
          let kind: CrashKind = again.kind == .powerLoss ? .powerLoss : image.kind
          try invariants.check(again.fileSystem, kind, promises + found, andGoOn: sample.int(0..<8) == 0)
        }
      }
      return result
    }
    print("figures: images of crashes in SQLite's recovery: \(result.images) at \(result.points) points")
    #expect(result.images >= Torture.count(100, full: 20_000))
  }

  /// The process that makes a store may be killed before it has synced the store's name, and the next one makes the log's.
  @Test func aPowerCutBehindAnInterruptedCreationLeavesNoLogWithoutItsDatabase() throws {
    let invariants = SQLiteCrashInvariants(workload: .creation)
    var result = CrashExplorer.Exploration()
    _ = try CrashExplorer(seed: 1, kinds: [.processKill], imagesPerPoint: 1).explore {
      (files, promise: (CrashWorkload.Promise) -> Void) in
      guard let files = files as? SimulatedFileSystem else { return }
      let mirror = try MirroredDirectory(files)
      try CrashWorkload.creation.run(on: { mirror.backend() }, promise)
    } check: { image, _ in
      guard image.fileSystem.paths.contains("/spots.sqlite") else { return }
      result += try CrashExplorer(seed: 1, kinds: [.powerLoss], imagesPerPoint: Torture.count(3, full: 8)).explore(from: {
        image.fileSystem.copy()
      }) {
        (files, promise: (CrashWorkload.Promise) -> Void) in
        guard let files = files as? SimulatedFileSystem else { return }
        _ = try MirroredDirectory(files).backend().openAndRecover(.init()) { _ in }
      } check: { again, _ in
        try invariants.check(again.fileSystem, .powerLoss, [], andGoOn: false)
      }
    }
    #expect(result.images >= 40, "\(result)")
  }

  /// The header is overwritten by the mark, and the mark by a header; frames are overwritten by those of later commits.
  @Test func aKillWithinAWriteOverAnOlderLogIsNoDamage() throws {
    let store = SimulatedFileSystem()
    let backend = try MirroredDirectory(store).backend()
    _ = try backend.openAll()
    try backend.close()
    let result = try CrashExplorer(seed: 1, kinds: [.processKill], imagesPerPoint: 34).explore(from: { store.copy() }) {
      (files, promise: (UInt64) -> Void) in
      guard let files = files as? SimulatedFileSystem else { return }
      let backend = try MirroredDirectory(files).backend()
      _ = try backend.openAll()
      for commit in UInt64(1)...4 {
        try backend.commit([record("a", "\(commit)", at: commit), record("b\(commit)", "1", at: commit)], at: commit)
        promise(commit)
        if commit % 2 == 0 { try backend.checkpoint() }
      }
    } check: { image, promises in
      let (report, contents) = try MirroredDirectory(image.fileSystem).backend().openAll()
      let least = promises.last ?? 0
      try CrashWorkload.expect(report.commit.number >= least && contents.count >= Int(least), "I1: commit \(least) is gone: \(report)")
    }
    #expect(result.images > 400)
  }

  // MARK: Teeth: each of these defects must be found

  @Test(arguments: MirroredDirectory.Defect.allCases)
  func aDefectOfTheDiskIsFound(_ defect: MirroredDirectory.Defect) {
    var found = ""
    do {
      for workload in [CrashWorkload.firstSave, .checkpoints] { _ = try Self.explore(workload, seed: 1, images: 12, with: defect) }
    } catch let failure as CrashExplorer.Failure {
      found = "\(failure.underlying)"
    } catch {
      found = "the workload itself failed: \(error)"
    }
    #expect(found.hasPrefix("I"), "\(found)")
  }
}
