import CSQLite
import Dispatch
import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderSQLite

/// Every lock, every call of the log's index and every read that SQLite makes fails once, or from then on, in stores of one process and in
/// shared ones with readers beside them.
@Suite("SQLite: every lock, index and read fails", .timeLimit(.minutes(Torture.isOn ? 60 : 15)))
struct SQLiteCallFaultTests {
  private typealias Plan = SQLiteCallFaults.Plan

  @Test(arguments: [StoreOptions.Access.exclusive, .shared])
  func everyFailureIsTypedAndTheProgramGoesOn(_ access: StoreOptions.Access) async throws {
    let seed = try #require(Seeds.list(1, for: "SQLite: locks and reads: everyFailureIsTypedAndTheProgramGoesOn").first)
    var generator = SeededGenerator(seed)
    var healthy = try SQLiteFaultRun(SimulatedFileSystem(), access)
    try healthy.run()
    let counts = healthy.mirror.calls.counts
    #expect(healthy.failures.isEmpty)
    try healthy.settle()
    let isShared = access == .shared
    for call in SQLiteCallFaults.Call.allCases where call != .checkReservedLock {
      #expect(counts[call, default: 0] > 0 || !isShared && [.mapIndex, .lockIndex, .unlockIndex].contains(call), "\(call)")
    }

    var plans: [Plan] = []
    // One call in eight in `make test`, with one of its faults.
    let stride = Torture.isOn ? 1 : 8
    for call in SQLiteCallFaults.Call.allCases {
      let count = counts[call, default: 0]
      for number in Swift.stride(from: 1 + min(generator.int(0..<stride), max(0, count - 1)), through: count, by: stride) {
        let all = call.results.flatMap { result in
          // SQLite waits two seconds for a lock, and tries for ten where that of the index stays.
          let mayStay = result != SQLITE_BUSY || Torture.isOn && call != .lockIndex
          return (mayStay ? [false, true] : [false]).map { Plan(call: call, number: number, result: result, isPermanent: $0) }
        }
        plans += Torture.isOn ? all : Array(all.shuffled(using: &generator).prefix(1))
      }
    }
    let results = await DispatchQueue.global().run { [plans] in plans.map { plan in Result { try Self.run(plan, access) } } }
    var failures: [RepositoryError.Code: Int] = [:]
    var damaged = 0
    for (plan, result) in zip(plans, results) {
      do {
        let run = try result.get()
        failures.merge(run.failures, uniquingKeysWith: +)
        if run.isDamaged { damaged += 1 }
      } catch {
        Issue.record("\(access), \(plan): \(error)")
      }
    }
    print(
      "figures: faults of locks, index and reads of SQLite: \(plans.count), \(access), damaged \(damaged), failures by code: \(failures)")
    #expect(failures[.inputOutput] != nil)
  }

  private static func run(_ plan: Plan, _ access: StoreOptions.Access) throws -> SQLiteFaultRun {
    // What is read too short looks like damage; what another connection seems to have locked is locked.
    var run = try SQLiteFaultRun(SimulatedFileSystem(), access, others: plan.call == .read ? [.corrupted] : [.locked])
    run.mirror.calls.plan(plan)
    try run.run()
    if run.mirror.calls.hits == 0 { throw CrashWorkload.Violation("the fault was not met") }
    try run.settle()
    return run
  }
}
