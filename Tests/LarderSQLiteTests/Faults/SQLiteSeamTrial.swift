import Foundation
import Larder
import TestSupport

@testable import LarderSQLite

/// One run of a scenario on real files whose file system fails one call of the seam, and all that must hold then and afterwards.
final class SQLiteSeamTrial {
  typealias State = Contents
  typealias Step = SQLiteSeamScenario.Step

  struct Violation: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
  }

  let scenario: SQLiteSeamScenario
  let place: SQLiteSeamPlace
  let faulty = FaultyFileSystem(POSIXFileSystem())
  let fault: Fault?

  var backend: SQLiteBackend?
  var isSuspended = false
  /// The contents that were acknowledged, or found by the first opening of the scenario's files.
  var state: State
  var commit: UInt64
  /// The state with a batch whose outcome is unknown.
  var doubtful: State?
  private(set) var checks = 0
  /// The calls of the scenario, without those of what follows it.
  private(set) var calls: [FaultPoint] = []
  /// The number of failed calls that the program had heard of at its last error.
  private var heardOf = 0

  init(
    _ scenario: SQLiteSeamScenario, from start: (state: State, commit: UInt64) = ([:], 0), _ point: FaultPoint? = nil,
    _ fault: Fault? = nil
  ) throws {
    self.scenario = scenario
    self.fault = fault
    place = try SQLiteSeamPlace(scenario.files)
    (state, commit) = start
    if let point, let fault { faulty.fail(point, fault) }
  }

  /// Runs the scenario, and goes on after the fault.
  func run() throws {
    for step in scenario.steps { try perform(step) }
    calls = faulty.calls
    faulty.mend()
    try goOn()
  }

  func expect(_ condition: Bool, _ message: @autoclosure () -> String) throws {
    if !condition { throw Violation(message()) }
  }

  /// Does a step; where it fails, checks what is left, and does it again.
  private func perform(_ step: Step) throws {
    for attempt in 1...3 {
      do throws(RepositoryError) {
        return try apply(step)
      } catch {
        let faults = faulty.hits + faulty.scriptedHits
        try expect(faults > heardOf || isDiskBad, "\(step) failed without a fault: \(error)")
        heardOf = faults
        try checkCode(error, step)
        try checkAfter("after \(step) has failed (\(error.code))")
        if case .backup = step, FileManager.default.fileExists(atPath: place.copy.path) {
          try FileManager.default.removeItem(at: place.copy)
        }
        if isDiskBad { return }
        try expect(attempt < 3, "\(step) fails again, with the fault over: \(error)")
        if [.outcomeUnknown, .poisoned].contains(error.code) { try reopenPoisoned(step) }
      }
    }
  }

  /// Whether the disk goes on failing.
  private var isDiskBad: Bool { fault?.isPermanent == true && faulty.hits > 0 }

  // MARK: Steps

  func apply(_ step: Step) throws(RepositoryError) {
    switch step {
    case .open: _ = try opened()
    case .save(let keys, let durability): try save(keys, durability)
    case .flush: try opened().flush()
    case .checkpoint: try opened().checkpoint()
    case .close: try close()
    case .suspend:
      let backend = try opened()
      isSuspended = true
      try backend.suspend()
    case .resume: _ = try opened()
    case .kill: try kill()
    case .read: try read()
    case .inspect: try inspect()
    case .backup:
      try opened().backup(to: place.copy)
      try readCopy()
    case .fail(let call, let ending, let number): faulty.script(call, ending, Fault(number))
    case .shorten(let ending): faulty.script(.read, ending, Fault(0, .shortRead))
    }
  }

  /// Returns the open store; opens it unless it is open.
  func opened() throws(RepositoryError) -> SQLiteBackend {
    if let backend {
      if !isSuspended { return backend }
      let goesOn = try backend.resume()
      isSuspended = false
      if goesOn { return backend }
      drop()
    }
    let backend = SQLiteBackend(file: place.store, fileSystem: faulty, disk: SQLiteSeamScenario.disk)
    var found: State = [:]
    let report: OpenReport
    do throws(RepositoryError) {
      report = try backend.openAndRecover(scenario.options) { found[$0.address] = text($0) }
    } catch {
      backend.abandon()
      throw error
    }
    self.backend = backend
    try accept(found, report.commit.number, "opening")
    return backend
  }

  private func save(_ keys: [String], _ durability: Durability) throws(RepositoryError) {
    let backend = try opened()
    let (batch, next) = makeBatch(keys, durability)
    do throws(RepositoryError) {
      if scenario.options.access == .shared { _ = try backend.beginCommit(after: Revision(commit), durability) }
      try backend.commit(batch)
    } catch {
      if scenario.options.access == .shared { backend.cancelCommit() }
      if error.code == .outcomeUnknown { doubtful = next }
      throw error
    }
    (state, commit) = (next, commit + 1)
  }

  func makeBatch(_ keys: [String], _ durability: Durability) -> (WriteBatch, State) {
    let number = commit + 1
    var next = state
    let records = keys.map { key in
      let isDeletion = key.hasPrefix("-")
      return record(isDeletion ? String(key.dropFirst()) : key, isDeletion ? nil : "\"\(key) \(number)\"", at: number)
    }
    for record in records { next[record.address] = text(record) }
    return (WriteBatch(records: records, commits: number...number, durability: durability), next)
  }

  private func close() throws(RepositoryError) {
    guard let backend else { return }
    (self.backend, isSuspended) = (nil, false)
    try backend.close()
  }

  func drop() {
    backend?.abandon()
    (backend, isSuspended) = (nil, false)
  }

  /// Ends the store, and puts the files back as they were before.
  private func kill() throws(RepositoryError) {
    do {
      let files = try place.files()
      drop()
      try place.place(files)
    } catch {
      throw RepositoryError(.unsupported, "the test cannot copy its files: \(error)")
    }
  }

  // MARK: Checks

  /// Takes what opening found for the state from now on, if it is one of those that may be there.
  private func accept(_ found: State, _ number: UInt64, _ what: String) throws(RepositoryError) {
    if let doubtful, found == doubtful { state = found }
    doubtful = nil
    guard found == state else {
      throw RepositoryError(.unsupported, "\(what): expected \(Self.describe(state)), found \(Self.describe(found))")
    }
    commit = number
  }

  static func describe(_ state: State) -> String { state.map { "\($0.key.text) \($1)" }.sorted().joined(separator: ", ") }

  func countCheck() { checks += 1 }
}
