import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderBlobs

/// Each call of each scenario fails, with some numbers or with `LARDER_TORTURE` with all of them, once and for ever.
@Suite("Every call of a blob store fails, and life goes on", .timeLimit(.minutes(Torture.isOn ? 60 : 10)))
struct BlobFaultMatrixTests {
  private struct Figures: Sendable {
    /// Recorded by the test: another thread does not know whose they are.
    var violations: [String] = []
    var faults = 0
    var calls = 0
    var images = 0
  }

  private static func faults(of point: FaultPoint, _ number: Int) -> [Fault] {
    if Torture.isOn { return Fault.all(of: point.call) + Fault.all(of: point.call, isPermanent: true) }
    // The index is a JSON store, whose own matrix fails each of its calls.
    if point.key.contains(BlobFiles.index), number % 4 != 0 { return [] }
    // The remainders must not go together: each failure meets each kind of call in some run.
    let faults = Fault.sample(of: point.call, number / 3)
    var fault = faults[number % faults.count]
    fault.isPermanent = number % 7 == 0 && fault.effect != .shortRead
    return [fault]
  }

  private static func explore(_ scenario: BlobFaultScenario, seed: UInt64) throws -> Figures {
    var figures = Figures()
    let plain = try BlobFaultTrial(scenario, seed: seed)
    do { try plain.run() } catch {
      figures.violations.append("\(scenario): without a fault: \(error)")
      return figures
    }
    figures.calls = plain.calls.count
    for (number, point) in plain.calls.enumerated() {
      for fault in faults(of: point, number &+ Int(seed % 97)) {
        let trial = try BlobFaultTrial(scenario, point, fault, seed: seed &+ UInt64(number))
        do { try trial.run() } catch { figures.violations.append("\(scenario): \(point): \(fault): \(error)") }
        figures.faults += trial.faulty.hits
        figures.images += trial.images
      }
    }
    return figures
  }

  @Test func everyCallFailsAndLifeGoesOn() async throws {
    let seed = try #require(Seeds.list(1, for: "blobs: everyCallFailsAndLifeGoesOn").first)
    var faults = 0
    for scenario in try BlobFaultScenario.all() {
      let clock = ContinuousClock.now
      let figures = try await onOwnThread { try Self.explore(scenario, seed: seed) }
      print(
        "figures: faults \(figures.faults), calls \(figures.calls), images \(figures.images), blobs, \(scenario), "
          + "\(clock.duration(to: .now))")
      for violation in figures.violations { Issue.record("\(violation)") }
      faults += figures.faults
    }
    #expect(faults > 80)
    try CallTrace.save("blobs")
  }
}
