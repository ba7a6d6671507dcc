internal import Foundation
internal import Synchronization

/// The state that the next commit will publish: its collections, and the records to write.
///
/// A pending state exists only on the store's executor, while a group of writes is staged. Every write of a group gets a commit number of
/// its own. A compare-and-set can therefore expect the revision that an earlier write of its group has assigned, even if both writes share
/// one sync.
package struct PendingState {
  private(set) var collections: [CollectionState]
  private(set) var records: [StoredRecord] = []
  /// Changes for observers, one for each entry of ``records``.
  private(set) var changes: [RecordChange] = []
  /// Changes of stored indexes, each with the position in ``records`` of the change that causes it.
  var indexEdits: [(position: Int, edit: IndexEdit)] = []
  /// Indexes that are being copied to the storage.
  let copies: [IndexCopy]
  /// Total size of ``records``.
  private(set) var size = WriteSize()
  /// Origin of the write that is being staged, which observers receive with its changes.
  private(set) var origin = ChangeOrigin.thisProcess
  /// Number that a trigger has assigned to a write, together with the commit number before that write.
  ///
  /// ``groupOfWrite`` returns the number only during that write.
  private var group: (commit: UInt64, number: UInt64)?
  /// True if the end of the write that is being staged must search the unique indexes.
  ///
  /// An index in memory shows at once whether it has a value for another record. An index in the storage is searched for each new value.
  private(set) var isContested = false
  let names: [String]
  /// Triggers and coders of tracked collections (collections with a trigger), by position.
  let triggers: [Int: CollectionTrigger]
  /// Newest commit before this group of writes, from which the commit numbers of the batch begin.
  private var committed: UInt64
  /// Commit number of the last completely staged write.
  private var commit: UInt64
  /// Number of entries of ``records`` that belong to completely staged writes.
  ///
  /// Later entries of ``records`` belong to the write that is being staged.
  private(set) var endedCount = 0
  /// Store that will publish the pending state.
  ///
  /// The store is copied to a file before the first record of a newer schema version is staged.
  let core: StoreCore

  init(_ state: StoreState, of core: StoreCore) {
    self.core = core
    collections = state.collections
    names = state.names
    triggers = core.register.triggers
    copies = core.indexBuilder.stored.copies
    committed = state.commit
    commit = state.commit
  }

  /// Moves the contents of this pending state to a new value and empties this one, so that the arrays have one owner and change in place.
  mutating func moveOut() -> PendingState {
    let moved = self
    // An array with two owners is copied as a whole at its first change.
    (collections, records, changes, indexEdits) = ([], [], [], [])
    return moved
  }

  var isEmpty: Bool { records.isEmpty }
  var recordCount: Int { records.count }
  /// Revision that the records of the write that is being staged receive.
  package var revision: Revision { Revision(commit + 1) }
  /// Newest commit before the write that is being staged.
  var latest: Revision { Revision(commit) }

  /// Number that a trigger has assigned to the write that is being staged, or `nil` if no trigger has assigned one yet.
  ///
  /// All records of one write share the number that the trigger has assigned.
  package var groupOfWrite: UInt64? {
    // A number assigned during an earlier write is ignored, because the commit number of that write differs. The number of a trigger
    // therefore need not be reset between two writes.
    get { group.flatMap { $0.commit == commit ? $0.number : nil } }
    set { group = newValue.map { (commit, $0) } }
  }

  /// Marks the write that is being staged as one that stores values received from another device.
  mutating func beginStored() { origin = .remote }

  /// Stages one write, and rolls its changes back to the savepoint if it fails.
  mutating func perform(_ operation: WriteOperation, from savepoint: Savepoint) -> PendingWrite.Outcome {
    origin = operation.origin
    do throws(RepositoryError) {
      switch operation {
      case .put(let record, let collection, let expectation):
        try put(record, in: collection, expecting: expectation)
      case .putAll(let records, let collection):
        // Space is reserved only if this write has more records than all earlier writes of the group together. An exact reservation for
        // each of many small writes would copy the array each time.
        if records.count > self.records.count {
          self.records.reserveCapacity(self.records.count + records.count)
          changes.reserveCapacity(changes.count + records.count)
        }
        removeAutomaticIndexes(of: collection, before: records.count)
        var read = collections[collection].records.isPaged ? 0 : Int.max
        for (position, record) in records.enumerated() {
          // A large write reads the records that it replaces in parts, because the cache does not hold all of them.
          if position == read {
            read += try collections[collection].records.prefetch(records[position...].lazy.map { ($0.key, $0.value.count) })
          }
          try put(record, in: collection)
        }
      case .delete(let key, let collection, let version, let expectation):
        _ = try delete(key, in: collection, schemaVersion: version, expecting: expectation)
      case .replaceAll(let records, let collection, let version, let coder):
        try replaceAll(in: collection, with: records, schemaVersion: version, ifDecodableBy: coder)
      case .rewrite(let records, let collection):
        for record in records { try rewrite(record, in: collection) }
      case .transaction(_, let body):
        body(&self)
      }
      let count = records.count - endedCount
      // A write without records takes no commit number, so that commit numbers have no gaps.
      guard count > 0 else { return .success(WriteReceipt(revision: latest, recordCount: 0)) }
      // Uniqueness is checked once per write, so that a transaction may break it temporarily. A write from another device is not refused.
      // If the record of another device were refused, the records of the two devices would differ for ever.
      if isContested {
        let staged = changes[endedCount...]
        if origin == .remote { try takeOutDuplicates(staged) } else { try checkUniqueness(staged) }
      }
      isContested = false
      // The next write of the group gets the next commit number.
      endedCount = records.count
      commit += 1
      return .success(WriteReceipt(revision: latest, recordCount: count))
    } catch {
      restore(savepoint)
      return .failure(error)
    }
  }

  // MARK: Records

  /// Inserts a record, or replaces the record with the same key.
  mutating func put(_ record: EncodedRecord, in collection: Int, expecting: Expectation = .anything) throws(RepositoryError) {
    try checkVersion(record.schemaVersion, of: collection)
    if case .anything = expecting {} else { try expecting.check(collections[collection].records[record.key], key: record.key) }
    // The store is copied after the other checks, because the copy may take long, and a refused write needs no copy.
    try beginVersion(record.schemaVersion, of: collection)
    let record = try tracked(record, in: collection)
    try upsert(record.slot(at: revision), as: record.stored, in: collection)
  }

  /// Replaces a record by its migrated form, unless the record was changed since the migration read it.
  ///
  /// The record keeps its revision, because a migration does not change its meaning. In a shared store the migrated record gets a new
  /// revision, because other processes find changed records by their revision.
  private mutating func rewrite(_ migrated: MigratedRecord, in collection: Int) throws(RepositoryError) {
    let record = migrated.record
    // If another write has changed the record since the migration read it, the record of the other write stays and the migrated form is
    // dropped.
    guard let old = try collections[collection].records[record.key], old.revision == migrated.old.revision,
      old.schemaVersion == migrated.old.schemaVersion
    else { return }
    try checkVersion(record.schemaVersion, of: collection)
    try beginVersion(record.schemaVersion, of: collection)
    let kept = core.options.access == .shared ? revision : old.revision
    // A caller may expect any revision since the record's meaning last changed. The range of accepted revisions therefore begins at the
    // last change of the meaning and ends at the revision of this rewrite.
    try upsert(record.slot(at: kept, sameMeaning: old.sameMeaning.lowerBound...revision), as: record.stored, in: collection)
  }

  /// Removes the automatic indexes of a collection before a write of more records than they are worth.
  ///
  /// Keeping the indexes up to date would decode thousands of values on the store's executor, and the last changes would remove them.
  private mutating func removeAutomaticIndexes(of collection: Int, before count: Int) {
    if count > AutomaticIndex.leastCount { _ = collections[collection].indexes.removeAutomatic() }
  }

  /// Deletes the record of a key, and stages a tombstone in its place.
  ///
  /// - Returns: True if the key had a record.
  mutating func delete(
    _ key: RecordKey, in collection: Int, schemaVersion: Int, expecting: Expectation = .anything
  ) throws(RepositoryError) -> Bool {
    try checkVersion(schemaVersion, of: collection)
    if case .anything = expecting {} else { try expecting.check(collections[collection].records[key], key: key) }
    try trackDeletion(of: key, in: collection)
    return try remove(key, in: collection, schemaVersion: schemaVersion)
  }

  /// Replaces all records of a collection.
  ///
  /// If two replacements have the same key, the later one is stored.
  private mutating func replaceAll(
    in collection: Int, with replacements: [EncodedRecord], schemaVersion: Int, ifDecodableBy coder: (any AnyRecordCoder)?
  ) throws(RepositoryError) {
    try checkVersion(schemaVersion, of: collection)
    // The present records are decoded before any change, because this version of the app must not delete records that it cannot decode.
    try coder?.checkDecodable(collections[collection].records)
    // The store is copied before its first record of a newer schema version is staged. A replacement by an empty list writes no record, so
    // it needs no copy.
    if !replacements.isEmpty { try beginVersion(schemaVersion, of: collection) }
    var last: [RecordKey: EncodedRecord] = [:]
    for record in replacements { last[record.key] = record }
    removeAutomaticIndexes(of: collection, before: max(replacements.count, collections[collection].records.count))
    for slot in try collections[collection].records.ordered() where last[slot.key] == nil {
      try trackDeletion(of: slot.key, in: collection)
      try remove(slot.key, in: collection, schemaVersion: schemaVersion)
    }
    // The records are sorted by key, because the order of a dictionary differs between runs of a process. With the sort, equal calls give
    // the backend equal batches.
    for record in last.values.sorted(by: { $0.key < $1.key }) {
      let record = try tracked(record, in: collection)
      try upsert(record.slot(at: revision), as: record.stored, in: collection)
    }
  }

  /// Inserts a record, or replaces the record with the same key.
  ///
  /// Every value that a commit writes passes through `upsert`.
  /// - Throws: as ``RecordLimit/checkReadableForm(of:key:)`` and ``RecordMap/upsert(_:)``, with nothing changed.
  mutating func upsert(_ slot: RecordSlot, as stored: StoredValue, in collection: Int) throws(RepositoryError) {
    // The form of the value is checked first, so that a refused value changes nothing. A stored value with a line feed would make the whole
    // file unreadable.
    try RecordLimit.checkReadableForm(of: stored, key: slot.key)
    let old = try collections[collection].upsert(slot, isContested: &isContested)
    noteIndexEdits(IndexChange(old: old, new: slot), in: collection)
    size.add(key: slot.key, value: stored.json)
    records.append(
      StoredRecord(
        collection: names[collection], key: slot.key, revision: slot.revision, schemaVersion: stored.schemaVersion, value: stored.json))
    changes.append(RecordChange(collection: collection, key: slot.key, revision: revision, origin: origin, old: old, new: slot))
    // The end of a local write builds the unique index that a value did not fit.
    if collections[collection].indexes.hasLostUniqueIndex { isContested = true }
  }

  /// Removes a record, and stages a tombstone with the given schema version.
  ///
  /// - Returns: True if the key had a record.
  ///
  /// - Throws: The errors of ``RecordMap/remove(_:)``, with nothing changed.
  @discardableResult mutating func remove(
    _ key: RecordKey, in collection: Int, schemaVersion: Int
  ) throws(RepositoryError) -> Bool {
    guard let old = try collections[collection].remove(key) else { return false }
    noteIndexEdits(IndexChange(old: old, new: nil), in: collection)
    size.add(key: key, value: nil)
    records.append(
      StoredRecord(collection: names[collection], key: key, revision: revision, schemaVersion: schemaVersion, value: nil))
    changes.append(RecordChange(collection: collection, key: key, revision: revision, origin: origin, old: old, new: nil))
    return true
  }

  /// Stages a tombstone for a key without a record, so that a reader that resumes from an older commit receives the deletion.
  mutating func noteDeletion(of key: RecordKey, in collection: Int) {
    size.add(key: key, value: nil)
    records.append(StoredRecord(collection: names[collection], key: key, revision: revision, schemaVersion: 1, value: nil))
    changes.append(RecordChange(collection: collection, key: key, revision: revision, origin: origin, old: nil, new: nil))
  }

  /// Refuses to write a record of an older schema version into a collection that has records of a newer version.
  ///
  /// An app of the older version cannot read the newer records that it would replace, because migrations lead only to newer versions.
  /// - Throws: `.newerSchema` if the collection has a record of a newer version.
  private func checkVersion(_ version: Int, of collection: Int) throws(RepositoryError) {
    // A tracked collection may hold records of several versions, because newer devices sync theirs. For such collections, `tracked`
    // compares the versions of the single records.
    guard triggers[collection] == nil else { return }
    let newest = collections[collection].records.newestSchemaVersion
    if newest > version { throw .newerRecords(in: names[collection], found: newest, supported: version) }
  }

  /// Copies the store to a file before a collection gets its first record of a newer schema version.
  ///
  /// - Throws: The error that prevented the copy of the store.
  private func beginVersion(_ version: Int, of collection: Int) throws(RepositoryError) {
    if collections[collection].records.newestSchemaVersion < version { try core.copyStore(before: version, of: collection) }
  }

  // MARK: Taking back

  /// A point between two writes, or within a write, to which the pending state can be rolled back.
  struct Savepoint {
    /// Collections at the savepoint, or `nil` if the next write makes all its checks before its only change.
    fileprivate var collections: [CollectionState]?
    fileprivate let size: WriteSize
    fileprivate let commit: UInt64
    let recordCount: Int

    /// True if the pending state can be split at the savepoint, so that the writes before the savepoint form a commit of their own.
    var canSplit: Bool { recordCount > 0 && collections != nil }
  }

  func savepoint() -> Savepoint { Savepoint(collections: collections, size: size, commit: commit, recordCount: records.count) }

  /// Returns the savepoint before a write, without the collections if the write cannot fail after it has changed them.
  ///
  /// While a savepoint shares the collections, every write must copy the tree nodes that it changes, instead of changing them in place.
  func savepoint(before operation: WriteOperation) -> Savepoint {
    var savepoint = savepoint()
    // A trigger stages records of its own before the change, and the read of the replaced record may fail after that.
    if let collection = operation.collectionOfOneChange, !collections[collection].indexes.areUnique, triggers[collection] == nil {
      savepoint.collections = nil
    }
    return savepoint
  }

  /// Rolls back all changes that were staged since a savepoint.
  mutating func restore(_ savepoint: Savepoint) {
    // A failed write may have set `isContested` without staging a record. If `isContested` stayed true, the next write would be checked for
    // uniqueness without need.
    isContested = false
    guard records.count > savepoint.recordCount, let before = savepoint.collections else { return }
    collections = before
    size = savepoint.size
    records.removeLast(records.count - savepoint.recordCount)
    changes.removeLast(changes.count - savepoint.recordCount)
    while let last = indexEdits.last, last.position >= savepoint.recordCount { indexEdits.removeLast() }
  }

  /// Splits off the writes before a savepoint, and returns them as a pending state that must be committed first.
  mutating func split(at savepoint: Savepoint) -> PendingState {
    var head = self
    head.restore(savepoint)
    head.commit = savepoint.commit
    head.endedCount = savepoint.recordCount
    records.removeFirst(savepoint.recordCount)
    changes.removeFirst(savepoint.recordCount)
    indexEdits.removeAll { $0.position < savepoint.recordCount }
    for edit in indexEdits.indices { indexEdits[edit].position -= savepoint.recordCount }
    endedCount -= savepoint.recordCount
    // The split-off writes and the remaining writes become two batches of the backend, whose commit numbers must be consecutive.
    committed = savepoint.commit
    size.subtract(savepoint.size)
    return head
  }

  // MARK: Committing

  /// Returns the staged records and their commit numbers as a batch for the backend.
  ///
  /// The pending state must have at least one staged record.
  func writeBatch(_ durability: Durability) -> WriteBatch {
    WriteBatch(
      records: records, commits: (committed + 1)...max(commit, committed + 1), durability: durability,
      indexEdits: indexEdits.map(\.edit), indexes: storedIndexes, recordCounts: recordCounts)
  }

  /// The number of records of each changed collection, for a store that leaves records in its storage.
  private var recordCounts: [String: Int] {
    guard collections.contains(where: \.records.isPaged) else { return [:] }
    var counts: [String: Int] = [:]
    var last: String?
    // Most records of a batch are of one collection, so a name is looked up only where it changes.
    for record in records where record.collection != last {
      last = record.collection
      if counts[record.collection] == nil, let position = names.firstIndex(of: record.collection) {
        counts[record.collection] = collections[position].records.count
      }
    }
    return counts
  }

  /// Builds unique indexes in memory over the records of this state, in place of those in the storage.
  ///
  /// Until then a unique index in the storage refuses no duplicate if it was lost, or found not to fit the records.
  /// - Returns: False if there is none to build.
  /// - Throws: The errors of ``IndexSet/rebuild(_:from:)``.
  mutating func buildUniqueIndexes(_ wanted: [Int], of collection: Int) throws(RepositoryError) -> Bool {
    if wanted.isEmpty { return false }
    let (records, indexes) = (collections[collection].records, collections[collection].indexes)
    for index in wanted { core.indexBuilder.stored.noteRefutation(of: indexes.bodies[index]) }
    try collections[collection].indexes.rebuild(wanted, from: records)
    core.indexBuilder.stored.copySoon(wanted, of: collection, in: core)
    return true
  }

  /// Gives up the indexes that the backend has dropped in the last commit, because a change did not fit their keys.
  mutating func dropLostIndexes() {
    guard let backend = core.backend as? any PagingBackend else { return }
    for collection in collections.indices where collections[collection].indexes.holdsStubs {
      collections[collection].indexes.dropStored { !backend.holdsIndex($0) }
    }
  }
}
