internal import Foundation
internal import Synchronization

/// Suspends and resumes a store.
///
/// A suspended store holds no locks on its files, and keeps its records, indexes and observers in memory.
extension StoreCore {
  /// Commits the next group of waiting writes (as many as fit into one commit), then releases the backend's locks.
  ///
  /// `suspend()` changes nothing in a store that is closed, and commits nothing in a store that is suspended already.
  func suspend() async {
    // `beginSuspending` and `endWaiting` are called outside the executor, because a commit on the executor may be waiting up to
    // `lockTimeout` for another process's lock.
    commits.beginSuspending()
    backend.endWaiting()
    await executor.run {
      self.suspendNow()
      self.commits.endSuspending()
    }
  }

  /// Commits one group of waiting writes, marks the store as suspended, and releases the locks on its files.
  ///
  /// Must run on the store's executor, which serializes all commits.
  private func suspendNow() {
    guard !state.isClosed else { return }
    // Only one group of writes is committed, because the system is about to stop the process. All other waiting writes are held until
    // `resume()`.
    if !state.isSuspended { commits.commitNext(to: self) }
    // The backend can only go on reading records of the newest commit after the suspension.
    if !state.isSuspended { moveBase() }
    setSuspended(true)
    do throws(RepositoryError) {
      // The backend is called even if the store is suspended already, because `endWaiting` prevents all waiting for locks until the next
      // call of `backend.suspend()`.
      try backend.suspend()
    } catch {
      // The backend releases its locks even if `suspend` throws, so the error is only recorded. After a failed sync the store refuses later
      // writes, and `verify` reports any failure.
      notePoison(error)
      follower.note(failure: error)
    }
  }

  /// Takes the locks on the files again, and publishes the commits that other processes have made during the suspension.
  ///
  /// If an open store is not suspended, `resume()` does nothing.
  /// - Throws: `.locked`, `.alreadyOpen`, `.dataMissing`, or an error of opening. After any of these errors of `resume()` the store stays
  ///   suspended. `.poisoned` after a failed sync. `.closed` in a closed store.
  func resume() async throws(RepositoryError) {
    try await executor.run { () throws(RepositoryError) in try self.resumeNow() }
    // The poll timer, the drain of the write queue and the migrations stopped at the suspension, so `resume()` starts them again.
    follower.schedulePoll(of: self)
    commits.drainSoon(to: self)
    migrations.resumeAll()
  }

  /// Takes the locks on the files again, publishes the commits of other processes, and moves the held writes back into the queue.
  ///
  /// Must run on the store's executor, which serializes all commits.
  private func resumeNow() throws(RepositoryError) {
    let state = state
    // A poisoned store (after a failed sync) stays suspended, because it serves only reads, and reads need no lock.
    guard state.isSuspended, state.holdsWrites else { return try state.checkWritable() }
    if try backend.resume() { try catchUp() } else { try readAnew(after: state) }
    // Without a base, every read of the storage would fail although the store is resumed.
    if self.state.hasLostBase { try orSuspendAgain { () throws(RepositoryError) in _ = try self.newestBase() } }
    follower.note(failure: nil)
    // A drain of the write queue may be scheduled already. The held writes must be in the queue before a drain runs, or newer writes would
    // be committed before the held ones.
    commits.takeHeld()
    setSuspended(false)
    // Another process may have removed an index of an exclusive store. A shared one keeps its base, and has no indexes in the storage.
    if options.access != .shared { moveBase(isForced: true) }
    moveBaseIfWorthwhile()
    indexBuilder.stored.resumeCopies(in: self)
  }

  /// Publishes the commits that other processes have made during the suspension.
  ///
  /// If the commits of other processes cannot be read, the locks are released again and the store stays suspended.
  private func catchUp() throws(RepositoryError) {
    try orSuspendAgain { () throws(RepositoryError) in try self.follower.publishNewCommits(of: self) }
  }

  /// Runs a step of resuming, and releases the locks of the backend again if the step fails.
  private func orSuspendAgain(_ step: () throws(RepositoryError) -> Void) throws(RepositoryError) {
    do throws(RepositoryError) { try step() } catch {
      do throws(RepositoryError) { try backend.suspend() } catch {}  // the error of `step` is thrown below
      throw error
    }
  }

  /// Opens the backend again, and publishes the differences between its records and the records in memory.
  private func readAnew(after state: StoreState) throws(RepositoryError) {
    if state.collections.contains(where: \.records.isPaged), let backend = backend as? any PagingBackend {
      return try openAnew(backend, after: state)
    }
    var comparison = StoreComparison(with: state)
    var report = try backend.open(options) { comparison.add($0) }
    let commits: ForeignCommits?
    do throws(RepositoryError) {
      if let failure = comparison.failure { throw failure }
      commits = try comparison.finish(report, storeID: openReport.storeID, file: backend.name)
      // Recovery from a crash writes to the files, so it begins only after the comparison has shown that the files belong to this store.
      if options.access != .readOnly { report = try backend.recover(report) }
    } catch {
      backend.abandon()
      throw error
    }
    if let commits { try follower.publish(commits, in: self) }
    replaceReport(counting: report)
  }

  /// Replaces the report of opening by another one, with the number of the published records.
  private func replaceReport(counting report: OpenReport) {
    let present = state
    var report = report
    report.residency = residency
    report.recordCount = present.collections.reduce(0) { $0 + $1.records.count }
    report.collections = present.contents
    replaceReport(report)
  }

  /// Opens a backend again that leaves records in its storage, and publishes the commits after the newest one of this process.
  ///
  /// The earlier records of a collection in the storage can no longer be read. Only their number shows whether the files were replaced by a
  /// copy with another history and a newer commit.
  private func openAnew(_ backend: any PagingBackend, after state: StoreState) throws(RepositoryError) {
    let known = Revision(state.commit)
    var comparison = StoreComparison(with: state)
    var newer: [StoredRecord] = []
    let paged = Set(zip(state.names, state.collections).filter { $1.records.isPaged }.map(\.0))
    func add(_ record: StoredRecord) {
      if paged.contains(record.collection) {
        comparison.addUnread(record)
        if record.revision > known { newer.append(record) }
      } else {
        comparison.add(record)
      }
    }
    let opening = try backend.openPaged(options) { add($0) }
    var report = opening.report
    do throws(RepositoryError) {
      try comparison.check(report, storeID: openReport.storeID, file: backend.name)
      guard report.tombstoneHorizon <= known else { throw RepositoryError.storageChanged(backend.name) }
      // The storage has a base only after its recovery, which writes to the files, so the records are compared after it.
      if options.access != .readOnly { report = try backend.recover(report) }
      let base = try backend.keepBase()
      for name in opening.collections.map(\.name) { try base.forEach(of: name) { add($0) } }
      if let failure = comparison.failure { throw failure }
      if let found = try comparison.finish(report, storeID: openReport.storeID, file: backend.name) {
        let commits = ForeignCommits(commit: found.commit, records: found.records + newer, addresses: nil)
        try follower.publish(commits, over: base, counted: opening.collections, in: self)
      } else {
        moveCollections(to: base)
      }
    } catch {
      backend.abandon()
      throw error
    }
    replaceReport(counting: report)
  }
}

/// Compares the records in memory with the records of a backend that is opened again after a suspension.
///
/// Other processes may have written to the store during the suspension. Every commit after the suspension has a greater number than the
/// newest commit in memory. A stored record with a commit number that is not greater must therefore equal the record in memory. If a record
/// of an older commit differs, the files were replaced by an older copy of the store, or by a copy with another history.
private struct StoreComparison {
  private let state: StoreState
  private let commit: Revision
  private let positions: [String: Int]
  private var newer: [StoredRecord] = []
  /// Addresses (collection name and key) of the stored records.
  ///
  /// The addresses are hashed only if the backend may have forgotten tombstones.
  private var addresses: [RecordAddress] = []
  /// Number of records in memory for which the backend has the same revision, or a newer revision or tombstone.
  private var foundCount = 0
  /// Number of stored records and newer tombstones of collections whose records stay in the storage.
  private var unreadCount = 0
  /// Key of the first stored record that differs from the record in memory although the commit of the stored record is not newer.
  private var difference: RecordKey?
  /// Error of reading a record that the storage holds for the state in memory.
  private(set) var failure: RepositoryError?

  init(with state: StoreState) {
    self.state = state
    commit = Revision(state.commit)
    positions = Dictionary(zip(state.names, state.names.indices)) { position, _ in position }
  }

  mutating func add(_ record: StoredRecord) {
    var known: RecordSlot?
    do throws(RepositoryError) {
      if let position = positions[record.collection] { known = try state.collections[position].records[record.key] }
    } catch {
      failure = failure ?? error
      return
    }
    if record.value != nil { addresses.append(record.address) }
    if record.revision > commit {
      newer.append(record)
      // A newer tombstone is counted too, because it explains why a record in memory is missing in the backend.
      if known != nil { foundCount += 1 }
    } else if let known, record.value != nil, known.revision == record.revision {
      foundCount += 1
    } else if known != nil || record.value != nil {
      // An older tombstone is no difference if memory has no record with its key, because then the record is deleted in both.
      difference = difference ?? record.key
    }
  }

  /// Adds a record of a collection whose records stay in the storage, of which only the number is compared.
  ///
  /// Each of the earlier records is unchanged, or has a newer revision or tombstone.
  mutating func addUnread(_ record: StoredRecord) { if record.value != nil || record.revision > commit { unreadCount += 1 } }

  /// Checks that a report is of the store that was suspended, at the same commit or a later one.
  ///
  /// - Throws: `.dataMissing` if it is of another store.
  func check(_ report: OpenReport, storeID: UUID, file: String) throws(RepositoryError) {
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
    guard report.commit >= commit else { throw replaced(by: report, file) }
  }

  /// Returns the commits that are newer than the state in memory, or `nil` if there are no newer commits.
  ///
  /// - Throws: `.dataMissing` unless the files hold the same store, with only later commits added.
  func finish(_ report: OpenReport, storeID: UUID, file: String) throws(RepositoryError) -> ForeignCommits? {
    try check(report, storeID: storeID, file: file)
    let count = state.collections.lazy.filter { !$0.records.isPaged }.reduce(0) { $0 + $1.records.count }
    let countInStorage = state.collections.lazy.filter(\.records.isPaged).reduce(0) { $0 + $1.records.count }
    let hasForgotten = report.tombstoneHorizon > commit
    // If the backend has forgotten tombstones, another process may have deleted a record without a trace. A record that is missing in the
    // backend is then no sign that the store was replaced.
    let isWhole = foundCount == count && unreadCount >= countInStorage
    guard difference == nil, isWhole || hasForgotten else { throw replaced(by: report, file) }
    guard report.commit > commit else { return nil }
    return ForeignCommits(commit: report.commit, records: newer, addresses: hasForgotten ? Set(addresses) : nil)
  }

  private func replaced(by report: OpenReport, _ file: String) -> RepositoryError {
    RepositoryError(
      .dataMissing,
      "expected the store as it was suspended at commit \(commit), with later commits only, found another one at commit "
        + "\(report.commit): an older copy has taken its place; close the store, and open it again",
      file: file, keyHash: difference?.hash)
  }
}

extension RepositoryError {
  /// Error for an operation that needs the store's files while the store is suspended.
  static var storeSuspended: RepositoryError { RepositoryError(.suspended, "the store is suspended; call resume(), and try again") }
}
