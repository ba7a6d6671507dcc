internal import Foundation
internal import Synchronization

/// Suspending: the store gives up its locks, and keeps what it has in memory.
extension StoreCore {
  /// Commits the group of writes that waits, and gives up the backend's locks; does nothing in a store that is suspended or closed.
  func suspend() async {
    commits.beginSuspending()
    backend.endWaiting()
    await executor.run {
      self.suspendNow()
      self.commits.endSuspending()
    }
  }

  /// On the executor only.
  private func suspendNow() {
    guard !state.isClosed else { return }
    if !state.isSuspended { commits.commitNext(to: self) }
    setSuspended(true)
    do throws(RepositoryError) {
      // Also the second time: it ends what `endWaiting` has begun.
      try backend.suspend()
    } catch {
      // The locks are given up. What went wrong shows at the next write, and `verify` tells of it.
      notePoison(error)
      follower.note(failure: error)
    }
  }

  /// Takes the locks again and publishes the foreign commits that are there; does nothing in a store that is not suspended.
  /// - Throws: `.locked`, `.alreadyOpen`, `.dataMissing`, or what opening throws; the store stays suspended. `.poisoned`, `.closed`.
  func resume() async throws(RepositoryError) {
    try await executor.run { () throws(RepositoryError) in try self.resumeNow() }
    follower.schedulePoll(of: self)
    commits.drainSoon(to: self)
    migrations.resumeAll()
  }

  /// On the executor only.
  private func resumeNow() throws(RepositoryError) {
    let state = state
    guard state.isSuspended, state.holdsWrites else { return try state.checkWritable() }
    if try backend.resume() { try catchUp() } else { try readAnew(after: state) }
    follower.note(failure: nil)
    // Before a drain that waits already can commit what came after them.
    commits.takeHeld()
    setSuspended(false)
  }

  /// Publishes the foreign commits that are there; where that fails, the store goes on being suspended.
  private func catchUp() throws(RepositoryError) {
    do throws(RepositoryError) { try follower.publishNewCommits(of: self) } catch {
      do throws(RepositoryError) { try backend.suspend() } catch {}  // the first failure is the one to hear of
      throw error
    }
  }

  /// Opens the backend once more, and publishes how its records differ from those in memory.
  private func readAnew(after state: StoreState) throws(RepositoryError) {
    var comparison = StoreComparison(with: state)
    var report = try backend.open(options) { comparison.add($0) }
    let commits: ForeignCommits?
    do throws(RepositoryError) {
      commits = try comparison.finish(report, storeID: openReport.storeID, file: backend.name)
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

/// A comparison of the records in memory with those of a backend that is read again, after others may have written it.
///
/// Every commit since then has a greater number, so what is not newer must be what memory has: otherwise an older copy of the store, or
/// another line of commits, is in its place.
private struct StoreComparison {
  private let state: StoreState
  private let commit: Revision
  private let positions: [String: Int]
  private var newer: [StoredRecord] = []
  /// The addresses of the records that were read.
  ///
  /// They are hashed only where deletions may have been forgotten.
  private var addresses: [RecordAddress] = []
  /// The number of records in memory that were found, as they are or in a newer state.
  private var foundCount = 0
  /// The first record that memory has otherwise.
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
      if known != nil { foundCount += 1 }
    } else if let known, record.value != nil, known.revision == record.revision {
      foundCount += 1
    } else if known != nil || record.value != nil {
      difference = difference ?? record.key
    }
  }

  /// Returns the commits since the state in memory; `nil` when there are none.
  /// - Throws: `.dataMissing` for anything but the same store with later commits.
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
  /// The error for what needs the files of a suspended store.
  static var storeSuspended: RepositoryError { RepositoryError(.suspended, "the store is suspended; call resume(), and try again") }
}
