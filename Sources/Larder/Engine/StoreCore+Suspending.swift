internal import Foundation
internal import Synchronization

/// Suspending and resuming a store. A suspended store has no locks, and keeps its records, indexes and observers in memory.
extension StoreCore {
  /// Commits the next group of waiting writes, and releases the backend's locks.
  ///
  /// Changes nothing in a store that is suspended or closed.
  func suspend() async {
    // Both before the executor is reached: a commit there may be waiting for another process, for up to `lockTimeout`.
    commits.beginSuspending()
    backend.endWaiting()
    await executor.run {
      self.suspendNow()
      self.commits.endSuspending()
    }
  }

  /// Commits a group, marks the store as suspended, and releases the locks.
  ///
  /// Runs on the executor only.
  private func suspendNow() {
    guard !state.isClosed else { return }
    // One group only, because the system is about to stop the process. The other writes are held.
    if !state.isSuspended { commits.commitNext(to: self) }
    setSuspended(true)
    do throws(RepositoryError) {
      // Also in a store that is suspended already: `endWaiting` forbids waits until this call.
      try backend.suspend()
    } catch {
      // The locks are released all the same. A failed sync refuses later writes, and `verify` reports any failure.
      notePoison(error)
      follower.note(failure: error)
    }
  }

  /// Takes the locks again, and publishes the commits that other processes have made since.
  ///
  /// Does nothing in a store that is not suspended.
  /// - Throws: `.locked`, `.alreadyOpen`, `.dataMissing`, or an error of opening. The store then stays suspended. `.poisoned`, `.closed`.
  func resume() async throws(RepositoryError) {
    try await executor.run { () throws(RepositoryError) in try self.resumeNow() }
    // The timer, the queue and the migrations have stopped while the store was suspended. None starts again by itself.
    follower.schedulePoll(of: self)
    commits.drainSoon(to: self)
    migrations.resumeAll()
  }

  /// Takes the locks again, catches up with the files, and releases the held writes.
  ///
  /// Runs on the executor only.
  private func resumeNow() throws(RepositoryError) {
    let state = state
    // A poisoned store stays suspended, since it needs no lock for the reads that are left.
    guard state.isSuspended, state.holdsWrites else { return try state.checkWritable() }
    if try backend.resume() { try catchUp() } else { try readAnew(after: state) }
    follower.note(failure: nil)
    // A drain may be queued already, and would commit later writes before the held ones.
    commits.takeHeld()
    setSuspended(false)
  }

  /// Publishes the commits that other processes have made.
  ///
  /// If that fails, the store stays suspended.
  private func catchUp() throws(RepositoryError) {
    do throws(RepositoryError) { try follower.publishNewCommits(of: self) } catch {
      do throws(RepositoryError) { try backend.suspend() } catch {}  // the first error is thrown below
      throw error
    }
  }

  /// Opens the backend once more, and publishes the difference between its records and those in memory.
  private func readAnew(after state: StoreState) throws(RepositoryError) {
    var comparison = StoreComparison(with: state)
    var report = try backend.open(options) { comparison.add($0) }
    let commits: ForeignCommits?
    do throws(RepositoryError) {
      commits = try comparison.finish(report, storeID: openReport.storeID, file: backend.name)
      // Recovery writes, so it must not begin before the files are known to be this store's.
      if options.access != .readOnly { report = try backend.recover(report) }
    } catch {
      backend.abandon()
      throw error
    }
    if let commits { follower.publish(commits, in: self) }
    let present = self.state
    report.recordCount = present.collections.reduce(0) { $0 + $1.records.count }
    report.collections = present.contents
    replaceReport(report)
  }
}

/// A comparison of the records in memory with those of a backend that is read again, after other processes may have written to it.
///
/// Every later commit has a greater number. So a record whose number is not greater must equal the one in memory. If it differs, an older
/// copy of the store or another line of commits is in its place.
private struct StoreComparison {
  private let state: StoreState
  private let commit: Revision
  private let positions: [String: Int]
  private var newer: [StoredRecord] = []
  /// Addresses of the records that were read.
  ///
  /// They are hashed only if tombstones may have been forgotten.
  private var addresses: [RecordAddress] = []
  /// Number of records in memory that were found again, unchanged or newer.
  private var foundCount = 0
  /// Key of the first record that differs from memory without being newer.
  private var difference: RecordKey?

  init(with state: StoreState) {
    self.state = state
    commit = Revision(state.commit)
    positions = Dictionary(zip(state.names, state.names.indices)) { position, _ in position }
  }

  mutating func add(_ record: StoredRecord) {
    let known = positions[record.collection].flatMap { state.collections[$0].records[record.key] }
    if record.value != nil { addresses.append(record.address) }
    if record.revision > commit {
      newer.append(record)
      // A newer tombstone counts too: it accounts for the record that memory still has.
      if known != nil { foundCount += 1 }
    } else if let known, record.value != nil, known.revision == record.revision {
      foundCount += 1
    } else if known != nil || record.value != nil {
      // An old tombstone of a record that memory lacks does not get here. It is no difference.
      difference = difference ?? record.key
    }
  }

  /// Returns the commits since the state in memory, or `nil` if there are none.
  /// - Throws: `.dataMissing` unless the files hold the same store, with later commits only.
  func finish(_ report: OpenReport, storeID: UUID, file: String) throws(RepositoryError) -> ForeignCommits? {
    guard !report.isNew else {
      throw RepositoryError(
        .dataMissing, "the store's files are gone since it was suspended; put them back and resume it, or close it", file: file)
    }
    guard report.storeID == storeID else {
      throw RepositoryError(
        .dataMissing,
        "expected the store \(storeID) that was suspended, found the store \(report.storeID); put the file back and resume it, or close it",
        file: file)
    }
    let count = state.collections.reduce(0) { $0 + $1.records.count }
    let hasForgotten = report.tombstoneHorizon > commit
    // A deletion whose tombstone was forgotten leaves no trace. A missing record then proves nothing.
    guard report.commit >= commit, difference == nil, foundCount == count || hasForgotten else {
      throw RepositoryError(
        .dataMissing,
        "expected the store as it was suspended at commit \(commit), with later commits only, found another one at commit "
          + "\(report.commit): an older copy has taken its place; close the store, and open it again",
        file: file, keyHash: difference?.hash)
    }
    guard report.commit > commit else { return nil }
    return ForeignCommits(commit: report.commit, records: newer, addresses: hasForgotten ? Set(addresses) : nil)
  }
}

extension RepositoryError {
  /// Error for an operation that needs the files of a suspended store.
  static var storeSuspended: RepositoryError { RepositoryError(.suspended, "the store is suspended; call resume(), and try again") }
}
