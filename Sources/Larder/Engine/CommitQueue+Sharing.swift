internal import Dispatch
internal import Foundation
internal import Synchronization

/// What a commit queue knows of the others who write its store.
struct SharingState: Sendable {
  /// The newest schema version that this process reads, by collection; no entry where no repository was opened.
  var supportedVersions: [Int: Int] = [:]
  /// Why the last look for others' commits failed.
  var failure: RepositoryError?
}

extension CommitQueue {
  /// Notes the newest schema version that the repositories of a collection read.
  func reads(_ collection: Int, upTo version: Int) {
    sharing.withLock { $0.supportedVersions[collection] = max(version, $0.supportedVersions[collection] ?? 0) }
  }

  /// Whether others may write the store while it is open here.
  var hasOthers: Bool { options.access != .exclusive && backend.hasOtherWriters }

  // MARK: Writing beside others

  /// Keeps others from committing, and publishes what they have committed, so that the writes are staged against the newest state.
  ///
  /// On the executor only. Nothing is claimed yet: a write can be cancelled while others are waited for.
  /// - Throws: what the backend throws, and then nothing was begun.
  func beginSharedCommit(_ writes: [any AnyQueuedWrite]) throws(RepositoryError) {
    guard options.access == .shared else { return }
    let durability = writes.contains { $0.durability == .durable } ? Durability.durable : .buffered
    do throws(RepositoryError) {
      if let foreign = try backend.beginCommit(after: Revision(state.commit), durability) { takeIn(foreign) }
    } catch {
      notePoison(error)
      throw error
    }
  }

  /// Publishes and announces what others have committed.
  ///
  /// On the executor only.
  private func takeIn(_ foreign: ForeignCommits) {
    var indexes: [String: Int] = [:]
    for record in foreign.records where indexes[record.collection] == nil {
      indexes[record.collection] = collection(named: record.collection)
    }
    var state = self.state
    var changes: [RecordChange] = []
    changes.reserveCapacity(foreign.records.count)
    func note(_ key: RecordKey, _ collection: Int, _ revision: Revision, _ old: RecordSlot?, _ new: RecordSlot?) {
      changes.append(
        RecordChange(collection: collection, key: key, revision: revision, origin: .anotherProcess, old: old, new: new))
    }
    let supportedVersions = sharing.withLock { $0.supportedVersions }
    for record in foreign.records {
      guard let index = indexes[record.collection] else { continue }
      if let value = record.value {
        let slot = slot(of: record, value, supported: supportedVersions[index])
        note(record.key, index, record.revision, state.collections[index].upsert(slot), slot)
      } else if let old = state.collections[index].remove(record.key) {
        note(record.key, index, record.revision, old, nil)
      }
    }
    if let addresses = foreign.addresses {
      for (index, name) in state.names.enumerated() {
        for slot in state.collections[index].records.ordered() {
          if addresses.contains(RecordAddress(collection: name, key: slot.key)) { continue }
          // Which commit deleted it is forgotten with its tombstone; it was not after this one.
          note(slot.key, index, foreign.commit, state.collections[index].remove(slot.key), nil)
        }
      }
    }
    for index in state.collections.indices { state.collections[index].rebaseIfWorthwhile() }
    state.commit = foreign.commit.number
    changes.sort { $0.revision < $1.revision }
    hub.note(foreign, indexes)
    publish(state)
    if !changes.isEmpty { hub.announce(changes, commit: foreign.commit) }
  }

  /// A record of another process in memory; its value is refused where this process is too old for it.
  private func slot(of record: StoredRecord, _ value: Data, supported: Int?) -> RecordSlot {
    if let supported, record.schemaVersion > supported {
      return RecordSlot(
        key: record.key, revision: record.revision, schemaVersion: record.schemaVersion,
        refusedFor: .newerRecords(in: record.collection, found: record.schemaVersion, supported: supported, key: record.key))
    }
    return StoreLoader.slot(of: record, value, options.limits).0
  }

  // MARK: Following others

  /// Publishes and announces what others have committed by now.
  func refresh() async throws(RepositoryError) {
    try await executor.run { () throws(RepositoryError) in
      try self.state.checkWritable()
      try self.follow()
    }
  }

  /// On the executor only.
  private func follow() throws(RepositoryError) {
    guard hasOthers else { return }
    do throws(RepositoryError) {
      if let foreign = try backend.foreignCommits(after: Revision(state.commit)) { takeIn(foreign) }
      sharing.withLock { $0.failure = nil }
    } catch {
      notePoison(error)
      sharing.withLock { $0.failure = error }
      throw error
    }
  }

  /// Sets the timer of the next look; it ends with the store.
  func schedulePoll() {
    guard hasOthers, let interval = options.pollInterval, case .open = state.condition else { return }
    executor.queue.asyncAfter(deadline: .now() + max(interval.inSeconds, 0.01)) { [weak self] in self?.pollTimerFired() }
  }

  /// On the executor only.
  private func pollTimerFired() {
    guard case .open = state.condition else { return }
    // Readers keep what they have. The failure is for `verify`, `refresh` and the next write to tell, and the next look may succeed.
    do throws(RepositoryError) { try follow() } catch {}
    schedulePoll()
  }
}

extension RepositoryError {
  /// The error for records of a newer version than the code that reads them.
  static func newerRecords(in collection: String, found: Int, supported: Int, key: RecordKey? = nil) -> RepositoryError {
    RepositoryError(
      .newerSchema, "the collection \(collection) holds records of a newer version", keyHash: key?.hash,
      versions: .init(found: found, supported: supported))
  }
}
