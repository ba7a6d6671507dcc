import Dispatch
import Foundation
import Larder
import LarderTesting
import Synchronization
import TestSupport
import Testing

/// Each call of each workload fails, with some numbers or with `LARDER_TORTURE` with all of them, once and for ever.
@Suite("Every call of a JSON store fails once, and life goes on", .timeLimit(.minutes(Torture.isOn ? 60 : 10)))
struct FaultMatrixTests {
  private struct Figures: Sendable {
    /// Recorded by the test: another thread does not know whose they are.
    var violations: [String] = []
    var faults = 0
    var images = 0
    var sites: Set<String> = []
  }

  /// Runs a workload once for each call and fault.
  private static func explore(_ workload: FaultWorkload, seed: UInt64) -> Figures {
    var figures = Figures()
    let plain = FaultTrial(workload, seed: seed)
    do { try plain.run() } catch {
      figures.violations.append("\(workload): without a fault: \(error)")
      return figures
    }
    for (number, point) in plain.faulty.calls.enumerated() where point.key.hasPrefix(workload.only) {
      let faults =
        Torture.isOn
        ? Fault.all(of: point.call) + Fault.all(of: point.call, isPermanent: true) : Fault.sample(of: point.call, number &+ Int(seed % 97))
      for fault in faults {
        let trial = FaultTrial(workload, point, fault, seed: seed &+ UInt64(number), isThorough: Torture.isOn)
        do { try trial.run() } catch { figures.violations.append("\(workload): \(point): \(fault): \(error)") }
        if trial.faulty.hits > 0 { figures.sites.insert(point.key) }
        figures.faults += trial.faulty.hits
        figures.images += trial.images
      }
    }
    return figures
  }

  @Test(arguments: FaultWorkload.all) func everyCallFailsAndLifeGoesOn(_ workload: FaultWorkload) async throws {
    let seed = try #require(Seeds.list(1, for: "everyCallFailsAndLifeGoesOn, \(workload)").first)
    let clock = ContinuousClock.now
    let figures = await DispatchQueue.global().run { Self.explore(workload, seed: seed) }
    for violation in figures.violations { Issue.record("\(violation)") }
    print(
      "figures: faults \(figures.faults), sites \(figures.sites.count), images \(figures.images), \(workload), "
        + "\(clock.duration(to: .now))")
    #expect(figures.faults > (workload.only.isEmpty ? 50 : 1))
    try CallTrace.save("json-\(workload.name.filter(\.isLetter))")
  }

  /// A disk that stays full or broken from some call on, for a sample of the calls.
  @Test func aDiskThatGoesOnFailingLosesNothing() throws {
    let seed = try #require(Seeds.list(1, for: "aDiskThatGoesOnFailingLosesNothing").first)
    var random = SeededGenerator(seed)
    var faults = 0
    for workload in FaultWorkload.usual.dropLast() {
      let plain = FaultTrial(workload, seed: seed)
      try plain.run()
      // A new store whose name is never synced, and cannot be removed either, may be gone after all: nothing was in it.
      let calls = plain.faulty.calls.drop { $0.key != "create spots.json-journal-tmp" }
      for point in calls.shuffled(using: &random).prefix(Torture.count(12, full: 100)) {
        guard let fault = Fault.all(of: point.call, isPermanent: true).randomElement(using: &random) else { continue }
        let trial = FaultTrial(workload, point, fault, seed: random.next())
        do { try trial.run() } catch { Issue.record("\(workload): \(point): \(fault): \(error)") }
        faults += trial.faulty.hits
      }
    }
    #expect(faults > 100)
    try CallTrace.save("json-permanent")
  }

  /// A main file of more than 2 MiB that is written beside commits is synced in parts.
  @Test func aMainFileThatIsSyncedInPartsFailsAtTheFirst() throws {
    for fault in Torture.isOn ? Fault.all(of: .sync) : [Fault(EIO)] {
      let trial = FaultTrial(FaultWorkload(name: "a large main file", steps: []), seed: 1)
      try trial.open()
      for step: FaultWorkload.Step in [.save(["a", "b", "c"], size: 1_050_000), .begin, .fail(.sync, "spots.json-tmp", fault.errorNumber)] {
        try trial.apply(step)
      }
      try trial.apply(.work)
      let failure = #expect(throws: RepositoryError.self) { try trial.apply(.next) }
      #expect(failure?.code == fault.code && trial.faulty.scriptedHits == 1)
      try trial.apply(.save(["d"]))
      try trial.apply(.reopen)
    }
    try CallTrace.save("json-parts")
  }
}
