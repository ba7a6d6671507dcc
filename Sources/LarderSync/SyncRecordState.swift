public import Larder

/// The sync state of one record, which an app can show as a badge beside the record.
///
/// Call ``SyncEngine/state(of:in:)`` to read the state of a record.
public enum SyncRecordState: Sendable, Hashable {
  /// The server has every edit of the record, and no conflict about the record is stored.
  case clean
  /// The record has edits to be sent.
  case waiting
  /// Edits of the record were sent, and their outcome is not known yet.
  case inFlight
  /// The record's edits were refused or could not be merged, or the server's version of the record was not stored or cannot be read.
  case refused(SyncRejection)
  /// The server has every edit of the record, and the associated conflicts about the record are stored, the newest first.
  case conflict([SyncConflict])
}

/// A record with edits that the server has not accepted.
public struct SyncPendingRecord: Sendable, Hashable {
  /// The collection of the record.
  public let collection: String
  /// Key of the record, as text.
  public let recordID: String
  /// Scope of the record.
  public let scope: String
  /// Whether the edits are not sent and wait in ``SyncEngine/rejected``, such as after a refusal by the server.
  public let isRefused: Bool
}

/// An asynchronous sequence of the records that wait for the server: the current list, then the newest one after each change.
///
/// Each listed record has edits that the server has not accepted. A slow reader receives only the newest list. The sequence ends when the
/// task that reads it is cancelled, or when its engine is released.
///
/// Cost: a visit of each listed record for each change of the engine's status.
public struct SyncPendingRecords: AsyncSequence, Sendable {
  let statuses: SyncStatuses
  var dirty: DirtyEntries { statuses.counts.dirty }

  /// Records whose edits the server has not accepted yet, ordered by collection and key.
  public var current: [SyncPendingRecord] { dirty.pendingRecords }

  /// Returns an iterator that starts with the current records.
  public func makeAsyncIterator() -> Iterator { Iterator(statuses: statuses.makeAsyncIterator(), dirty: dirty) }

  /// An iterator over lists of records.
  public struct Iterator: AsyncIteratorProtocol {
    var statuses: SyncStatuses.Iterator
    let dirty: DirtyEntries
    private var seen: [SyncPendingRecord]?

    init(statuses: SyncStatuses.Iterator, dirty: DirtyEntries) { (self.statuses, self.dirty) = (statuses, dirty) }

    /// Waits for a list that differs from the last returned one and returns it, or returns `nil` at the end of the sequence.
    public mutating func next() async -> [SyncPendingRecord]? {
      while await statuses.next() != nil {
        let records = dirty.pendingRecords
        // An equal list is not returned again, since the status also changes with the progress of an exchange.
        if records == seen { continue }
        seen = records
        return records
      }
      return nil
    }
  }
}

extension SyncEngine {
  /// Records with edits that the server has not accepted, including refused ones.
  public nonisolated var pendingRecords: SyncPendingRecords { SyncPendingRecords(statuses: status) }

  /// Returns the sync state of a record.
  ///
  /// A record that does not exist and was not deleted since the last exchange is `.clean`, unless a conflict about the record is stored.
  ///
  /// Cost: a look-up of the record, and a visit of each of ``conflicts`` and of each record of the push in flight.
  /// - Throws: `.unsupported` for a repository whose schema is not synced, `.invalidKey` for an id that is no valid key, and the errors of
  ///   reading the store.
  public func state<Item>(of id: Item.ID, in repository: LocalRepository<Item>) throws(RepositoryError) -> SyncRecordState {
    let address = try repository.address(of: id)
    let (name, key) = (address.collection, address.key)
    guard store.recordTriggers[name] is any SyncedCollection else {
      throw RepositoryError(.unsupported, "expected a synced collection, found \(name); open it with RepositorySchema.synced(in:)")
    }
    // The outbox entry and the scope's state are read from one snapshot. If they were read from two snapshots, a commit between the two
    // snapshots could make a record appear neither waiting nor in flight.
    let (entryKey, snapshot) = (SyncEntry.key(name, key), store.stored)
    if let rejection = try rejected.snapshot.find(by: entryKey.text) { return .refused(rejection) }
    let entry: SyncEntry
    if let stored = try snapshot.stored(entryKey, in: store.collection(named: SyncCollections.records)) {
      entry = try SyncEntry(stored)
    } else if try snapshot.has(key, in: store.collection(named: name)) {
      // A record without an outbox entry existed before its collection was synced. The next exchange adds the missing outbox entry and
      // sends the record.
      return .waiting
    } else {
      return try lost(in: name, key)
    }
    if !entry.isDirty { return try lost(in: name, key) }
    // Fast path: the state of the scope is decoded only if there is a push in flight.
    if inFlight[entry.scope] != nil, let scopeCommits = commitsOfScopes.first(where: { $0.scope == entry.scope }),
      let flight = try scopeCommits.state(in: snapshot)?.flight,
      flight.groups.joined().contains(where: { $0.collection == name && RecordKey($0.id) == key })
    {
      return .inFlight
    }
    return .waiting
  }

  /// Returns `.conflict` with the stored conflicts about a record, or `.clean` if there are none.
  private func lost(in collection: String, _ key: RecordKey) throws(RepositoryError) -> SyncRecordState {
    let found = try conflicts.snapshot.loadAll(strict: false).filter { $0.collection == collection && RecordKey($0.recordID) == key }
    return found.isEmpty ? .clean : .conflict(found.sorted { $0.date > $1.date })
  }
}
