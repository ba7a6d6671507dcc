import Foundation
import Larder
import LarderTesting
import TestSupport

/// Opening, ending and reading the store of a trial.
extension FaultTrial {
  /// Opens the store, and compares what it has with what was acknowledged.
  func opening() throws {
    if isSuspended {
      isOpen = try backend.resume()
      isSuspended = false
      if isOpen { return try checkForeignCommits() }
    }
    let (report, found) = try openAndRead(backend)
    isOpen = true
    try settle(report.commit.number, found, from: commit, "opening")
    try expect(!report.isNew || !isCreated, "opening: the store is new again")
    isCreated = true
  }

  /// Opens a backend, and reads all records.
  ///
  /// Records that stay in the files are read through a base.
  func openAndRead(_ backend: JSONFileBackend) throws -> (report: OpenReport, records: [RecordAddress: StoredRecord]) {
    var found: [RecordAddress: StoredRecord] = [:]
    guard workload.options.residency != .full else {
      return (try backend.openAndRecover(workload.options) { found[$0.address] = $0 }, found)
    }
    _ = backend.valueSizeBound
    let opening = try backend.openPaged(workload.options) { found[$0.address] = $0 }
    do {
      let report = try backend.recover(opening.report)
      let tombstones = found
      found = try read(backend.keepBase(), into: found)
      for address in tombstones.keys {
        try expect(found[address]?.value == nil, "opening passes a tombstone of \(address.key.text), which is a record")
      }
      let counts = Dictionary(grouping: found.values.filter { $0.value != nil }, by: \.collection).mapValues(\.count)
      let told = Dictionary(opening.collections.map { ($0.name, $0.recordCount) }) { $1 }
      try expect(told == counts, "opening counts \(told), and a walk finds \(counts)")
      try checkIndex(of: backend, found)
      return (report, found)
    } catch {
      backend.abandon()
      throw error
    }
  }

  /// Adds the records of a base to the tombstones of an opening.
  func read(
    _ base: any StoredBase, into tombstones: [RecordAddress: StoredRecord]
  ) throws -> [RecordAddress: StoredRecord] {
    var found = tombstones
    for collection in ["spots", "tides"] {
      var last: RecordKey?
      while case let records = try base.records(of: collection, after: last, limit: 2), let end = records.last?.key {
        for record in records { found[record.address] = record }
        last = end
      }
    }
    return found
  }

  /// Compares what a store has with a state that it may have, and takes over what was in doubt.
  private func settle(_ number: UInt64, _ found: [RecordAddress: StoredRecord], from floor: UInt64, _ what: String) throws {
    if let doubtful, number == doubtful.commit, number != commit {
      states[number] = doubtful.state
      commit = number
    }
    doubtful = nil
    try compare(number, found, floor...commit, what)
    durable = commit
  }

  /// Compares records with those of a commit in a range.
  func compare(
    _ number: UInt64, _ found: [RecordAddress: StoredRecord], _ range: ClosedRange<UInt64>, _ what: String
  ) throws {
    var expected = states[number]
    if let doubtful, doubtful.commit == number { expected = doubtful.state }
    let top = max(range.upperBound, doubtful?.commit ?? 0)
    try expect(number >= range.lowerBound, "\(what): commit \(range.lowerBound) was acknowledged, the store is at \(number)")
    try expect(number <= top, "\(what): the store is at commit \(number), which was refused")
    guard let expected else { throw Violation("\(what): commit \(number) is in the middle of a batch") }
    // Old tombstones may be forgotten.
    for (address, record) in expected {
      guard let other = found[address] else {
        try expect(record.value == nil, "\(what): \(address.key.text) is missing at commit \(number)")
        continue
      }
      try expect(other.revision == record.revision && other.value == record.value, "\(what): \(address.key.text) is another at \(number)")
    }
    for address in found.keys { try expect(expected[address] != nil, "\(what): \(address.key.text) was never acknowledged") }
  }

  func close() throws {
    work = nil
    isOpen = false
    defer { renew() }
    try backend.close()
    durable = commit
  }

  /// Compares what a resumed store tells of others with what they have committed.
  private func checkForeignCommits() throws {
    let told = try backend.foreignCommits(after: Revision(suspendedAt))
    try expect((told?.commit.number ?? suspendedAt) == commit, "resuming tells of commit \(told?.commit.number ?? 0), not of \(commit)")
    let found = Dictionary((told?.records ?? []).map { ($0.address, $0.value) }) { $1 }
    for (address, record) in states[commit] ?? [:] where record.revision.number > suspendedAt {
      try expect(found[address] == .some(record.value), "resuming does not tell of \(address.key.text)")
    }
  }

  /// Commits as another process while the store is suspended, if a fault has not ended that.
  func commitElsewhere(_ keys: [String]) throws {
    guard isSuspended else { return }
    let other = JSONFileBackend(file: Self.file, fileSystem: files, tuning: workload.tuning)
    defer { other.abandon() }
    let report = try other.openAndRecover(workload.options) { _ in }
    guard report.commit.number == commit else { return }
    // The other process has opened the store without the batch in doubt, so that its own batch gets the same number.
    doubtful = nil
    serial += 1
    let (batch, state) = makeBatch(keys, 0, 1, .durable)
    try other.commit(batch)
    (commit, durable) = (batch.commits.upperBound, batch.commits.upperBound)
    states[commit] = state
  }

  func suspend() throws {
    work = nil
    suspendedAt = commit
    let wasOpen = isOpen
    (isOpen, isSuspended) = (false, true)
    do throws(RepositoryError) { try backend.suspend() } catch {
      // The store does not resume it after a failed sync.
      if [.outcomeUnknown, .poisoned].contains(error.code) { abandon() }
      throw error
    }
    // A store that could not be opened on a bad disk has nothing to make durable.
    if wasOpen { durable = commit }
  }

  func abandon() {
    work = nil
    (isOpen, isSuspended) = (false, false)
    backend.abandon()
    renew()
  }

  private func renew() { backend = JSONFileBackend(file: Self.file, fileSystem: seam, tuning: workload.tuning) }

  /// Leaves half of a frame behind the journal, as a kill in the middle of a write does.
  func tear() throws {
    let other = files.copy()
    let writer = JSONFileBackend(file: Self.file, fileSystem: other, tuning: workload.tuning)
    let report = try writer.openAndRecover(workload.options) { _ in }
    defer { writer.abandon() }
    guard report.commit.number == commit, let before = other.contents(of: Self.journal) else { return }
    try writer.commit(makeBatch(["torn"], 40, 1, .durable).0)
    guard let after = other.contents(of: Self.journal), let start = zip(before, after).enumerated().first(where: { $1.0 != $1.1 })?.offset
    else { return }
    var torn = Data(before.prefix(start) + after[start..<(start + 50)])
    torn += Data(count: max(before.count, after.count) - torn.count)
    try files.place(torn, at: Self.journal)
  }

  /// Reads the copy that was made, and removes it.
  func readCopy() throws {
    var found: [RecordAddress: StoredRecord] = [:]
    let report = try backend.readCopy(at: Self.copy) { found[$0.address] = $0 }
    try compare(report.commit.number, found, commit...commit, "the copy")
    try files.remove(Self.copy.path)
  }

  /// Reads the files beside the writer.
  func readBeside() throws {
    let reader = JSONFileBackend(file: Self.file, fileSystem: seam, tuning: workload.tuning)
    var found: [RecordAddress: StoredRecord] = [:]
    let report = try reader.open(StoreOptions(access: .readOnly)) { found[$0.address] = $0 }
    try compare(report.commit.number, found, commit...commit, "reading beside the writer")
    let verified = reader.verify()
    if let problem = verified.problems.first { throw problem }
    try reader.close()
  }
}
