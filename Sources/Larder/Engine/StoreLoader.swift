internal import Foundation

/// The first published state in the making, from the records that a backend streams while it opens.
struct StoreLoader {
  private let limits: StoreOptions.Limits
  private var names: [String] = []
  private var slots: [[RecordSlot]] = []
  /// The position of the collection that the last record was of.
  private var current = -1
  /// The records of that collection that have no slots yet.
  private var waiting: [StoredRecord] = []
  /// The number of records that get their slots together, on all cores, and of those that a core makes at a time.
  private static let (groupSize, partSize) = (16_384, 1_024)
  private var deletions: [DeletionLog.Deletion] = []
  /// The records over a limit.
  private(set) var undecodable: [UndecodableRecord] = []

  init(limits: StoreOptions.Limits) { self.limits = limits }

  /// Adds a record or a tombstone, in the order in which the backend has them.
  mutating func add(_ record: StoredRecord) {
    if current < 0 || names[current] != record.collection { select(record.collection) }
    guard record.value != nil else {
      return deletions.append(.init(collection: current, key: record.key, revision: record.revision))
    }
    waiting.append(record)
    if waiting.count == Self.groupSize { makeSlots() }
  }

  private mutating func makeSlots() {
    guard !waiting.isEmpty else { return }
    let limits = limits
    let parts = ConcurrentMap.blockingParts(waiting, of: Self.partSize) { part in
      var slots: [RecordSlot] = []
      var undecodable: [UndecodableRecord] = []
      slots.reserveCapacity(part.count)
      for record in part {
        guard let value = record.value else { continue }
        let (slot, error) = Self.slot(of: record, value, limits)
        slots.append(slot)
        if let error { undecodable.append(UndecodableRecord(slot, in: record.collection, error)) }
      }
      return (slots: slots, undecodable: undecodable)
    }
    for part in parts {
      slots[current] += part.slots
      undecodable += part.undecodable
    }
    waiting.removeAll(keepingCapacity: true)
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
  mutating func finish(commit: Revision) -> StoreState {
    makeSlots()
    waiting = []
    return StoreState(commit: commit.number, names: names, collections: slots.map { CollectionState(records: RecordMap($0)) })
  }

  /// Returns the tombstones, which the backend has kept since a commit.
  func deletionLog(since horizon: Revision) -> DeletionLog {
    DeletionLog(deletions, horizon: horizon, limit: limits.tombstones)
  }

  private mutating func select(_ name: String) {
    makeSlots()
    if let position = names.firstIndex(of: name) {
      current = position
    } else {
      names.append(name)
      slots.append([])
      current = names.count - 1
    }
  }
}
