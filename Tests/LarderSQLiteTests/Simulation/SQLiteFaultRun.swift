import Foundation
import Larder
import LarderTesting
import TestSupport

@testable import LarderSQLite

/// One run of a program that meets faults of the disk and goes on, and what its store must hold at each moment.
struct SQLiteFaultRun {
  typealias State = [RecordAddress: StoredRecord]
  typealias Violation = CrashWorkload.Violation

  let mirror: MirroredDirectory
  /// The options of the store.
  private let options: StoreOptions
  /// The codes with which a call may fail because of the fault.
  private let codes: Set<RepositoryError.Code>
  /// The state that was acknowledged last, and behind it the one of a batch whose outcome is unknown.
  private var states: [State] = [[:]]
  private var commit: UInt64 = 0
  private var backend: SQLiteBackend?
  private var isPoisoned = false
  /// The number of failures by code.
  private(set) var failures: [RepositoryError.Code: Int] = [:]
  /// The step that runs, for messages.
  private var step = ""

  /// The codes with which a call may fail because of the disk.
  private static let codes: Set<RepositoryError.Code> = [.full, .inputOutput, .protectedDataUnavailable, .outcomeUnknown, .poisoned]

  /// Makes the run of an empty disk.
  /// - Parameter others: The codes with which a call may fail besides.
  init(_ files: SimulatedFileSystem, _ access: StoreOptions.Access = .exclusive, others: Set<RepositoryError.Code> = []) throws {
    mirror = try MirroredDirectory(files)
    options = StoreOptions(access: access, lockTimeout: .milliseconds(access == .shared ? 5 : 0))
    codes = Self.codes.union(others)
  }

  // MARK: The program

  /// Does what programs do: every call may fail, and what follows is done all the same.
  mutating func run() throws {
    try write(["a", "b"])
    try write(["c"], .buffered)
    try read()
    try attempt("flush") { backend throws(RepositoryError) in try backend.flush() }
    try write(["a"], size: 9_000)
    try attempt("checkpoint") { backend throws(RepositoryError) in try backend.checkpoint() }
    try write(["-b", "d"])
    let copy = mirror.file("copy.sqlite")
    try attempt("backup") { backend throws(RepositoryError) in try backend.backup(to: copy) }
    try close()
    try write(["e"])
    try write(["a", "-d"])
    // As a killed process leaves it.
    backend?.abandon()
    backend = nil
    try write(["f"])
    try read()
    try attempt("verify") { backend throws(RepositoryError) in _ = backend.verify() }
    try close()
  }

  /// Ends the fault, and checks that the store is whole, takes writes, and keeps them through a power cut; or that damage is not silent.
  mutating func settle() throws {
    mirror.model.fail()
    mirror.calls.plan(nil)
    step = "end"
    drop()
    try check(mirror.model.copy(), states, step)
    if isDamaged { return }
    guard try open(), let backend else { throw Violation("the store cannot be opened once the fault is over") }
    try check(mirror.model.crashImages(limit: 1)[0].fileSystem, states, "after a power cut behind reopening")
    let (next, batch) = batch(["last"], 12, .durable)
    do {
      try begin(backend, .durable)
      try backend.commit(batch)
    } catch {
      throw Violation("a write failed once the fault was over: \(error)")
    }
    states = [next]
    for image in mirror.model.crashImages(limit: 3) { try check(image.fileSystem, states, "after a power cut at the end") }
    do {
      try backend.close()
    } catch {
      throw Violation("closing failed once the fault was over: \(error)")
    }
    try check(mirror.model.copy(), states, "after closing")
    for path in mirror.model.paths {
      let isExpected = ["/spots.sqlite", "/copy.sqlite"].contains(path) || path.hasPrefix("/spots.sqlite-quarantine-")
      if !isExpected, !path.hasPrefix("/copy.sqlite-copy-") { throw Violation("\(path) stays") }
    }
    try mirror.checkIsFaithful()
  }

  // MARK: Steps

  private mutating func attempt(_ name: String, _ body: (SQLiteBackend) throws(RepositoryError) -> Void) throws {
    step = name
    guard try open(), let backend else { return }
    do throws(RepositoryError) {
      try body(backend)
    } catch {
      try note(error)
    }
  }

  private mutating func write(_ keys: [String], size: Int = 12, _ durability: Durability = .durable) throws {
    step = "write \(keys)"
    guard try open(), let backend else { return }
    let (next, batch) = batch(keys, size, durability)
    do throws(RepositoryError) {
      try begin(backend, durability)
      try backend.commit(batch)
    } catch {
      if error.code == .outcomeUnknown { states = [states[0], next] }
      return try note(error)
    }
    if isPoisoned { throw Violation("\(step): a poisoned store took a write") }
    states = [next]
    commit += 1
  }

  /// Takes the write lock of a shared store.
  private func begin(_ backend: SQLiteBackend, _ durability: Durability) throws(RepositoryError) {
    if options.access == .shared { _ = try backend.beginCommit(after: Revision(commit), durability) }
  }

  /// Reads beside a shared store.
  private mutating func read() throws {
    guard options.access == .shared, try open() else { return }
    step = "reading"
    let reader = mirror.backend()
    var found: State = [:]
    do throws(RepositoryError) {
      _ = try reader.open(StoreOptions(access: .readOnly)) { found[$0.address] = $0 }
      try reader.close()
    } catch {
      reader.abandon()
      return try note(error, ofStore: false)
    }
    try Self.expect(found, in: states, step)
  }

  private mutating func close() throws {
    step = "close"
    guard let backend else { return }
    do throws(RepositoryError) { try backend.close() } catch { try note(error) }
    self.backend = nil
    isPoisoned = false
  }

  private func batch(_ keys: [String], _ size: Int, _ durability: Durability) -> (State, WriteBatch) {
    var next = states[0]
    let number = commit + 1
    let records = keys.map { key in
      let isDeletion = key.hasPrefix("-")
      return record(
        isDeletion ? String(key.dropFirst()) : key, isDeletion ? nil : "\"\(number) " + String(repeating: "x", count: size) + "\"",
        at: number)
    }
    for record in records { next[record.address] = record }
    return (next, WriteBatch(records: records, commits: number...number, durability: durability))
  }

  // MARK: Opening

  /// Opens the store unless it is open, and anew after it was poisoned; `false` when the fault keeps it closed.
  private mutating func open() throws -> Bool {
    if isPoisoned { drop() }
    if backend != nil { return true }
    let backend = mirror.backend()
    var found: State = [:]
    let report: OpenReport
    do throws(RepositoryError) {
      report = try backend.openAndRecover(options) { found[$0.address] = $0 }
    } catch {
      backend.abandon()
      try note(error)
      return false
    }
    try accept(found, report.commit.number, "\(step): reopening")
    self.backend = backend
    return true
  }

  /// Leaves a store as a program does that cannot go on with it.
  private mutating func drop() {
    backend?.abandon()
    backend = nil
    isPoisoned = false
  }

  /// Takes what opening found for the state from now on, if it is one of those that may be there.
  private mutating func accept(_ found: State, _ number: UInt64, _ moment: String) throws {
    try Self.expect(found, in: states, moment)
    states = [found]
    commit = number
  }

  private static func expect(_ found: State, in states: [State], _ moment: String) throws {
    for (index, state) in states.enumerated() {
      do {
        return try CrashWorkload.compare(found, state, moment)
      } catch {
        if index == states.count - 1 { throw error }
      }
    }
  }

  // MARK: Checks

  private mutating func note(_ error: RepositoryError, ofStore isOfStore: Bool = true) throws {
    failures[error.code, default: 0] += 1
    guard codes.contains(error.code) else { throw Violation("\(step): an unexpected failure: \(error)") }
    if error.code == .poisoned, !isPoisoned { throw Violation("\(step): poisoned without a cause: \(error)") }
    if error.code == .outcomeUnknown, isOfStore, let backend {
      isPoisoned = true
      let (_, batch) = batch(["z"], 1, .durable)
      let next = code { try backend.commit(batch) }
      if next != .poisoned && next != .closed { throw Violation("\(step): a write after a failed sync: \(String(describing: next))") }
    }
    try check(mirror.model.copy(), states, "\(step): after \(error.code)")
  }

  /// Whether SQLite may have written what it was given too little of: the store is refused then, or holds what it should.
  private var mayDamage: Bool { codes.contains(.corrupted) }

  /// Whether a copy of the files was refused as damaged.
  private(set) var isDamaged = false

  /// Opens the store in a copy of the files, and compares it.
  private mutating func check(_ files: SimulatedFileSystem, _ states: [State], _ moment: String) throws {
    // A copy on a healthy disk, without what this process has locked.
    let mirror = try MirroredDirectory(files.copy())
    let backend = mirror.backend()
    var found: State = [:]
    do throws(RepositoryError) {
      _ = try backend.openAndRecover(StoreOptions()) { found[$0.address] = $0 }
    } catch {
      if mayDamage, error.code == .corrupted {
        isDamaged = true
        return backend.abandon()
      }
      throw Violation("\(moment): a copy of the files cannot be opened: \(error)")
    }
    try Self.expect(found, in: states, moment)
    if let problem = backend.verify().problems.first {
      if mayDamage, problem.code == .corrupted {
        isDamaged = true
        return backend.abandon()
      }
      throw Violation("\(moment): \(problem)")
    }
    do throws(RepositoryError) { try backend.close() } catch {
      throw Violation("\(moment): a copy of the files cannot be closed: \(error)")
    }
  }
}
