import Foundation
import LarderTesting
import TestSupport
import Testing

@testable import Larder

@Suite("Every call of a repository's disk fails, and memory is what is on it", .timeLimit(.minutes(Torture.isOn ? 60 : 15)))
struct EngineFaultMatrixTests {
  @Test func afterEveryFailureMemoryIsTheDisk() async throws {
    let seed = try #require(Seeds.list(1, for: "afterEveryFailureMemoryIsTheDisk").first)
    let start = try await EngineFaultTrial.start()
    let plain = EngineFaultTrial(start, nil, nil)
    plain.faulty.noteSites()
    try await plain.run()
    let calls = plain.faulty.calls
    var (faults, comparisons) = (0, 0)
    // Each fault of each site is left to the matrix of the JSON store, and half of the calls to the next run.
    let rotation = FaultRotation(seed: seed) { _ in false }
    for (number, (point, usual)) in zip(calls, rotation.faults(of: calls)).enumerated()
    where Torture.isOn || number % 2 == Int(seed % 2) {
      for fault in Torture.isOn ? Fault.all(of: point.call) + Fault.all(of: point.call, isPermanent: true) : usual {
        let trial = EngineFaultTrial(start, point, fault)
        do { try await trial.run() } catch { Issue.record("\(point): \(fault): \(error)") }
        faults += trial.faulty.hits
        comparisons += trial.comparisons
      }
    }
    print("figures: faults \(faults), calls \(calls.count), comparisons of memory and disk \(comparisons), of a repository")
    #expect(faults > 60)
    try CallTrace.save("engine")
  }
}
