internal import Foundation
package import Larder
internal import LarderTesting

/// A program that writes to a store, and what the store must hold after each of its commits.
///
/// Commits are numbered from 1, and every record is decided by the workload alone, so that any state can be compared with what was written.
package struct CrashWorkload: Sendable, CustomStringConvertible {
  package enum Step: Sendable {
    case commit(WriteBatch)
    case flush
    case checkpoint
    case reopen
    /// A checkpoint beside commits: its beginning, its long part, and what follows.
    case beginCheckpoint, work, continueCheckpoint
  }

  /// A promise that the workload was made.
  package enum Promise: Hashable, Sendable {
    /// The store exists.
    case created
    /// Everything up to this commit survives a kill, and power loss too if durable.
    case kept(UInt64, Durability)
  }

  package let name: String
  package var options = StoreOptions()
  package private(set) var steps: [Step] = []
  /// The records after each batch, by the number of its last commit.
  package private(set) var states: [UInt64: [RecordAddress: StoredRecord]] = [0: [:]]
  package private(set) var commit: UInt64 = 0

  package var description: String { name }

  package init(_ name: String) { self.name = name }

  // MARK: Building

  /// Saves keys, or deletes those that start with "-", in one batch.
  package mutating func save(_ keys: String..., size: Int = 12, commits: UInt64 = 1, durability: Durability = .durable) {
    save(keys, size: size, commits: commits, durability: durability)
  }

  package mutating func save(_ keys: [String], size: Int, commits: UInt64, durability: Durability) {
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

  package mutating func flush() { steps.append(.flush) }
  package mutating func checkpoint() { steps.append(.checkpoint) }
  package mutating func beginCheckpoint() { steps.append(.beginCheckpoint) }
  package mutating func work() { steps.append(.work) }
  package mutating func continueCheckpoint() { steps.append(.continueCheckpoint) }
  package mutating func reopen() { steps.append(.reopen) }

  // MARK: Running

  /// Does it all, from opening to closing, and reports every promise as it is made.
  ///
  /// - Parameter makeBackend: Makes a backend of the same files for each opening.
  package func run(on makeBackend: () -> any StorageBackend, _ promise: (Promise) -> Void) throws {
    var backend = makeBackend()
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
        backend = makeBackend()
        _ = try backend.openAndRecover(options) { _ in }
      }
    }
    try backend.close()
    promise(.kept(commit, .durable))
  }
}
