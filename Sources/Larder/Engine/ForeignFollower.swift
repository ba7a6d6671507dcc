internal import Dispatch
internal import Foundation
internal import Synchronization

/// Publishes foreign commits, which are the commits of other processes in the same store.
///
/// In a store that is open `.shared`, every commit of this process is staged on top of the foreign commits.
final class ForeignFollower: Sendable {
  private let state = Mutex(Known())

  private struct Known: Sendable {
    /// Newest schema version that a repository of this process reads, by the position of the collection.
    ///
    /// A collection without a repository in this process has no entry.
    var supportedVersions: [Int: Int] = [:]
    /// Error of the last read of foreign commits or of the last suspension, or `nil` if it succeeded.
    var failure: RepositoryError?
    /// True while the poll timer runs, which starts the next read of foreign commits.
    var isTimerSet = false
  }

  /// Error of the last read of foreign commits or of the last suspension, which `verify` reports.
  var failure: RepositoryError? { state.withLock { $0.failure } }

  /// Records a failure for `verify`, or removes the recorded failure if `failure` is `nil`.
  func note(failure: RepositoryError?) { state.withLock { $0.failure = failure } }

  /// Records the newest schema version that a repository of this collection reads.
  func note(supportedVersion version: Int, of collection: Int) {
    state.withLock { $0.supportedVersions[collection] = max(version, $0.supportedVersions[collection] ?? 0) }
  }

  // MARK: Writing beside other processes

  /// Keeps other processes from committing, and publishes their earlier commits, so that this process stages its writes on the newest
  /// state.
  ///
  /// Must run on the store's executor, which serializes all commits.
  /// - Returns: The newest state of the store, with all foreign commits.
  /// - Throws: The error of the backend's `beginCommit`. If `beginSharedCommit` throws, other processes may commit, because this process
  ///   has begun no commit.
  func beginSharedCommit(
    _ durability: Durability, after published: StoreState, of core: StoreCore
  ) throws(RepositoryError) -> StoreState {
    do throws(RepositoryError) {
      let commits = try core.backend.beginCommit(after: Revision(published.commit), durability)
      do throws(RepositoryError) {
        if let commits { try publish(commits, orAnewIn: core) }
        try core.replaceLostBase()
      } catch {
        core.backend.cancelCommit()
        throw error
      }
      return core.state
    } catch {
      core.notePoison(error)
      throw error
    }
  }

  /// Publishes foreign commits, also if the records before them can no longer be read from the storage.
  ///
  /// Must run on the store's executor, while no other process may commit.
  private func publish(_ commits: ForeignCommits, orAnewIn core: StoreCore) throws(RepositoryError) {
    do throws(RepositoryError) { try publish(commits, in: core) } catch {
      guard error.code == .superseded, let backend = core.backend as? any PagingBackend else { throw error }
      try publish(commits, over: try backend.keepBase(), in: core)
    }
  }

  /// Publishes foreign commits as one new state, and announces their changes to observers.
  ///
  /// Must run on the store's executor, which serializes all commits.
  /// - Parameters:
  ///   - base: The records of the newest of the commits, if those before them can no longer be read from the storage. Observers then get
  ///     stubs as the records before each change.
  ///   - counted: Number and versions of the records of `base`, or `nil` to read all of them once.
  /// - Throws: The errors of ``RecordMap/upsert(_:)``, with nothing published. `.superseded` if `base` is needed, and the tombstones of
  ///   deleted records were forgotten, or `base` is of another commit.
  func publish(
    _ commits: ForeignCommits, over base: (any StoredBase)? = nil, counted: [CollectionSummary]? = nil, in core: StoreCore
  ) throws(RepositoryError) {
    var positions: [String: Int] = [:]
    for record in commits.records where positions[record.collection] == nil {
      positions[record.collection] = core.collection(named: record.collection)
    }
    // `core.collection(named:)` may have added collections above, so the state is copied after that call. The copy of the state then has
    // the positions of added collections.
    var published = core.state
    var changes: [RecordChange] = []
    changes.reserveCapacity(commits.records.count)
    func note(_ key: RecordKey, in collection: Int, at revision: Revision, from old: RecordSlot?, to new: RecordSlot?) {
      changes.append(
        RecordChange(collection: collection, key: key, revision: revision, origin: .anotherProcess, old: old, new: new))
    }
    if let base {
      // Only the earlier records would show which records were deleted.
      guard commits.addresses == nil, base.commit == commits.commit else { throw .storageChanged(core.backend.name) }
      for position in published.collections.indices where published.collections[position].records.isPaged {
        try published.collections[position].begin(anewOver: base, counted: counted)
      }
    }
    let supportedVersions = state.withLock { $0.supportedVersions }
    // A record that was inserted and deleted since the last read of foreign commits also adds a deletion. A reader that resumes a change
    // feed needs the deletions of such records.
    var deletions: [DeletionLog.Deletion] = []
    for record in commits.records {
      guard let position = positions[record.collection] else { continue }
      let isAnew = base != nil && published.collections[position].records.isPaged
      if let value = record.value {
        let slot = slot(of: record, value, supported: supportedVersions[position], limits: core.options.limits)
        let old = isAnew ? RecordSlot(stubOf: record.key) : try published.collections[position].upsert(slot)
        note(record.key, in: position, at: record.revision, from: old, to: slot)
      } else {
        deletions.append(.init(collection: position, key: record.key, revision: record.revision))
        if isAnew {
          note(record.key, in: position, at: record.revision, from: RecordSlot(stubOf: record.key), to: nil)
        } else if let old = try published.collections[position].remove(record.key) {
          note(record.key, in: position, at: record.revision, from: old, to: nil)
        }
      }
    }
    if let addresses = commits.addresses {
      for (position, name) in published.names.enumerated() {
        var missing: [RecordKey] = []
        try published.collections[position].records.visitOneByOne { slot in
          if !addresses.contains(RecordAddress(collection: name, key: slot.key)) { missing.append(slot.key) }
          return true
        }
        for key in missing.sorted() {
          // The tombstone of a record without an address was forgotten, so the commit that deleted the record is unknown. The deletion is
          // announced with the revision `commits.commit`, which is not older than the deletion.
          note(key, in: position, at: commits.commit, from: try published.collections[position].remove(key), to: nil)
        }
      }
    }
    // The changes are sorted because the deletions found through `addresses` were appended last. Observers receive changes in the order of
    // their revisions.
    changes.sort { $0.revision < $1.revision }
    // If `addresses` is set, tombstones were forgotten and the deletion log has a gap. After a gap in the deletion log, a reader that
    // resumes a change feed must load everything again.
    if commits.addresses == nil { core.hub.note(deletions) } else { core.hub.forgetDeletions(upTo: commits.commit) }
    core.publish(published.collections, commit: commits.commit)
    if !changes.isEmpty { core.hub.announce(changes, commit: commits.commit) }
    core.rebaseIfWorthwhile()
    core.indexBuilder.settleSoon(core)
  }

  /// Returns a record of another process as a `RecordSlot`, which is the form of records in memory.
  ///
  /// If the record's schema version is newer than this process reads, every read of its value throws `.newerSchema`.
  private func slot(of record: StoredRecord, _ value: Data, supported: Int?, limits: StoreOptions.Limits) -> RecordSlot {
    if let supported, record.schemaVersion > supported {
      return RecordSlot(
        key: record.key, revision: record.revision, schemaVersion: record.schemaVersion,
        refusedFor: .newerRecords(in: record.collection, found: record.schemaVersion, supported: supported, key: record.key))
    }
    return RecordSlot.loaded(record, value, limits).0
  }

  // MARK: Following other processes

  /// Publishes and announces commits of other processes, if other processes can write to the store while it is open.
  ///
  /// Must run on the store's executor, which serializes all commits.
  func follow(_ core: StoreCore) throws(RepositoryError) {
    guard core.hasForeignWriters else { return }
    try publishNewCommits(of: core)
    core.moveBaseIfWorthwhile()
  }

  /// Reads foreign commits from the backend, publishes and announces them, and records a failure for `verify`.
  ///
  /// Must run on the store's executor, which serializes all commits.
  func publishNewCommits(of core: StoreCore) throws(RepositoryError) {
    do throws(RepositoryError) {
      if let commits = try core.backend.foreignCommits(after: Revision(core.state.commit)) {
        do throws(RepositoryError) { try publish(commits, in: core) } catch {
          guard error.code == .superseded, core.options.access == .shared else { throw error }
          _ = try beginSharedCommit(core.options.durability, after: core.state, of: core)
          core.backend.cancelCommit()
        }
      }
      note(failure: nil)
    } catch {
      core.notePoison(error)
      note(failure: error)
      throw error
    }
  }

  /// Sets the poll timer, which starts the next read of foreign commits, unless the timer runs already.
  ///
  /// The poll timer is not set again once the store is released, closed, poisoned (after a failed sync) or suspended.
  func schedulePoll(of core: StoreCore) {
    guard core.hasForeignWriters, let interval = core.options.pollInterval, core.state.isOpen else { return }
    // If the store was suspended and resumed within one poll interval, the old timer still runs. A second poll timer would double the
    // number of polls.
    let isFirst = state.withLock { state in
      defer { state.isTimerSet = true }
      return !state.isTimerSet
    }
    guard isFirst else { return }
    // The pause between two polls is at least 10 ms, because a poll interval of zero would keep the executor busy with polls.
    core.executor.queue.asyncAfter(deadline: .now() + max(interval.inSeconds, 0.01)) { [weak core] in
      core.map { $0.follower.pollTimerFired(of: $0) }
    }
  }

  private func pollTimerFired(of core: StoreCore) {
    state.withLock { $0.isTimerSet = false }
    guard core.state.isOpen else { return }
    // Readers keep their values if the poll fails. `verify`, `refresh` and the next write report the failure, and the next poll may
    // succeed.
    do throws(RepositoryError) { try follow(core) } catch {}
    schedulePoll(of: core)
  }
}

extension StoreCore {
  /// True if other processes may write to the store while this process has it open.
  var hasForeignWriters: Bool { options.access != .exclusive && backend.hasOtherWriters }

  /// Publishes and announces the commits of other processes that are durable at the time of the call.
  func refresh() async throws(RepositoryError) {
    try await executor.run { () throws(RepositoryError) in
      try self.state.checkWritable()
      try self.follower.follow(self)
    }
  }
}

extension RepositoryError {
  /// Returns the error for deletions of another process that only the earlier records would show.
  static func storageChanged(_ file: String) -> RepositoryError {
    RepositoryError(
      .superseded,
      "another process has deleted records, and the store can no longer read which ones; close it, and open it again",
      file: file)
  }

  /// Returns the error for a record whose schema version is newer than the one that this process reads.
  static func newerRecords(in collection: String, found: Int, supported: Int, key: RecordKey? = nil) -> RepositoryError {
    RepositoryError(
      .newerSchema, "the collection \(collection) holds records of a newer version; update the app to read or write it", keyHash: key?.hash,
      versions: .init(found: found, supported: supported))
  }
}
