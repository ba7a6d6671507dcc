internal import Dispatch
internal import Foundation
internal import Synchronization

/// A follower of foreign commits (those of other processes), which looks for them and publishes them.
///
/// A shared store stages its own writes on top of them.
final class ForeignFollower: Sendable {
  private let state = Mutex(Known())

  private struct Known: Sendable {
    /// Newest schema version that this process reads, by collection.
    ///
    /// A collection without a repository has no entry.
    var supportedVersions: [Int: Int] = [:]
    /// Error of the last look for foreign commits, if it failed.
    var failure: RepositoryError?
    /// True while the timer of the next look runs.
    var isTimerSet = false
  }

  /// Error of the last look for foreign commits or of the last suspension, for `verify`.
  var failure: RepositoryError? { state.withLock { $0.failure } }

  /// Records a failure that no caller receives, or `nil` once it is over.
  func note(failure: RepositoryError?) { state.withLock { $0.failure = failure } }

  /// Records the newest schema version that a repository of a collection reads.
  func note(supportedVersion version: Int, of collection: Int) {
    state.withLock { $0.supportedVersions[collection] = max(version, $0.supportedVersions[collection] ?? 0) }
  }

  // MARK: Writing beside other processes

  /// Keeps other processes from committing, and publishes their commits, so that writes are staged on the newest state.
  ///
  /// Runs on the executor only.
  /// - Returns: The newest state.
  /// - Throws: The backend's error, with nothing begun.
  func beginSharedCommit(
    _ durability: Durability, after published: StoreState, of core: StoreCore
  ) throws(RepositoryError) -> StoreState {
    do throws(RepositoryError) {
      guard let commits = try core.backend.beginCommit(after: Revision(published.commit), durability) else { return published }
      publish(commits, in: core)
      return core.state
    } catch {
      core.notePoison(error)
      throw error
    }
  }

  /// Publishes and announces foreign commits.
  ///
  /// Runs on the executor only.
  func publish(_ commits: ForeignCommits, in core: StoreCore) {
    var positions: [String: Int] = [:]
    for record in commits.records where positions[record.collection] == nil {
      positions[record.collection] = core.collection(named: record.collection)
    }
    // Copied after new collections were added above, so that their positions exist in it.
    var published = core.state
    var changes: [RecordChange] = []
    changes.reserveCapacity(commits.records.count)
    func note(_ key: RecordKey, in collection: Int, at revision: Revision, from old: RecordSlot?, to new: RecordSlot?) {
      changes.append(
        RecordChange(collection: collection, key: key, revision: revision, origin: .anotherProcess, old: old, new: new))
    }
    let supportedVersions = state.withLock { $0.supportedVersions }
    // Also deletions of records that another process inserted and deleted since the last look, because a device that resumes a feed needs
    // them.
    var deletions: [DeletionLog.Deletion] = []
    for record in commits.records {
      guard let position = positions[record.collection] else { continue }
      if let value = record.value {
        let slot = slot(of: record, value, supported: supportedVersions[position], limits: core.options.limits)
        note(record.key, in: position, at: record.revision, from: published.collections[position].upsert(slot), to: slot)
      } else {
        deletions.append(.init(collection: position, key: record.key, revision: record.revision))
        if let old = published.collections[position].remove(record.key) {
          note(record.key, in: position, at: record.revision, from: old, to: nil)
        }
      }
    }
    if let addresses = commits.addresses {
      for (position, name) in published.names.enumerated() {
        for slot in published.collections[position].records.ordered() {
          if addresses.contains(RecordAddress(collection: name, key: slot.key)) { continue }
          // Its tombstone is gone, and with it the commit that deleted it. The commit is not newer than this one.
          note(slot.key, in: position, at: commits.commit, from: published.collections[position].remove(slot.key), to: nil)
        }
      }
    }
    changes.sort { $0.revision < $1.revision }
    // Without tombstones the log of deletions has a gap, so a reader that resumes must load everything again.
    if commits.addresses == nil { core.hub.note(deletions) } else { core.hub.forgetDeletions(upTo: commits.commit) }
    core.publish(published.collections, commit: commits.commit)
    if !changes.isEmpty { core.hub.announce(changes, commit: commits.commit) }
    core.rebaseIfWorthwhile()
    core.indexBuilder.settleSoon(core)
  }

  /// Returns a record of another process as a slot.
  ///
  /// The slot refuses its value where this process's schema is older than the record's.
  private func slot(of record: StoredRecord, _ value: Data, supported: Int?, limits: StoreOptions.Limits) -> RecordSlot {
    if let supported, record.schemaVersion > supported {
      return RecordSlot(
        key: record.key, revision: record.revision, schemaVersion: record.schemaVersion,
        refusedFor: .newerRecords(in: record.collection, found: record.schemaVersion, supported: supported, key: record.key))
    }
    return StoreLoader.slot(of: record, value, limits).0
  }

  // MARK: Following other processes

  /// Publishes and announces foreign commits, if other processes may write while the store is open.
  ///
  /// Runs on the executor only.
  func follow(_ core: StoreCore) throws(RepositoryError) {
    if core.hasForeignWriters { try publishNewCommits(of: core) }
  }

  /// Reads foreign commits from the backend, publishes and announces them, and keeps a failure for `verify`.
  ///
  /// Runs on the executor only.
  func publishNewCommits(of core: StoreCore) throws(RepositoryError) {
    do throws(RepositoryError) {
      if let commits = try core.backend.foreignCommits(after: Revision(core.state.commit)) { publish(commits, in: core) }
      note(failure: nil)
    } catch {
      core.notePoison(error)
      note(failure: error)
      throw error
    }
  }

  /// Sets the timer of the next look for foreign commits, unless it runs.
  ///
  /// The timer ends with the store, and while the store is suspended.
  func schedulePoll(of core: StoreCore) {
    guard core.hasForeignWriters, let interval = core.options.pollInterval, core.state.isOpen else { return }
    // A store that was suspended and resumed may still have the timer from before.
    let isFirst = state.withLock { state in
      defer { state.isTimerSet = true }
      return !state.isTimerSet
    }
    guard isFirst else { return }
    // At least 10 ms, because an interval of zero would keep the executor busy.
    core.executor.queue.asyncAfter(deadline: .now() + max(interval.inSeconds, 0.01)) { [weak core] in
      core.map { $0.follower.pollTimerFired(of: $0) }
    }
  }

  private func pollTimerFired(of core: StoreCore) {
    state.withLock { $0.isTimerSet = false }
    guard core.state.isOpen else { return }
    // Readers keep their values. `verify`, `refresh` and the next write report the failure, and the next look may succeed.
    do throws(RepositoryError) { try follow(core) } catch {}
    schedulePoll(of: core)
  }
}

extension StoreCore {
  /// True if other processes may write the store while it is open here.
  var hasForeignWriters: Bool { options.access != .exclusive && backend.hasOtherWriters }

  /// Publishes and announces the foreign commits that are durable by now.
  func refresh() async throws(RepositoryError) {
    try await executor.run { () throws(RepositoryError) in
      try self.state.checkWritable()
      try self.follower.follow(self)
    }
  }
}

extension RepositoryError {
  /// Returns the error for records of a newer version than the code that reads them.
  static func newerRecords(in collection: String, found: Int, supported: Int, key: RecordKey? = nil) -> RepositoryError {
    RepositoryError(
      .newerSchema, "the collection \(collection) holds records of a newer version; update the app to read or write it", keyHash: key?.hash,
      versions: .init(found: found, supported: supported))
  }
}
