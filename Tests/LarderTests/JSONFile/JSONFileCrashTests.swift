import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@Suite("Crashes of a JSON store", .timeLimit(.minutes(Torture.isOn ? 60 : 15)))
struct JSONFileCrashTests {
  private static let workloads: [CrashWorkload] =
    [
      .creation, .firstSave, .batches, .deletes, .checkpoints, .previous, .closing, .largeRecords, .buffered, .background,
      .backgroundGivenUp,
    ]
  /// A journal that has to grow often.
  private static let tuning = JSONFileBackend.Tuning(journalChunk: 512)

  private static func explore(
    _ workload: CrashWorkload, seed: UInt64, images: Int = 200,
    through wrap: (SimulatedFileSystem) -> any FileSystem = { $0 }, reading: @escaping (SimulatedFileSystem) -> any FileSystem = { $0 }
  ) throws -> CrashExplorer.Exploration {
    let invariants = CrashInvariants(workload: workload, tuning: tuning, through: reading)
    return try CrashExplorer(seed: seed, imagesPerPoint: images).explore(through: wrap) { files, promise in
      try workload.run(on: files, tuning: tuning, promise)
    } check: { image, promises in
      try invariants.check(image.fileSystem, image.kind, promises)
    }
  }

  @Test func noCrashLosesAnAcknowledgedWrite() async throws {
    let seed = try #require(Seeds.list(1, for: "noCrashLosesAnAcknowledgedWrite").first)
    let workloads = Self.workloads + (0..<3).map { .random(seed: seed &+ $0) }
    let clock = ContinuousClock.now
    let result = try await Explorations.run(workloads, thenFrom: seed &+ 3, images: Torture.count(3_800, full: 600_000)) {
      try Self.explore($0, seed: seed, images: Torture.count(4, full: 200))
    }
    print("figures: crash images of JSON: \(result.images) at \(result.points) points in \(clock.duration(to: .now))")
    #expect(result.images >= Torture.count(3_800, full: 600_000))
  }

  @Test func noCrashBesideACheckpointLosesAnAcknowledgedWrite() async throws {
    let seed = try #require(Seeds.list(1, for: "noCrashBesideACheckpointLosesAnAcknowledgedWrite").first)
    let result = try await Explorations.run([.background, .backgroundGivenUp]) {
      try Self.explore($0, seed: seed, images: Torture.count(12, full: 200))
    }
    print("figures: crash images of JSON beside a checkpoint: \(result.images) at \(result.points) points")
    #expect(result.images >= Torture.count(900, full: 2_000))
  }

  /// Every operation of recovery is a crash point too, and what is left must recover to at least what the interrupted recovery had found.
  @Test func aCrashDuringRecoveryLosesNothingEither() async throws {
    let seed = try #require(Seeds.list(1, for: "aCrashDuringRecoveryLosesNothingEither").first)
    let workloads: [CrashWorkload] = [
      .creation, .firstSave, .deletes, .checkpoints, .largeRecords, .buffered, .background, .random(seed: seed),
    ]
    let clock = ContinuousClock.now
    let result = try await Explorations.run(workloads, thenFrom: seed &+ 1, images: Torture.count(2_500, full: 200_000)) { workload in
      let invariants = CrashInvariants(workload: workload, tuning: Self.tuning)
      let images = Torture.count(1, full: 5)
      let (first, second) = (CrashExplorer(seed: seed, imagesPerPoint: images), CrashExplorer(seed: seed, imagesPerPoint: images))
      var result = CrashExplorer.Exploration()
      var sample = SeededGenerator(seed)
      var checked = sample.int(0..<6)
      _ = try first.explore { files, promise in
        try workload.run(on: files, tuning: Self.tuning, promise)
      } check: { image, promises in
        // Every sixth of the first crashes, from one that the seed decides.
        checked += 1
        guard Torture.isOn || checked % 6 == 0 else { return }
        result += try second.explore(from: { image.fileSystem.copy() }) { (files, promise: (CrashWorkload.Promise) -> Void) in
          let report = try JSONFileBackend(file: CrashWorkload.file, fileSystem: files, tuning: Self.tuning).openAndRecover(
            workload.options
          ) { _ in }
          promise(.kept(report.commit.number, .durable))
        } check: { again, found in
          // A power loss during recovery may also take what only survived the first crash because it was a kill.
          let kind: CrashKind = again.kind == .powerLoss ? .powerLoss : image.kind
          try invariants.check(again.fileSystem, kind, promises + found, andGoOn: sample.int(0..<8) == 0)
        }
      }
      return result
    }
    print("figures: images of crashes in JSON's recovery: \(result.images) at \(result.points) points in \(clock.duration(to: .now))")
    #expect(result.images >= Torture.count(2_500, full: 200_000))
  }

  // MARK: Teeth: each of these defects must be found

  private func finding(
    in workload: CrashWorkload,
    through wrap: (SimulatedFileSystem) -> any FileSystem = { $0 }, reading: @escaping (SimulatedFileSystem) -> any FileSystem = { $0 }
  ) -> String {
    do {
      _ = try Self.explore(workload, seed: 1, images: Torture.count(12, full: 200), through: wrap, reading: reading)
      return ""
    } catch let failure as CrashExplorer.Failure {
      return "\(failure.underlying)"
    } catch {
      return "the workload itself failed: \(error)"
    }
  }

  @Test(arguments: [CrashWorkload.creation, .firstSave, .checkpoints])
  func aMissingDirectorySyncIsFound(workload: CrashWorkload) {
    let found = finding(in: workload) { DirectorySyncIgnoring($0) }
    #expect(found.hasPrefix("I1"), "\(found)")
  }

  @Test(arguments: [CrashWorkload.creation, .firstSave, .checkpoints])
  func aRenameBeforeTheSyncIsFound(workload: CrashWorkload) {
    let found = finding(in: workload) { RenameBeforeSync($0) { $0.hasSuffix("-tmp") } }
    #expect(found.hasPrefix("I"), "\(found)")
  }

  @Test(arguments: [CrashWorkload.batches, .largeRecords])
  func ignoredChecksumsAreFound(workload: CrashWorkload) {
    let found = finding(in: workload, reading: { ChecksumMendingFiles(base: $0) })
    #expect(found.hasPrefix("I"), "\(found)")
  }
}
