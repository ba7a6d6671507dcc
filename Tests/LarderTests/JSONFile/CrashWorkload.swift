import Foundation
import Larder
import LarderTesting

/// Something a program does with a JSON store, and what the store must hold after each of its commits.
///
/// Commits are numbered from 1, and every record is decided by the workload alone, so that any state can be compared with what was written.
struct CrashWorkload: Sendable, CustomStringConvertible {
  enum Step: Sendable {
    case commit(WriteBatch)
    case flush
    case checkpoint
    case reopen
    /// A checkpoint beside commits: its beginning, its long part, and what follows.
    case beginCheckpoint, work, continueCheckpoint
  }

  /// What the workload was promised.
  enum Promise: Hashable, Sendable {
    /// The store exists.
    case created
    /// Everything up to this commit survives a kill, and power loss too if durable.
    case kept(UInt64, Durability)
  }

  static let file = URL(fileURLWithPath: "/data/app/spots.json")
  static let path = file.path

  let name: String
  var options = StoreOptions()
  private(set) var steps: [Step] = []
  /// The records after each batch, by the number of its last commit.
  private(set) var states: [UInt64: [RecordAddress: StoredRecord]] = [0: [:]]
  private(set) var commit: UInt64 = 0

  var description: String { name }

  init(_ name: String) { self.name = name }

  // MARK: Building

  /// Saves keys, or deletes those that start with "-", in one batch.
  mutating func save(_ keys: String..., size: Int = 12, commits: UInt64 = 1, durability: Durability = .durable) {
    save(keys, size: size, commits: commits, durability: durability)
  }

  mutating func save(_ keys: [String], size: Int, commits: UInt64, durability: Durability) {
    let first = commit + 1
    commit += commits
    let records = keys.enumerated().map { index, key in
      let revision = min(first + UInt64(index), commit)
      let isDeletion = key.hasPrefix("-")
      let text = "\"\(key)@\(revision) " + String(repeating: "x", count: size) + "\""
      return StoredRecord(
        collection: key.hasPrefix("t") ? "tides" : "spots", key: RecordKey(isDeletion ? String(key.dropFirst()) : key),
        revision: Revision(revision), schemaVersion: 1, value: isDeletion ? nil : Data(text.utf8))
    }
    var state = states[first - 1] ?? [:]
    for record in records { state[record.address] = record }
    states[commit] = state
    steps.append(.commit(WriteBatch(records: records, commits: first...commit, durability: durability)))
  }

  mutating func flush() { steps.append(.flush) }
  mutating func checkpoint() { steps.append(.checkpoint) }
  mutating func beginCheckpoint() { steps.append(.beginCheckpoint) }
  mutating func work() { steps.append(.work) }
  mutating func continueCheckpoint() { steps.append(.continueCheckpoint) }
  mutating func reopen() { steps.append(.reopen) }

  // MARK: Running

  /// Does it all, from opening to closing, and reports every promise as it is made.
  func run(
    on files: any FileSystem, tuning: JSONFileBackend.Tuning, _ promise: (Promise) -> Void
  ) throws {
    var backend = JSONFileBackend(file: Self.file, fileSystem: files, tuning: tuning)
    _ = try backend.openAndRecover(options) { _ in }
    promise(.created)
    var commit: UInt64 = 0
    var work: (@Sendable () -> Void)?
    for step in steps {
      switch step {
      case .commit(let batch):
        try backend.commit(batch)
        commit = batch.commits.upperBound
        promise(.kept(commit, batch.durability))
      case .flush:
        try backend.flush()
        promise(.kept(commit, .durable))
      case .checkpoint:
        try backend.checkpoint()
        promise(.kept(commit, .durable))
      case .beginCheckpoint: if work == nil { work = try backend.beginCheckpoint() }
      case .work: work?()
      case .continueCheckpoint:
        work?()
        work = try backend.continueCheckpoint()
      case .reopen:
        work = nil
        try backend.close()
        promise(.kept(commit, .durable))
        backend = JSONFileBackend(file: Self.file, fileSystem: files, tuning: tuning)
        _ = try backend.openAndRecover(options) { _ in }
      }
    }
    try backend.close()
    promise(.kept(commit, .durable))
  }

  // MARK: The workloads

  static let creation = CrashWorkload("creation")

  static let firstSave = make("first save") { $0.save("a") }

  static let batches = make("batches") {
    $0.save("a", "b", "tokyo")
    $0.save("c", "a", size: 700)
    $0.save("d", "e", "f", "g", size: 40, commits: 4)
  }

  static let deletes = make("deletes") {
    $0.save("a", "b", "c")
    $0.save("-a", "-x")
    $0.save("a", "-b")
    $0.checkpoint()
    $0.save("-c")
  }

  static let checkpoints = make("checkpoints") {
    $0.save("a", "b")
    $0.checkpoint()
    $0.save("c")
    $0.save("a")
    $0.checkpoint()
    $0.checkpoint()
    $0.save("d")
  }

  static let previous = make("checkpoint that keeps the previous snapshot") {
    $0.options.keepsPreviousSnapshot = true
    $0.save("a")
    $0.checkpoint()
    $0.save("b", "-a")
    $0.checkpoint()
  }

  static let closing = make("closing and opening again") {
    $0.save("a")
    $0.reopen()
    $0.reopen()
    $0.save("b")
    $0.reopen()
    $0.save("c")
  }

  static let largeRecords = make("records over many sectors") {
    $0.save("a", size: 1_500)
    $0.save("b", "c", size: 1_200, commits: 2)
    $0.checkpoint()
    $0.save("a", size: 2_500)
  }

  static let buffered = make("buffered commits") {
    $0.save("a")
    $0.save("b", durability: .buffered)
    $0.save("c", "-a", durability: .buffered)
    $0.flush()
    $0.save("d", size: 600, durability: .buffered)
    $0.save("e", durability: .buffered)
    $0.save("f")
    $0.save("g", durability: .buffered)
    $0.checkpoint()
    $0.save("h", durability: .buffered)
  }

  static let background = make("a checkpoint beside commits") {
    $0.save("a", "b")
    $0.save("c", "-a", durability: .buffered)
    $0.beginCheckpoint()
    $0.save("d", "b")
    $0.work()
    $0.save("-c", durability: .buffered)
    $0.continueCheckpoint()
    $0.save("a", size: 700)
    $0.work()
    $0.save("f", durability: .buffered)
    $0.continueCheckpoint()
    $0.save("d", "-b")
  }

  static let backgroundGivenUp = make("checkpoints beside commits, given up") {
    $0.save("a", "b")
    $0.beginCheckpoint()
    $0.save("c")
    $0.work()
    $0.checkpoint()
    $0.continueCheckpoint()
    $0.save("-a")
    $0.beginCheckpoint()
    $0.work()
    $0.continueCheckpoint()
    $0.save("d")
    $0.beginCheckpoint()
    $0.work()
    $0.save("e")
    $0.continueCheckpoint()
    $0.reopen()
    $0.save("f")
    $0.beginCheckpoint()
    $0.reopen()
  }

  /// A sequence of any steps.
  static func random(seed: UInt64) -> CrashWorkload {
    var generator = SeededGenerator(seed)
    return make("random steps, seed \(seed)") { workload in
      for _ in 0..<10 {
        switch Int.random(in: 0..<18, using: &generator) {
        case 12, 13: workload.beginCheckpoint()
        case 14, 15: workload.work()
        case 16, 17: workload.continueCheckpoint()
        case 0: workload.checkpoint()
        case 1: workload.reopen()
        case 2: workload.flush()
        default:
          let keys = (0..<Int.random(in: 1...4, using: &generator)).map { _ in
            (Int.random(in: 0..<4, using: &generator) == 0 ? "-" : "")
              + ["a", "b", "tokyo", "toba", "e"][Int.random(in: 0..<5, using: &generator)]
          }
          let size = [8, 90, 700][Int.random(in: 0..<3, using: &generator)]
          let commits = UInt64.random(in: 1...UInt64(keys.count), using: &generator)
          workload.save(keys, size: size, commits: commits, durability: Bool.random(using: &generator) ? .durable : .buffered)
        }
      }
    }
  }

  private static func make(_ name: String, _ build: (inout CrashWorkload) -> Void) -> CrashWorkload {
    var workload = CrashWorkload(name)
    build(&workload)
    return workload
  }
}
