internal import Foundation

/// The first published state in the making, from the records that a backend streams while it opens.
struct StoreLoader {
  private let limits: StoreOptions.Limits
  private var names: [String] = []
  private var slots: [[RecordSlot]] = []
  /// The position of the collection that the last record was of.
  private var current = -1
  private var deletions: [DeletionLog.Deletion] = []
  /// The records over a limit.
  private(set) var undecodable: [UndecodableRecord] = []

  init(limits: StoreOptions.Limits) { self.limits = limits }

  /// Adds a record or a tombstone, in the order in which the backend has them.
  mutating func add(_ record: StoredRecord) {
    if current < 0 || names[current] != record.collection { select(record.collection) }
    guard let value = record.value else {
      return deletions.append(.init(collection: current, key: record.key, revision: record.revision))
    }
    let (slot, error) = Self.slot(of: record, value, limits)
    slots[current].append(slot)
    if let error { undecodable.append(UndecodableRecord(slot, in: record.collection, error)) }
  }

  /// Returns a stored record in memory, and the reason why its value is refused if it is over a limit.
  static func slot(of record: StoredRecord, _ value: Data, _ limits: StoreOptions.Limits) -> (RecordSlot, RepositoryError?) {
    let (key, revision, version) = (record.key, record.revision, record.schemaVersion)
    if let error = RecordLimit.violation(of: limits, key: key, value: value) {
      return (RecordSlot(key: key, revision: revision, schemaVersion: version, refusedFor: error), error)
    }
    return (RecordSlot(key: key, revision: revision, schemaVersion: version, value: value), nil)
  }

  /// Returns the state of everything that was added.
  func finish(commit: Revision) -> StoreState {
    StoreState(commit: commit.number, names: names, collections: slots.map { CollectionState(records: RecordMap($0)) })
  }

  /// Returns the tombstones, which the backend has kept since a commit.
  func deletionLog(since horizon: Revision) -> DeletionLog {
    DeletionLog(deletions, horizon: horizon, limit: limits.tombstones)
  }

  private mutating func select(_ name: String) {
    if let position = names.firstIndex(of: name) {
      current = position
    } else {
      names.append(name)
      slots.append([])
      current = names.count - 1
    }
  }
}
