internal import Foundation
internal import Synchronization

/// A state in the making: the collections that the next commit will publish, and the records that it will write.
///
/// Lives only while a group of writes is staged, on the store's executor. Every write of a group takes a commit number of its own, so that
/// compare-and-set holds between writes that share one sync.
package struct PendingState {
  private(set) var collections: [CollectionState]
  private(set) var records: [StoredRecord] = []
  /// Changes that ``records`` make, one for each.
  private(set) var changes: [RecordChange] = []
  /// Size of the records to be written.
  private(set) var size = WriteSize()
  /// Origin of the write that is being staged.
  private var origin = ChangeOrigin.thisProcess
  /// Group number that a trigger has given to a write, with that write's commit.
  ///
  /// See ``groupOfWrite``.
  private var group: (commit: UInt64, number: UInt64)?
  /// True if the present write has put values into a unique index that another record has.
  ///
  /// They are checked when the write ends.
  private(set) var isContested = false
  let names: [String]
  /// Triggers and coders of tracked collections (collections with a trigger), by position.
  let triggers: [Int: CollectionTrigger]
  /// Newest commit before this group of writes.
  private var committed: UInt64
  /// Commit number of the last write that has ended.
  private var commit: UInt64
  /// Number of staged records of the writes that have ended.
  private(set) var endedCount = 0
  /// Store of the pending state, which copies itself to a file before the first record of a newer schema version is staged.
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
    // An array with two owners is copied whole at its first change.
    (collections, records, changes) = ([], [], [])
    return moved
  }

  var isEmpty: Bool { records.isEmpty }
  var recordCount: Int { records.count }
  /// Revision that the records of the present write get.
  package var revision: Revision { Revision(commit + 1) }
  /// Newest commit before the present write.
  var latest: Revision { Revision(commit) }

  /// Number that a trigger has given to the present write, or `nil` if none has yet.
  ///
  /// All records of a write share it.
  package var groupOfWrite: UInt64? {
    // The number of an earlier write does not count, so nothing needs a reset between writes.
    get { group.flatMap { $0.commit == commit ? $0.number : nil } }
    set { group = newValue.map { (commit, $0) } }
  }

  /// Marks the present write as one that stores values of another device.
  mutating func beginStored() { origin = .remote }

  /// Stages one write, or takes back its changes if it fails.
  mutating func perform(_ operation: WriteOperation, from savepoint: Savepoint) -> PendingWrite.Outcome {
    origin = operation.origin
    do throws(RepositoryError) {
      switch operation {
      case .put(let record, let collection, let expectation):
        try put(record, in: collection, expecting: expectation)
      case .putAll(let records, let collection):
        // Only if this write is the larger part: an exact reservation for each of many small writes would copy the whole array each time.
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
      // A write of nothing takes no commit number, so that commit numbers have no gaps.
      guard count > 0 else { return .success(WriteReceipt(revision: latest, recordCount: 0)) }
      // Once per write and not per record, so that a transaction may violate uniqueness temporarily.
      // A record of another device must arrive even if its values are taken here, or devices would differ for ever.
      if isContested, origin != .remote { try checkUniqueness(changes[endedCount...]) }
      isContested = false
      // The next write of the group gets a commit number of its own.
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
    // After the other checks, because this may copy the whole store to a file.
    try beginVersion(record.schemaVersion, of: collection)
    let record = try tracked(record, in: collection)
    try upsert(record.slot(at: revision), as: record.stored, in: collection)
  }

  /// Returns the record to store for a written one, and runs the trigger of a tracked collection.
  ///
  /// In a tracked collection the record keeps the members that the type does not read.
  private mutating func tracked(_ record: EncodedRecord, in collection: Int) throws(RepositoryError) -> EncodedRecord {
    // The trigger would queue a change of another device to be sent back.
    guard let trigger = triggers[collection], origin != .remote else { return record }
    let old = collections[collection].records[record.key]
    // An edit here would lose members of the newer record that this version cannot read.
    if let old, old.schemaVersion > record.schemaVersion {
      throw .newerRecords(in: names[collection], found: old.schemaVersion, supported: record.schemaVersion, key: record.key)
    }
    var record = record
    if let stored = old?.stored(trigger.coder.schemaVersion) {
      let count = record.value.count
      record = trigger.coder.keepingUnknownMembers(record, of: stored)
      // The added members may take the record over a limit that its caller has checked.
      if record.value.count > count, let error = limitViolation(of: record.stored, key: record.key) { throw error }
    }
    let new = record.stored
    try trigger.trigger.willChange(
      TriggeredChange(
        collection: names[collection], key: record.key, old: old?.stored(trigger.coder.schemaVersion), new: new, coder: trigger.coder),
      in: &self)
    return record
  }

  /// Runs the trigger of a tracked collection before a record is deleted.
  private mutating func trackDeletion(of key: RecordKey, in collection: Int) throws(RepositoryError) {
    guard let trigger = triggers[collection], origin != .remote, let old = collections[collection].records[key] else { return }
    try trigger.trigger.willChange(
      TriggeredChange(
        collection: names[collection], key: key, old: old.stored(trigger.coder.schemaVersion), new: nil, coder: trigger.coder), in: &self)
  }

  /// Replaces a record by its migrated form, unless it was changed since.
  ///
  /// The record keeps its revision, because its meaning stays the same. In a shared store it gets a new one, because processes follow each
  /// other by revision.
  private mutating func rewrite(_ migrated: MigratedRecord, in collection: Int) throws(RepositoryError) {
    let record = migrated.record
    // A write that came after the migration read the record wins.
    guard let old = collections[collection].records[record.key], old.revision == migrated.old.revision,
      old.schemaVersion == migrated.old.schemaVersion
    else { return }
    try checkVersion(record.schemaVersion, of: collection)
    try beginVersion(record.schemaVersion, of: collection)
    let kept = core.options.access == .shared ? revision : old.revision
    // Expectations of every revision since the last change of meaning must hold, also that of this rewrite.
    try upsert(record.slot(at: kept, sameMeaning: old.sameMeaning.lowerBound...revision), as: record.stored, in: collection)
  }

  /// Deletes the record of a key, leaving a tombstone.
  /// - Returns: Whether there was a record.
  mutating func delete(
    _ key: RecordKey, in collection: Int, schemaVersion: Int, expecting: Expectation = .anything
  ) throws(RepositoryError) -> Bool {
    try checkVersion(schemaVersion, of: collection)
    if case .anything = expecting {} else { try expecting.check(collections[collection].records[key], key: key) }
    try trackDeletion(of: key, in: collection)
    return remove(key, in: collection, schemaVersion: schemaVersion)
  }

  /// Replaces all records of a collection.
  ///
  /// Of two replacements with one key, the last one counts.
  private mutating func replaceAll(
    in collection: Int, with replacements: [EncodedRecord], schemaVersion: Int, ifDecodableBy coder: (any AnyRecordCoder)?
  ) throws(RepositoryError) {
    try checkVersion(schemaVersion, of: collection)
    // Before any change: records that do not decode must not be deleted by code that could not read them.
    try coder?.checkDecodable(collections[collection].records)
    // Deletions alone write no record of the newer version, so they need no copy.
    if !replacements.isEmpty { try beginVersion(schemaVersion, of: collection) }
    var last: [RecordKey: EncodedRecord] = [:]
    for record in replacements { last[record.key] = record }
    for slot in collections[collection].records.ordered() where last[slot.key] == nil {
      try trackDeletion(of: slot.key, in: collection)
      remove(slot.key, in: collection, schemaVersion: schemaVersion)
    }
    // The order of a dictionary differs between runs. In key order, equal calls write equal batches.
    for record in last.values.sorted(by: { $0.key < $1.key }) {
      let record = try tracked(record, in: collection)
      try upsert(record.slot(at: revision), as: record.stored, in: collection)
    }
  }

  /// Inserts a record, or replaces the one with its key.
  ///
  /// Every value that a commit writes passes here.
  /// - Throws: as ``RecordLimit/checkReadableForm(of:key:)``, with nothing changed.
  mutating func upsert(_ slot: RecordSlot, as stored: StoredValue, in collection: Int) throws(RepositoryError) {
    // First, so that a refusal changes nothing. One value with a line feed would make a whole file unreadable.
    try RecordLimit.checkReadableForm(of: stored, key: slot.key)
    let old = collections[collection].upsert(slot, isContested: &isContested)
    size.add(key: slot.key, value: stored.json)
    records.append(
      StoredRecord(
        collection: names[collection], key: slot.key, revision: slot.revision, schemaVersion: stored.schemaVersion, value: stored.json))
    changes.append(RecordChange(collection: collection, key: slot.key, revision: revision, origin: origin, old: old, new: slot))
  }

  /// Removes a record, leaving a tombstone with a schema version.
  /// - Returns: Whether there was a record.
  @discardableResult mutating func remove(_ key: RecordKey, in collection: Int, schemaVersion: Int) -> Bool {
    guard let old = collections[collection].remove(key) else { return false }
    size.add(key: key, value: nil)
    records.append(
      StoredRecord(collection: names[collection], key: key, revision: revision, schemaVersion: schemaVersion, value: nil))
    changes.append(RecordChange(collection: collection, key: key, revision: revision, origin: origin, old: old, new: nil))
    return true
  }

  /// Stages a tombstone for an absent record, so that readers that resume from an older commit receive the deletion.
  mutating func noteDeletion(of key: RecordKey, in collection: Int) {
    size.add(key: key, value: nil)
    records.append(StoredRecord(collection: names[collection], key: key, revision: revision, schemaVersion: 1, value: nil))
    changes.append(RecordChange(collection: collection, key: key, revision: revision, origin: origin, old: nil, new: nil))
  }

  /// Refuses to write an older schema version into a collection that another process has brought to a newer one.
  ///
  /// The older program cannot read the newer records that it would replace, because no migration leads backwards.
  /// - Throws: `.newerSchema`.
  private func checkVersion(_ version: Int, of collection: Int) throws(RepositoryError) {
    // In a tracked collection, newer records of other devices lie beside older ones. `tracked` checks each record by itself.
    guard triggers[collection] == nil else { return }
    let newest = collections[collection].records.newestSchemaVersion
    if newest > version { throw .newerRecords(in: names[collection], found: newest, supported: version) }
  }

  /// Copies the store to a file before a collection gets its first record of a newer schema version.
  /// - Throws: The error that prevented the copy.
  private func beginVersion(_ version: Int, of collection: Int) throws(RepositoryError) {
    if collections[collection].records.newestSchemaVersion < version { try core.copyStore(before: version, of: collection) }
  }

  // MARK: Taking back

  /// A point between two writes, or within one, to which the pending state can return.
  struct Savepoint {
    /// Collections at the savepoint, or `nil` if only writes follow that check everything before they change anything.
    fileprivate var collections: [CollectionState]?
    fileprivate let size: WriteSize
    fileprivate let commit: UInt64
    let recordCount: Int

    /// True if the writes before the savepoint can be committed by themselves.
    var canSplit: Bool { recordCount > 0 && collections != nil }
  }

  func savepoint() -> Savepoint { Savepoint(collections: collections, size: size, commit: commit, recordCount: records.count) }

  /// Returns the savepoint before a write, without the collections if the write cannot fail after it has changed them.
  ///
  /// A savepoint with collections makes every write of a group copy the nodes of a tree that it changes, down to the leaf.
  func savepoint(before operation: WriteOperation) -> Savepoint {
    var savepoint = savepoint()
    if let collection = operation.collectionOfOneChange, !collections[collection].indexes.areUnique { savepoint.collections = nil }
    return savepoint
  }

  /// Takes back all staged changes since a savepoint.
  mutating func restore(_ savepoint: Savepoint) {
    // Also if nothing was staged: an equal value that the failed write met must not cause a check of the next write.
    isContested = false
    guard records.count > savepoint.recordCount, let before = savepoint.collections else { return }
    collections = before
    size = savepoint.size
    records.removeLast(records.count - savepoint.recordCount)
    changes.removeLast(changes.count - savepoint.recordCount)
  }

  /// Splits off the writes before a savepoint, and returns them as a state that must be committed first.
  mutating func split(at savepoint: Savepoint) -> PendingState {
    var head = self
    head.restore(savepoint)
    head.commit = savepoint.commit
    head.endedCount = savepoint.recordCount
    records.removeFirst(savepoint.recordCount)
    changes.removeFirst(savepoint.recordCount)
    endedCount -= savepoint.recordCount
    // The backend gets the two parts as two batches, whose commit numbers must follow each other.
    committed = savepoint.commit
    size.subtract(savepoint.size)
    return head
  }

  // MARK: Committing

  /// Returns the staged records and their commit numbers as a batch for the backend.
  ///
  /// Only for a state that is not empty.
  func writeBatch(_ durability: Durability) -> WriteBatch {
    WriteBatch(records: records, commits: (committed + 1)...max(commit, committed + 1), durability: durability)
  }
}

/// Checks of unique indexes over the records that a write has staged.
extension PendingState {
  /// Checks that no staged record has the values of another record in a unique index.
  /// - Throws: `.uniqueViolation` for the first record that has such values.
  func checkUniqueness(_ changes: ArraySlice<RecordChange>) throws(RepositoryError) {
    for (collection, new, old) in uniqueChanges(in: changes) {
      if let violation = collections[collection].indexes.violation(of: new, replacing: old) { throw violation }
    }
  }

  /// Returns the changed records of collections with a unique index, each as it is now and as it was before the changes.
  func uniqueChanges(in changes: ArraySlice<RecordChange>) -> [(collection: Int, new: RecordSlot, old: RecordSlot?)] {
    var before: [Int: [RecordKey: RecordSlot?]] = [:]
    for change in changes where collections[change.collection].indexes.areUnique {
      // Only the first change of a record has its value from before the write.
      if before[change.collection]?[change.key] == nil { before[change.collection, default: [:]][change.key] = .some(change.old) }
    }
    return before.flatMap { collection, records in
      records.compactMap { key, old in collections[collection].records[key].map { (collection, $0, old) } }
    }
  }
}
