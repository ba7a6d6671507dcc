import Dispatch
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

/// Calls of the seam in each scenario fail, so that each site meets all faults once, or with `LARDER_TORTURE` all calls, once and for ever.
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

  /// A scenario, what an opening of its files finds, and the calls that it makes.
  private struct Program: Sendable {
    var scenario: SQLiteSeamScenario
    var start: (state: SQLiteSeamTrial.State, commit: UInt64)
    var calls: [FaultPoint]
  }

  /// Runs a scenario without a fault.
  private static func plain(_ scenario: SQLiteSeamScenario) throws -> Program {
    let start = try start(of: scenario)
    let trial = try SQLiteSeamTrial(scenario, from: start)
    trial.faulty.noteSites()
    do { try trial.run() } catch { throw SQLiteSeamTrial.Violation("\(scenario): without a fault: \(error)") }
    return Program(scenario: scenario, start: start, calls: trial.calls)
  }

  private static func explore(_ program: Program, _ faults: [[Fault]]) throws -> Figures {
    var figures = Figures()
    for (point, usual) in zip(program.calls, faults) {
      for fault in Torture.isOn ? Fault.all(of: point.call) + Fault.all(of: point.call, isPermanent: true) : usual {
        let trial = try SQLiteSeamTrial(program.scenario, from: program.start, point, fault)
        do { try trial.run() } catch { figures.violations.append("\(program.scenario): \(point): \(fault): \(error)") }
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
    let programs = try await DispatchQueue.global().run { Result { try SQLiteSeamScenario.all().map(Self.plain) } }.get()
    let faults = FaultRotation(seed: seed, isPermanent: true).faults(of: programs.map(\.calls))
    for (program, faults) in zip(programs, faults) {
      let clock = ContinuousClock.now
      let figures = try await DispatchQueue.global().run { Result { try Self.explore(program, faults) } }.get()
      print(
        "figures: faults \(figures.faults), calls \(figures.sites), checks \(figures.checks), SQLite, \(program.scenario), "
          + "\(clock.duration(to: .now))")
      for violation in figures.violations { Issue.record("\(violation)") }
      all.faults += figures.faults
    }
    #expect(all.faults > 500)
    try CallTrace.save("sqlite-seam")
  }
}
