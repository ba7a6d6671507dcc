internal import Dispatch
internal import Foundation
internal import Synchronization

/// The knowledge of a store about the other processes that write it.
struct ForeignState: Sendable {
  /// The newest schema version that this process reads, by collection; no entry where no repository was opened.
  var supportedVersions: [Int: Int] = [:]
  /// The reason why the last look for foreign commits failed.
  var failure: RepositoryError?
  /// Whether the timer of the next look runs.
  var isTimerSet = false
}

extension StoreCore {
  /// Notes the newest schema version that the repositories of a collection read.
  func noteSupport(for version: Int, of collection: Int) {
    foreign.withLock { $0.supportedVersions[collection] = max(version, $0.supportedVersions[collection] ?? 0) }
  }

  /// Whether other processes may write the store while it is open here.
  var hasForeignWriters: Bool { options.access != .exclusive && backend.hasOtherWriters }

  // MARK: Writing beside other processes

  /// Keeps other processes from committing, and publishes the foreign commits that are there, so that writes are staged
  /// on the newest state.
  ///
  /// On the executor only.
  /// - Returns: The newest state.
  /// - Throws: what the backend throws, and then nothing was begun.
  func beginSharedCommit(_ durability: Durability, after state: StoreState) throws(RepositoryError) -> StoreState {
    do throws(RepositoryError) {
      guard let commits = try backend.beginCommit(after: Revision(state.commit), durability) else { return state }
      publish(commits)
      return self.state
    } catch {
      notePoison(error)
      throw error
    }
  }

  /// Publishes and announces foreign commits.
  ///
  /// On the executor only.
  func publish(_ commits: ForeignCommits) {
    var positions: [String: Int] = [:]
    for record in commits.records where positions[record.collection] == nil {
      positions[record.collection] = collection(named: record.collection)
    }
    var state = self.state
    var changes: [RecordChange] = []
    changes.reserveCapacity(commits.records.count)
    func note(_ key: RecordKey, _ collection: Int, _ revision: Revision, _ old: RecordSlot?, _ new: RecordSlot?) {
      changes.append(
        RecordChange(collection: collection, key: key, revision: revision, origin: .anotherProcess, old: old, new: new))
    }
    let supportedVersions = foreign.withLock { $0.supportedVersions }
    var deletions: [DeletionLog.Deletion] = []  // also of records that came and went before this process saw them
    for record in commits.records {
      guard let position = positions[record.collection] else { continue }
      if let value = record.value {
        let slot = slot(of: record, value, supported: supportedVersions[position])
        note(record.key, position, record.revision, state.collections[position].upsert(slot), slot)
      } else {
        deletions.append(.init(collection: position, key: record.key, revision: record.revision))
        if let old = state.collections[position].remove(record.key) { note(record.key, position, record.revision, old, nil) }
      }
    }
    if let addresses = commits.addresses {
      for (position, name) in state.names.enumerated() {
        for slot in state.collections[position].records.ordered() {
          if addresses.contains(RecordAddress(collection: name, key: slot.key)) { continue }
          // Which commit deleted it is forgotten with its tombstone; it was not after this one.
          note(slot.key, position, commits.commit, state.collections[position].remove(slot.key), nil)
        }
      }
    }
    changes.sort { $0.revision < $1.revision }
    // Where tombstones are missing, the deletions since then are not known.
    if commits.addresses == nil { hub.note(deletions) } else { hub.forgetDeletions(upTo: commits.commit) }
    publish(state.collections, commit: commits.commit)
    if !changes.isEmpty { hub.announce(changes, commit: commits.commit) }
    rebaseIfWorthwhile()
    settleIndexesSoon()
  }

  /// Returns a record of another process in memory; its value is refused where this process is too old for it.
  private func slot(of record: StoredRecord, _ value: Data, supported: Int?) -> RecordSlot {
    if let supported, record.schemaVersion > supported {
      return RecordSlot(
        key: record.key, revision: record.revision, schemaVersion: record.schemaVersion,
        refusedFor: .newerRecords(in: record.collection, found: record.schemaVersion, supported: supported, key: record.key))
    }
    return StoreLoader.slot(of: record, value, options.limits).0
  }

  // MARK: Following other processes

  /// Publishes and announces the foreign commits that are there by now.
  func refresh() async throws(RepositoryError) {
    try await executor.run { () throws(RepositoryError) in
      try self.state.checkWritable()
      try self.follow()
    }
  }

  /// Publishes and announces the foreign commits that are there, if other processes may write while the store is open.
  ///
  /// On the executor only.
  func follow() throws(RepositoryError) {
    if hasForeignWriters { try publishForeignCommits() }
  }

  /// Publishes and announces the foreign commits that the backend knows of, and notes a failure for `verify`.
  ///
  /// On the executor only.
  func publishForeignCommits() throws(RepositoryError) {
    do throws(RepositoryError) {
      if let commits = try backend.foreignCommits(after: Revision(state.commit)) { publish(commits) }
      foreign.withLock { $0.failure = nil }
    } catch {
      notePoison(error)
      foreign.withLock { $0.failure = error }
      throw error
    }
  }

  /// Sets the timer of the next look for foreign commits, unless it runs; it ends with the store, and while the store is suspended.
  func schedulePoll() {
    guard hasForeignWriters, let interval = options.pollInterval, state.isOpen else { return }
    // A store that was suspended and resumed may have the timer from before.
    let isFirst = foreign.withLock { foreign in
      defer { foreign.isTimerSet = true }
      return !foreign.isTimerSet
    }
    guard isFirst else { return }
    executor.queue.asyncAfter(deadline: .now() + max(interval.inSeconds, 0.01)) { [weak self] in self?.pollTimerFired() }
  }

  /// Looks for foreign commits, and sets the timer of the next look.
  ///
  /// On the executor only.
  private func pollTimerFired() {
    foreign.withLock { $0.isTimerSet = false }
    guard state.isOpen else { return }
    // Readers keep what they have. `verify`, `refresh` and the next write tell of the failure, and the next look may succeed.
    do throws(RepositoryError) { try follow() } catch {}
    schedulePoll()
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
