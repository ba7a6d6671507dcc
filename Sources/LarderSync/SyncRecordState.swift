public import Larder

/// The state of one record towards the server, for a badge beside it.
public enum SyncRecordState: Sendable, Hashable {
  /// The server has every edit of it, and nothing of it has lost.
  case clean
  /// It has edits that are to be sent.
  case waiting
  /// Its edits were sent, and whether the server has taken them is not known yet.
  case inFlight
  /// The server has refused its edits, or a record of the server was set aside.
  case refused(SyncRejection)
  /// The server has every edit of it, and these values have lost against others; the newest first.
  case conflict([SyncConflict])
}

/// A record with edits that the server has not taken.
public struct SyncPendingRecord: Sendable, Hashable {
  /// The collection of the record.
  public let collection: String
  /// The text of the record's key.
  public let recordID: String
  /// The scope of the record.
  public let scope: String
  /// Whether the server has refused the edits, which then wait in ``SyncEngine/rejected``.
  public let isRefused: Bool
}

/// The records with edits that the server has not taken: the present ones at once, then the newest list whenever it has changed.
///
/// A slow reader gets the newest list alone. The sequence ends with the task that reads it, and with its engine.
/// Cost: a look at each such record for each change of the engine's status.
public struct SyncPendingRecords: AsyncSequence, Sendable {
  let statuses: SyncStatuses
  var dirty: DirtyEntries { statuses.counts.dirty }

  /// The present records, in the order of collections and keys.
  public var current: [SyncPendingRecord] { dirty.pendingRecords }

  /// Returns an iterator that begins with the present records.
  public func makeAsyncIterator() -> Iterator { Iterator(statuses: statuses.makeAsyncIterator(), dirty: dirty) }

  /// An iterator over lists of records.
  public struct Iterator: AsyncIteratorProtocol {
    var statuses: SyncStatuses.Iterator
    let dirty: DirtyEntries
    private var seen: [SyncPendingRecord]?

    init(statuses: SyncStatuses.Iterator, dirty: DirtyEntries) { (self.statuses, self.dirty) = (statuses, dirty) }

    /// Returns the newest list as soon as it is another than the last one; `nil` at the end.
    public mutating func next() async -> [SyncPendingRecord]? {
      while await statuses.next() != nil {
        let records = dirty.pendingRecords
        if records == seen { continue }
        seen = records
        return records
      }
      return nil
    }
  }
}

extension SyncEngine {
  /// The records with edits that the server has not taken, those that it has refused included.
  public nonisolated var pendingRecords: SyncPendingRecords { SyncPendingRecords(statuses: status) }

  /// Returns the state of a record towards the server.
  ///
  /// A record that does not exist and was not deleted since the last exchange is `.clean`.
  /// Cost: a look at the record, at each of ``conflicts``, and at the push that is under way.
  /// - Throws: `.unsupported` for a repository whose schema is not synced; `.invalidKey`; the errors of storage.
  public func state<Item>(of id: Item.ID, in repository: LocalRepository<Item>) throws(RepositoryError) -> SyncRecordState {
    let address = try repository.address(of: id)
    let (name, key) = (address.collection, address.key)
    guard store.recordTriggers[name] is any SyncedCollection else {
      throw RepositoryError(.unsupported, "expected a synced collection, found \(name); open it with RepositorySchema.synced(in:)")
    }
    let (entryKey, snapshot) = (SyncEntry.key(name, key), store.stored)
    if let rejection = try rejected.snapshot.find(by: entryKey.text) { return .refused(rejection) }
    let entry: SyncEntry
    if let stored = snapshot.stored(entryKey, in: store.collection(named: SyncCollections.records)) {
      entry = try SyncEntry(stored)
    } else if snapshot.has(key, in: store.collection(named: name)) {
      // A record from before the collection was synced is noted with the next exchange.
      return .waiting
    } else {
      return lost(in: name, key)
    }
    if !entry.isDirty { return lost(in: name, key) }
    if inFlight[entry.scope] != nil, let ledger = ledgers.first(where: { $0.scope == entry.scope }),
      let flight = try ledger.state(in: snapshot)?.flight,
      flight.groups.joined().contains(where: { $0.collection == name && RecordKey($0.id) == key })
    {
      return .inFlight
    }
    return .waiting
  }

  private func lost(in collection: String, _ key: RecordKey) -> SyncRecordState {
    let found = conflicts.snapshot.loadAll().filter { $0.collection == collection && RecordKey($0.recordID) == key }
    return found.isEmpty ? .clean : .conflict(found.sorted { $0.date > $1.date })
  }
}
