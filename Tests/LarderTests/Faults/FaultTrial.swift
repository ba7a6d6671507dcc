import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

/// One run of a workload on a disk that fails one call, and all that must hold then and afterwards.
final class FaultTrial {
  struct Violation: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
  }

  static let file = URL(fileURLWithPath: "/data/app/spots.json")
  static let copy = URL(fileURLWithPath: "/data/copies/spots.json")
  static let journal = file.path + "-journal"

  let workload: FaultWorkload
  let files = SimulatedFileSystem()
  let faulty: FaultyFileSystem
  /// The file system that the store is given: the faulty one, or one that has less.
  let seam: any FileSystem
  let fault: Fault?
  /// Decides which crashes are looked at, and whether a store is closed or dropped.
  var random: SeededGenerator
  let isThorough: Bool
  /// Whether the call that fails changes something.
  let isChange: Bool

  var backend: JSONFileBackend
  var isOpen = false
  var isSuspended = false
  /// The newest commit when the store was suspended.
  var suspendedAt: UInt64 = 0
  var work: (@Sendable () -> Void)?
  /// The contents of the store after each commit that was acknowledged.
  var states: [UInt64: [RecordAddress: StoredRecord]] = [0: [:]]
  var commit: UInt64 = 0
  /// The newest commit that survives a power cut.
  var durable: UInt64 = 0
  /// The batch whose outcome is unknown, and the state with it.
  var doubtful: (commit: UInt64, state: [RecordAddress: StoredRecord])?
  var isCreated = false
  /// Whether the files that are looked at were left by a power cut, which may tear the index file.
  var isPowerLost = false
  /// The number of batches that were tried: each has values of its own.
  var serial = 0
  /// The number of failed calls that the program had heard of at its last error.
  private var heardOf = 0
  private(set) var images = 0

  init(_ workload: FaultWorkload, _ point: FaultPoint? = nil, _ fault: Fault? = nil, seed: UInt64, isThorough: Bool = false) {
    self.workload = workload
    self.fault = fault
    self.isThorough = isThorough
    isChange = point?.call.isChange ?? true
    random = SeededGenerator(seed)
    faulty = FaultyFileSystem(files)
    seam = workload.isPlain ? PlainFileSystem(base: faulty) : faulty
    backend = JSONFileBackend(file: Self.file, fileSystem: seam, tuning: workload.tuning)
    if let point, let fault { faulty.fail(point, fault) }
  }

  /// Runs the workload, goes on after the fault, and cuts the power in the end.
  func run() throws {
    for step in workload.before + [.drop] + workload.steps { try perform(step) }
    faulty.mend()
    try goOn()
  }

  func expect(_ condition: Bool, _ message: @autoclosure () -> String) throws {
    if !condition { throw Violation(message()) }
  }

  // MARK: Steps

  /// Does a step; where it fails, checks what is left, and does it again.
  func perform(_ step: FaultWorkload.Step) throws {
    do {
      try apply(step)
    } catch let error as RepositoryError {
      // A call that failed beside the program is heard of later: each fault once.
      let faults = faulty.hits + faulty.scriptedHits
      let isOfGivenUp = error.message.contains("given up for a value") && faults > 0
      try expect(faults > heardOf || isDiskBad || isOfGivenUp, "\(step) failed without a fault: \(error)")
      heardOf = faults
      try checkCode(error, step)
      try checkAfter(error, step)
      if isDiskBad { return }
      try recover(from: error, step)
    }
  }

  /// Whether the disk goes on failing.
  var isDiskBad: Bool { fault?.isPermanent == true && faulty.hits > 0 }

  func apply(_ step: FaultWorkload.Step) throws {
    switch step {
    case .save(let keys, let size, let commits, let durability):
      try commit(keys, size, commits, durability) { (batch) throws(RepositoryError) in try backend.commit(batch) }
    case .clear(let keys):
      try commit(keys, 0, 1, .durable) { (batch) throws(RepositoryError) in try backend.commitOnFullDisk(batch) }
    case .flush:
      try backend.flush()
      durable = commit
    case .checkpoint:
      try backend.checkpoint()
      durable = commit
    case .begin: if work == nil { work = try backend.beginCheckpoint() }
    case .work: work?()
    case .next:
      work?()
      work = nil
      work = try backend.continueCheckpoint()
    case .reopen:
      try close()
      try open()
    case .suspend: try suspend()
    case .resume: try open()
    case .others(let keys): try commitElsewhere(keys)
    case .drop:
      abandon()
      try open()
    case .tear:
      abandon()
      try tear()
      try open()
    case .backup:
      try backend.backup(to: Self.copy)
      try readCopy()
    case .readOnly: try readBeside()
    case .base:
      let base = try backend.keepBase()
      let found = try read(base, into: [:])
      try compare(commit, found, commit...commit, "a base")
      try checkIndex(in: base, found)
    case .index: try buildIndex()
    case .fail(let call, let ending, let number, let count): faulty.script(call, ending, Fault(number), skipping: count)
    case .leave(let endings):
      abandon()
      // Beside a store that could not be made it would be a store that is missing.
      for ending in endings where isCreated { try files.place(Data(count: 100), at: Self.file.path + ending) }
      try open()
    case .leaveCopy:
      try files.createDirectory("/data/copies")
      try files.place(Data(count: 100), at: Self.copy.path + "-copy-0123456789abcdef-tmp")
    case .replaceMain:
      faulty.disturb(.fileLock, "/spots.json") { [files] in
        do {
          try files.place(files.contents(of: Self.file.path) ?? Data(), at: Self.file.path + "-other")
          try files.rename(Self.file.path + "-other", to: Self.file.path)
        } catch { Issue.record("the main file could not be replaced: \(error)") }
      }
    }
  }

  func open() throws {
    if isOpen { return }
    try opening()
  }

  private func commit(
    _ keys: [String], _ size: Int, _ commits: UInt64, _ durability: Durability,
    _ body: (WriteBatch) throws(RepositoryError) -> Void
  ) throws {
    serial += 1
    let (batch, state) = makeBatch(keys, size, commits, durability)
    do throws(RepositoryError) {
      try body(batch)
    } catch {
      if error.code == .outcomeUnknown { doubtful = (batch.commits.upperBound, state) }
      throw error
    }
    commit = batch.commits.upperBound
    states[commit] = state
    if durability == .durable { durable = commit }
  }

  func makeBatch(
    _ keys: [String], _ size: Int, _ commits: UInt64, _ durability: Durability
  ) -> (WriteBatch, [RecordAddress: StoredRecord]) {
    let (first, last) = (commit + 1, commit + commits)
    var state = states[commit] ?? [:]
    let records = keys.enumerated().map { index, key in
      let revision = min(first + UInt64(index), last)
      let isDeletion = key.hasPrefix("-")
      let text = "\"\(key)@\(revision)/\(serial) " + String(repeating: "x", count: size) + "\""
      return StoredRecord(
        collection: key.hasPrefix("t") ? "tides" : "spots", key: RecordKey(isDeletion ? String(key.dropFirst()) : key),
        revision: Revision(revision), schemaVersion: 1, value: isDeletion ? nil : Data(text.utf8))
    }
    for record in records { state[record.address] = record }
    var counts = Dictionary(records.map { ($0.collection, 0) }) { $1 }
    for record in state.values where record.value != nil { counts[record.collection]? += 1 }
    let (edits, indexes) = indexChanges(from: states[commit] ?? [:], to: state)
    let batch = WriteBatch(
      records: records, commits: first...last, durability: durability, indexEdits: edits, indexes: indexes, recordCounts: counts)
    return (batch, state)
  }

  func noteImages(_ count: Int) { images += count }
}
