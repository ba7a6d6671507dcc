import Dispatch
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

/// Each call of the seam in each scenario fails, with some numbers or with `LARDER_TORTURE` with all of them, once and for ever.
///
/// The files are real ones, and a kill is what they are checked against; `SQLiteFaultMatrixTests` cuts the power, below SQLite itself.
@Suite("SQLite: every call of the seam fails, and life goes on", .timeLimit(.minutes(Torture.isOn ? 60 : 30)))
struct SQLiteSeamFaultMatrixTests {
  private struct Figures: Sendable {
    /// Recorded by the test: another thread does not know whose they are.
    var violations: [String] = []
    var faults = 0
    var sites = 0
    var checks = 0
  }

  /// Returns what an opening of a scenario's files finds.
  private static func start(of scenario: SQLiteSeamScenario) throws -> (state: SQLiteSeamTrial.State, commit: UInt64) {
    guard scenario.files[SQLiteSeamScenario.store] != nil else { return ([:], 0) }
    let place = try SQLiteSeamPlace(scenario.files)
    let backend = SQLiteBackend(file: place.store)
    var state: SQLiteSeamTrial.State = [:]
    let report = try backend.openAndRecover(StoreOptions()) { state[$0.address] = text($0) }
    backend.abandon()
    return (state, report.commit.number)
  }

  /// Returns the faults that a call is given.
  private static func faults(of point: FaultPoint, _ number: Int) -> [Fault] {
    if Torture.isOn { return Fault.all(of: point.call) + Fault.all(of: point.call, isPermanent: true) }
    if point.call == .read, number % 2 == 0 { return [Fault(0, .shortRead)] }
    // The remainders must not go together: each failure meets each kind of call in some run.
    let faults = Fault.sample(of: point.call, number / 3)
    var fault = faults[number % faults.count]
    fault.isPermanent = number % 5 == 0 && fault.effect != .shortRead
    return [fault]
  }

  private static func explore(_ scenario: SQLiteSeamScenario, seed: UInt64) throws -> Figures {
    var figures = Figures()
    let start = try start(of: scenario)
    let plain = try SQLiteSeamTrial(scenario, from: start)
    do { try plain.run() } catch {
      figures.violations.append("\(scenario): without a fault: \(error)")
      return figures
    }
    for (number, point) in plain.calls.enumerated() {
      for fault in faults(of: point, number &+ Int(seed % 97)) {
        let trial = try SQLiteSeamTrial(scenario, from: start, point, fault)
        do { try trial.run() } catch { figures.violations.append("\(scenario): \(point): \(fault): \(error)") }
        figures.faults += trial.faulty.hits
        figures.checks += trial.checks
      }
      figures.sites += 1
    }
    return figures
  }

  @Test func everyCallOfTheSeamFailsAndLifeGoesOn() async throws {
    let seed = try #require(Seeds.list(1, for: "SQLite: everyCallOfTheSeamFailsAndLifeGoesOn").first)
    var all = Figures()
    for scenario in try SQLiteSeamScenario.all() {
      let clock = ContinuousClock.now
      let figures = try await DispatchQueue.global().run { Result { try Self.explore(scenario, seed: seed) } }.get()
      print(
        "figures: faults \(figures.faults), calls \(figures.sites), checks \(figures.checks), SQLite, \(scenario), "
          + "\(clock.duration(to: .now))")
      for violation in figures.violations { Issue.record("\(violation)") }
      all.faults += figures.faults
    }
    #expect(all.faults > 500)
    try CallTrace.save("sqlite-seam")
  }
}
