import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderBlobs

/// Calls of each scenario fail, so that each site of the blobs meets all faults once, or with `LARDER_TORTURE` all calls, once and for ever.
@Suite("Every call of a blob store fails, and life goes on", .timeLimit(.minutes(Torture.isOn ? 60 : 15)))
struct BlobFaultMatrixTests {
  private struct Figures: Sendable {
    /// Recorded by the test: another thread does not know whose they are.
    var violations: [String] = []
    var faults = 0
    var calls = 0
    var images = 0
  }

  /// A scenario and the calls that it makes.
  private struct Program: Sendable {
    var scenario: BlobFaultScenario
    var calls: [FaultPoint]
  }

  /// Runs a scenario without a fault.
  private static func plain(_ scenario: BlobFaultScenario, seed: UInt64) throws -> Program {
    let trial = try BlobFaultTrial(scenario, seed: seed)
    trial.faulty.noteSites()
    do { try trial.run() } catch { throw BlobFaultTrial.Violation("\(scenario): without a fault: \(error)") }
    return Program(scenario: scenario, calls: trial.calls)
  }

  private static func explore(_ program: Program, _ faults: [[Fault]], seed: UInt64) throws -> Figures {
    var figures = Figures()
    figures.calls = program.calls.count
    for (number, (point, usual)) in zip(program.calls, faults).enumerated() {
      for fault in Torture.isOn ? Fault.all(of: point.call) + Fault.all(of: point.call, isPermanent: true) : usual {
        let trial = try BlobFaultTrial(program.scenario, point, fault, seed: seed &+ UInt64(number))
        do { try trial.run() } catch { figures.violations.append("\(program.scenario): \(point): \(fault): \(error)") }
        figures.faults += trial.faulty.hits
        figures.images += trial.images
      }
    }
    return figures
  }

  @Test func everyCallFailsAndLifeGoesOn() async throws {
    let seed = try #require(Seeds.list(1, for: "blobs: everyCallFailsAndLifeGoesOn").first)
    var faults = 0
    let programs = try await onOwnThread { try BlobFaultScenario.all().map { try Self.plain($0, seed: seed) } }
    // The index is a JSON store, whose own matrix gives all faults to each of its sites: here they meet some.
    let rotation = FaultRotation(seed: seed, isPermanent: true) { !$0.key.contains(BlobFiles.index) || [.lock, .rename].contains($0.call) }
    let chosen = rotation.faults(of: programs.map(\.calls))
    for (program, usual) in zip(programs, chosen) {
      let clock = ContinuousClock.now
      let figures = try await onOwnThread { try Self.explore(program, usual, seed: seed) }
      print(
        "figures: faults \(figures.faults), calls \(figures.calls), images \(figures.images), blobs, \(program.scenario), "
          + "\(clock.duration(to: .now))")
      for violation in figures.violations { Issue.record("\(violation)") }
      faults += figures.faults
    }
    #expect(faults > 80)
    try CallTrace.save("blobs")
  }
}
