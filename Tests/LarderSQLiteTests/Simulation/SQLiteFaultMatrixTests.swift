import Dispatch
import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderSQLite

/// Calls of the disk fail once, or from then on: the failure is typed, nothing that was acknowledged is lost, and the program goes on.
///
/// Every third call has one of the faults, from a call that the seed decides, or with `LARDER_TORTURE` every call has all of them.
@Suite("SQLite: every call of the disk fails", .timeLimit(.minutes(Torture.isOn ? 60 : 15)))
struct SQLiteFaultMatrixTests {
  /// The failures of one call; EINTR for ever would be repeated for ever.
  private static let faults: [(errorNumber: Int32, isPermanent: Bool, writtenBytes: Int)] =
    [ENOSPC, EIO, EACCES, EDQUOT, EMFILE, EPERM, EROFS].flatMap { [($0, false, 0), ($0, true, 0)] }
    + [(EINTR, false, 0), (ENOSPC, false, 700), (ENOSPC, true, 700), (EIO, false, 3_000)]

  @Test func everyFailureIsTypedAndTheProgramGoesOn() async throws {
    let seed = try #require(Seeds.list(1, for: "SQLite: everyFailureIsTypedAndTheProgramGoesOn").first)
    var generator = SeededGenerator(seed)
    let files = SimulatedFileSystem()
    var healthy = try SQLiteFaultRun(files)
    try healthy.run()
    #expect(healthy.failures.isEmpty)
    let steps = (1...files.operationCount).map { FaultPlan.Step.operation($0) } + (1...files.readCount).map { .read($0) }
    try healthy.settle()

    let first = generator.int(0..<3)
    let plans = steps.indices.filter { Torture.isOn || $0 % 3 == first }.map { steps[$0] }.flatMap { step in
      (Torture.isOn ? Self.faults : Array(Self.faults.shuffled(using: &generator).prefix(1))).map {
        // SQLite tells nobody that the name of its log could not be synced: a later sync of the directory must do for it.
        var plan = FaultPlan(step, errorNumber: $0.errorNumber, isPermanent: $0.isPermanent, writtenBytes: $0.writtenBytes)
        plan.abandonsNames = false
        return plan
      }
    }
    let results = await DispatchQueue.global().run { plans.map { plan in Result { try Self.run(plan) } } }
    var failures: [RepositoryError.Code: Int] = [:]
    for (plan, result) in zip(plans, results) {
      do {
        failures.merge(try result.get(), uniquingKeysWith: +)
      } catch {
        Issue.record("\(plan): \(error)")
      }
    }
    print("figures: faults of SQLite: \(plans.count) at \(steps.count) calls, failures by code: \(failures)")
    #expect(failures[.outcomeUnknown] != nil && failures[.full] != nil)
  }

  private static func run(_ plan: FaultPlan) throws -> [RepositoryError.Code: Int] {
    let files = SimulatedFileSystem()
    var run = try SQLiteFaultRun(files)
    files.fail(plan)
    try run.run()
    try run.settle()
    return run.failures
  }
}
