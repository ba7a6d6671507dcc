internal import Foundation
internal import Synchronization

/// The state that the next commit will publish, and the records it will write: what writes are staged against.
///
/// Lives only while a group of writes is gathered, on the store's executor. Every write of a group takes a commit
/// number of its own, so that compare-and-set holds between writes that share one sync.
package struct PendingState {
  private(set) var collections: [CollectionState]
  private(set) var records: [StoredRecord] = []
  /// The change that each of ``records`` makes, one for one.
  private(set) var changes: [RecordChange] = []
  /// The size of what there is to write.
  private(set) var size = WriteSize()
  /// The origin of the write being staged.
  private var origin = ChangeOrigin.thisProcess
  /// The group that the write being staged belongs to, for triggers; see ``groupOfWrite``.
  private var group: (commit: UInt64, number: UInt64)?
  /// Whether the present write has met another record with its values in a unique index, and must be checked when it ends.
  private(set) var isContested = false
  let names: [String]
  /// The triggers and coders of tracked collections, by their positions.
  let triggers: [Int: CollectionTrigger]
  private var committed: UInt64
  private var commit: UInt64
  /// The number of records of the writes that have ended.
  private(set) var endedCount = 0
  /// The store, which copies itself before the first record of a newer schema version is staged.
  let core: StoreCore

  init(_ state: StoreState, of core: StoreCore) {
    self.core = core
    collections = state.collections
    names = state.names
    triggers = core.register.triggers
    committed = state.commit
    commit = state.commit
  }

  /// Moves the contents out, so that they have one owner and change in place.
  mutating func moveOut() -> PendingState {
    let moved = self
    (collections, records, changes) = ([], [], [])
    return moved
  }

  var isEmpty: Bool { records.isEmpty }
  var recordCount: Int { records.count }
  /// The revision of the write being staged.
  package var revision: Revision { Revision(commit + 1) }
  /// The newest commit before the write being staged.
  var latest: Revision { Revision(commit) }

  /// The number that a trigger has given to what the write being staged changes; `nil` before it has.
  package var groupOfWrite: UInt64? {
    get { group.flatMap { $0.commit == commit ? $0.number : nil } }
    set { group = newValue.map { (commit, $0) } }
  }

  /// Begins a write of stored values, as they come from another device.
  mutating func beginStored() { origin = .remote }

  /// Stages one write, or takes back what it has staged.
  mutating func perform(_ operation: WriteOperation, from savepoint: Savepoint) -> PendingWrite.Outcome {
    origin = operation.origin
    do throws(RepositoryError) {
      switch operation {
      case .put(let record, let collection, let expectation):
        try put(record, in: collection, expecting: expectation)
      case .putAll(let records, let collection):
        // Only for the larger part: to make room for many small ones exactly would copy all before at each.
        if records.count > self.records.count {
          self.records.reserveCapacity(self.records.count + records.count)
          changes.reserveCapacity(changes.count + records.count)
        }
        for record in records { try put(record, in: collection) }
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
      guard count > 0 else { return .success(WriteReceipt(revision: latest, recordCount: 0)) }
      // Once per write and not per record, so that a transaction may violate uniqueness temporarily.
      // What another device has written must arrive, whatever is here.
      if isContested, origin != .remote { try checkUniqueness(changes[endedCount...]) }
      isContested = false
      // The next write gets the next number.
      endedCount = records.count
      commit += 1
      return .success(WriteReceipt(revision: latest, recordCount: count))
    } catch {
      restore(savepoint)
      return .failure(error)
    }
  }

  // MARK: Records

  /// Inserts a record, or replaces the one with its key.
  mutating func put(_ record: EncodedRecord, in collection: Int, expecting: Expectation = .anything) throws(RepositoryError) {
    try checkVersion(record.schemaVersion, of: collection)
    if case .anything = expecting {} else { try expecting.check(collections[collection].records[record.key], key: record.key) }
    try beginVersion(record.schemaVersion, of: collection)
    let record = try tracked(record, in: collection)
    try upsert(record.slot(at: revision), as: record.stored, in: collection)
  }

  /// Returns what to store for a record: in a tracked collection with what an edit must not lose, and once its trigger has had its turn.
  private mutating func tracked(_ record: EncodedRecord, in collection: Int) throws(RepositoryError) -> EncodedRecord {
    guard let trigger = triggers[collection], origin != .remote else { return record }
    let old = collections[collection].records[record.key]
    if let old, old.schemaVersion > record.schemaVersion {
      throw .newerRecords(in: names[collection], found: old.schemaVersion, supported: record.schemaVersion, key: record.key)
    }
    var record = record
    if let stored = old?.stored(trigger.coder.schemaVersion) {
      let count = record.value.count
      record = trigger.coder.keepingUnknownMembers(record, of: stored)
      if record.value.count > count, let error = limitViolation(of: record.stored, key: record.key) { throw error }
    }
    let new = record.stored
    try trigger.trigger.willChange(
      TriggeredChange(
        collection: names[collection], key: record.key, old: old?.stored(trigger.coder.schemaVersion), new: new, coder: trigger.coder),
      in: &self)
    return record
  }

  /// Gives the trigger of a tracked collection its turn before a record is deleted.
  private mutating func trackDeletion(of key: RecordKey, in collection: Int) throws(RepositoryError) {
    guard let trigger = triggers[collection], origin != .remote, let old = collections[collection].records[key] else { return }
    try trigger.trigger.willChange(
      TriggeredChange(
        collection: names[collection], key: key, old: old.stored(trigger.coder.schemaVersion), new: nil, coder: trigger.coder), in: &self)
  }

  /// Replaces a record by what migrations have made of it, unless it was changed since.
  ///
  /// It keeps its revision, because it means the same as before. Only where processes follow each other by revision does it get a new one.
  private mutating func rewrite(_ migrated: MigratedRecord, in collection: Int) throws(RepositoryError) {
    let record = migrated.record
    guard let old = collections[collection].records[record.key], old.revision == migrated.old.revision,
      old.schemaVersion == migrated.old.schemaVersion
    else { return }
    try checkVersion(record.schemaVersion, of: collection)
    try beginVersion(record.schemaVersion, of: collection)
    let kept = core.options.access == .shared ? revision : old.revision
    try upsert(record.slot(at: kept, sameMeaning: old.sameMeaning.lowerBound...revision), as: record.stored, in: collection)
  }

  /// Deletes the record of a key, leaving a tombstone.
  /// - Returns: Whether there was one.
  mutating func delete(
    _ key: RecordKey, in collection: Int, schemaVersion: Int, expecting: Expectation = .anything
  ) throws(RepositoryError) -> Bool {
    try checkVersion(schemaVersion, of: collection)
    if case .anything = expecting {} else { try expecting.check(collections[collection].records[key], key: key) }
    try trackDeletion(of: key, in: collection)
    return remove(key, in: collection, schemaVersion: schemaVersion)
  }

  /// Replaces all records of a collection; of two replacements with one key the last one holds.
  private mutating func replaceAll(
    in collection: Int, with replacements: [EncodedRecord], schemaVersion: Int, ifDecodableBy coder: (any AnyRecordCoder)?
  ) throws(RepositoryError) {
    try checkVersion(schemaVersion, of: collection)
    try coder?.checkDecodable(collections[collection].records)
    if !replacements.isEmpty { try beginVersion(schemaVersion, of: collection) }
    var last: [RecordKey: EncodedRecord] = [:]
    for record in replacements { last[record.key] = record }
    for slot in collections[collection].records.ordered() where last[slot.key] == nil {
      try trackDeletion(of: slot.key, in: collection)
      remove(slot.key, in: collection, schemaVersion: schemaVersion)
    }
    for record in last.values.sorted(by: { $0.key < $1.key }) {
      let record = try tracked(record, in: collection)
      try upsert(record.slot(at: revision), as: record.stored, in: collection)
    }
  }

  /// Inserts a record, or replaces the one with its key: every value that a commit writes passes here.
  /// - Throws: as ``RecordLimit/checkReadableForm(of:key:)``, with nothing changed.
  mutating func upsert(_ slot: RecordSlot, as stored: StoredValue, in collection: Int) throws(RepositoryError) {
    try RecordLimit.checkReadableForm(of: stored, key: slot.key)
    let old = collections[collection].upsert(slot, isContested: &isContested)
    size.add(key: slot.key, value: stored.json)
    records.append(
      StoredRecord(
        collection: names[collection], key: slot.key, revision: slot.revision, schemaVersion: stored.schemaVersion, value: stored.json))
    changes.append(RecordChange(collection: collection, key: slot.key, revision: revision, origin: origin, old: old, new: slot))
  }

  /// Removes a record, leaving a tombstone of the version of a schema, or of 1.
  /// - Returns: Whether there was a record.
  @discardableResult mutating func remove(_ key: RecordKey, in collection: Int, schemaVersion: Int) -> Bool {
    guard let old = collections[collection].remove(key) else { return false }
    size.add(key: key, value: nil)
    records.append(
      StoredRecord(collection: names[collection], key: key, revision: revision, schemaVersion: schemaVersion, value: nil))
    changes.append(RecordChange(collection: collection, key: key, revision: revision, origin: origin, old: old, new: nil))
    return true
  }

  /// Stages a tombstone of a record that is not there, for readers that resume.
  mutating func noteDeletion(of key: RecordKey, in collection: Int) {
    size.add(key: key, value: nil)
    records.append(StoredRecord(collection: names[collection], key: key, revision: revision, schemaVersion: 1, value: nil))
    changes.append(RecordChange(collection: collection, key: key, revision: revision, origin: origin, old: nil, new: nil))
  }

  /// Refuses to write an older version into a collection to which another process has brought a newer one: it could not be read back there
  /// without a migration backwards, and there is none.
  /// - Throws: `.newerSchema`.
  private func checkVersion(_ version: Int, of collection: Int) throws(RepositoryError) {
    // In a tracked collection newer records of other devices may stand beside older ones; each is looked at by itself.
    guard triggers[collection] == nil else { return }
    let newest = collections[collection].records.newestSchemaVersion
    if newest > version { throw .newerRecords(in: names[collection], found: newest, supported: version) }
  }

  /// Has the store copied before the first record of a newer version than any that a collection holds.
  /// - Throws: what prevented the copy.
  private func beginVersion(_ version: Int, of collection: Int) throws(RepositoryError) {
    if collections[collection].records.newestSchemaVersion < version { try core.copyStore(before: version, of: collection) }
  }

  // MARK: Taking back

  /// The pending state between two writes, or before a part of one.
  struct Savepoint {
    /// `nil` where only writes follow that check everything before they change anything.
    fileprivate var collections: [CollectionState]?
    fileprivate let size: WriteSize
    fileprivate let commit: UInt64
    let recordCount: Int

    /// Whether what was staged before can be committed by itself.
    var canSplit: Bool { recordCount > 0 && collections != nil }
  }

  func savepoint() -> Savepoint { Savepoint(collections: collections, size: size, commit: commit, recordCount: records.count) }

  /// Returns the savepoint before a write; without the collections if nothing can fail once the write has changed them.
  ///
  /// The collections of a savepoint are copied when they are changed: all the way down a tree, for each write of a group.
  func savepoint(before operation: WriteOperation) -> Savepoint {
    var savepoint = savepoint()
    if let collection = operation.collectionOfOneChange, !collections[collection].indexes.areUnique { savepoint.collections = nil }
    return savepoint
  }

  /// Takes back what was staged since a savepoint.
  mutating func restore(_ savepoint: Savepoint) {
    isContested = false
    guard records.count > savepoint.recordCount, let before = savepoint.collections else { return }
    collections = before
    size = savepoint.size
    records.removeLast(records.count - savepoint.recordCount)
    changes.removeLast(changes.count - savepoint.recordCount)
  }

  /// Splits off what was staged before a savepoint between two writes, as a state that must be committed first.
  mutating func split(at savepoint: Savepoint) -> PendingState {
    var head = self
    head.restore(savepoint)
    head.commit = savepoint.commit
    head.endedCount = savepoint.recordCount
    records.removeFirst(savepoint.recordCount)
    changes.removeFirst(savepoint.recordCount)
    endedCount -= savepoint.recordCount
    committed = savepoint.commit
    size.subtract(savepoint.size)
    return head
  }

  // MARK: Committing

  /// Returns the commits of the group, for the backend.
  ///
  /// Only for a state that is not empty.
  func writeBatch(_ durability: Durability) -> WriteBatch {
    WriteBatch(records: records, commits: (committed + 1)...max(commit, committed + 1), durability: durability)
  }
}

/// Unique indexes, over the records that a write has staged.
extension PendingState {
  /// - Throws: `.uniqueViolation` for a record that these changes have put where another one is.
  func checkUniqueness(_ changes: ArraySlice<RecordChange>) throws(RepositoryError) {
    for (collection, new, old) in uniqueChanges(in: changes) {
      if let violation = collections[collection].indexes.violation(of: new, replacing: old) { throw violation }
    }
  }

  /// Returns the records of collections with a unique index that some changes have written, each as it is now and as it was before them.
  func uniqueChanges(in changes: ArraySlice<RecordChange>) -> [(collection: Int, new: RecordSlot, old: RecordSlot?)] {
    var before: [Int: [RecordKey: RecordSlot?]] = [:]
    for change in changes where collections[change.collection].indexes.areUnique {
      if before[change.collection]?[change.key] == nil { before[change.collection, default: [:]][change.key] = .some(change.old) }
    }
    return before.flatMap { collection, records in
      records.compactMap { key, old in collections[collection].records[key].map { (collection, $0, old) } }
    }
  }
}
