internal import Foundation

/// The first published state in the making, from the records that a backend streams while it opens.
struct StoreLoader {
  private let limits: StoreOptions.Limits
  private var names: [String] = []
  private var packs: [[RecordPack]] = []
  /// The position of the collection that the last record was of.
  private var current = -1
  /// The records of that collection that are in no pack yet.
  private var packer: RecordPacker?
  private static let packSize = 256 << 10
  private var deletions: [DeletionLog.Deletion] = []
  /// The names whose records have moved to another one: those with a tombstone that a move has left.
  private(set) var movedNames: Set<String> = []
  /// The records over a limit.
  private(set) var undecodable: [UndecodableRecord] = []

  init(limits: StoreOptions.Limits) { self.limits = limits }

  /// Opens a backend and adds everything that it has.
  mutating func load(_ backend: any StorageBackend, _ options: StoreOptions) throws(RepositoryError) -> OpenReport {
    guard let backend = backend as? any PackingBackend else { return try backend.open(options) { add($0) } }
    return try backend.openPacked(options) { add($0) }
  }

  /// Adds records or a tombstone, in the order in which the backend has them.
  mutating func add(_ records: LoadedRecords) {
    switch records {
    case .pack(let pack):
      finishPack()
      select(pack.collection)
      take(pack)
    case .record(let record): add(record)
    }
  }

  /// Adds a record or a tombstone, in the order in which the backend has them.
  mutating func add(_ record: StoredRecord) {
    if current < 0 || names[current] != record.collection {
      finishPack()
      select(record.collection)
    }
    guard let value = record.value else {
      if record.schemaVersion == StoreCore.movedVersion { movedNames.insert(record.collection) }
      return deletions.append(.init(collection: current, key: record.key, revision: record.revision))
    }
    if packer == nil { packer = RecordPacker(record.collection, limits: limits, capacity: value.count) }
    value.withUnsafeBytes { packer?.append(record.key, revision: record.revision, schemaVersion: record.schemaVersion, value: $0) }
    if let packer, packer.byteCount >= Self.packSize { finishPack() }
  }

  /// Returns a stored record in memory, and the reason why its value is refused if it is over a limit.
  static func slot(of record: StoredRecord, _ value: Data, _ limits: StoreOptions.Limits) -> (RecordSlot, RepositoryError?) {
    let (key, revision, version) = (record.key, record.revision, record.schemaVersion)
    let limits = limits.holding(for: record.collection)
    if let limits, let error = value.withUnsafeBytes({ RecordLimit.violation(of: limits, key: key, value: $0) }) {
      return (RecordSlot(key: key, revision: revision, schemaVersion: version, refusedFor: error), error)
    }
    return (RecordSlot(key: key, revision: revision, schemaVersion: version, value: value), nil)
  }

  /// Returns the state of everything that was added.
  mutating func finish(commit: Revision) -> StoreState {
    finishPack()
    return StoreState(commit: commit.number, names: names, collections: packs.map { CollectionState(records: RecordMap($0)) })
  }

  /// Returns the tombstones, which the backend has kept since a commit.
  func deletionLog(since horizon: Revision) -> DeletionLog {
    DeletionLog(deletions, horizon: horizon, limit: limits.tombstones)
  }

  private mutating func finishPack() {
    guard let packer else { return }
    self.packer = nil
    take(packer.finish())
  }

  private mutating func take(_ pack: RecordPack) {
    packs[current].append(pack)
    for refused in pack.refused { undecodable.append(UndecodableRecord(refused.slot, in: pack.collection, refused.error)) }
  }

  private mutating func select(_ name: String) {
    if current >= 0, names[current] == name { return }
    if let position = names.firstIndex(of: name) {
      current = position
    } else {
      names.append(name)
      packs.append([])
      current = names.count - 1
    }
  }
}
