internal import Foundation

/// The state that the next commit will publish, and the records it will write: what writes are staged against.
///
/// Lives only while a batch is gathered, on the store's executor. Every write of a batch takes a commit number of its own, so that
/// compare-and-set holds between writes that share one sync.
struct StagedBatch {
  private(set) var collections: [CollectionState]
  private(set) var records: [StoredRecord] = []
  /// What each of ``records`` changed, one for one.
  private(set) var changes: [RecordChange] = []
  /// Where the write being staged comes from.
  var origin = ChangeOrigin.thisProcess
  /// Whether something staged by the present write may be what a unique index refuses: it met another record with its values.
  private var isContested = false
  /// How much there is to write.
  private(set) var size = WriteSize()
  private let names: [String]
  private var committed: UInt64
  private var commit: UInt64
  private var recordCountAtLastCommit = 0
  /// Who copies the store before the first record of a newer schema version is staged.
  private let queue: CommitQueue

  init(_ state: StoreState, for queue: CommitQueue) {
    self.queue = queue
    collections = state.collections
    names = state.names
    committed = state.commit
    commit = state.commit
  }

  /// Moves the contents out, so that they have one owner and change in place.
  mutating func take() -> StagedBatch {
    let taken = self
    (collections, records, changes) = ([], [], [])
    return taken
  }

  var isEmpty: Bool { records.isEmpty }
  var recordCount: Int { records.count }
  /// The revision of the write being staged.
  var revision: Revision { Revision(commit + 1) }
  /// The newest commit before the write being staged.
  var latest: Revision { Revision(commit) }

  /// The commits of the batch, for the backend.
  ///
  /// Only for a batch that is not empty.
  func writeBatch(_ durability: Durability) -> WriteBatch {
    WriteBatch(records: records, commits: (committed + 1)...max(commit, committed + 1), durability: durability)
  }

  /// The state after the commit of this batch.
  func applied(to state: StoreState) -> StoreState {
    var state = state
    state.collections = collections
    for index in state.collections.indices { state.collections[index].rebaseIfWorthwhile() }
    state.commit = commit
    return state
  }

  /// Ends one write: if it wrote anything, the next one gets the next number.
  ///
  /// Uniqueness is looked at here and not record by record, so that a transaction may pass through states that would not do.
  /// - Throws: `.uniqueViolation`, and then the write must be taken back.
  mutating func endCommit() throws(RepositoryError) {
    guard records.count > recordCountAtLastCommit else { return }
    if isContested { try checkUniqueness(changes[recordCountAtLastCommit...]) }
    isContested = false
    recordCountAtLastCommit = records.count
    commit += 1
  }

  struct Savepoint {
    fileprivate let collections: [CollectionState]
    fileprivate let size: WriteSize
    fileprivate let commit: UInt64
    let recordCount: Int
  }

  func savepoint() -> Savepoint { Savepoint(collections: collections, size: size, commit: commit, recordCount: records.count) }

  mutating func restore(_ savepoint: Savepoint) {
    guard records.count > savepoint.recordCount else { return }
    collections = savepoint.collections
    size = savepoint.size
    records.removeLast(records.count - savepoint.recordCount)
    changes.removeLast(changes.count - savepoint.recordCount)
  }

  /// Takes off what was staged before a savepoint between two writes, as a batch that must be committed first.
  mutating func cut(at savepoint: Savepoint) -> StagedBatch {
    var head = self
    head.restore(savepoint)
    head.commit = savepoint.commit
    head.recordCountAtLastCommit = savepoint.recordCount
    records.removeFirst(savepoint.recordCount)
    changes.removeFirst(savepoint.recordCount)
    recordCountAtLastCommit -= savepoint.recordCount
    committed = savepoint.commit
    size.bytes -= savepoint.size.bytes
    size.records -= savepoint.size.records
    return head
  }
}

/// What a record must be like for a write to go through.
enum Expectation: Sendable {
  case anything
  case absent
  case revision(Revision)

  /// - Throws: `.alreadyExists`, `.revisionMismatch`.
  func check(_ slot: RecordSlot?, key: RecordKey) throws(RepositoryError) {
    switch self {
    case .anything: return
    case .absent: if slot != nil { throw RepositoryError(.alreadyExists, "there is a record with this id", keyHash: key.hash) }
    case .revision(let expected):
      let found = slot?.revision ?? .zero
      // Somebody who read a record before a migration rewrote it knows what it means.
      if found != expected, slot?.isUnchanged(since: expected) != true {
        throw RepositoryError(.revisionMismatch, "expected revision \(expected), found \(found)", keyHash: key.hash)
      }
    }
  }
}

extension StagedBatch {
  /// Puts a record in place.
  mutating func upsert(_ record: EncodedRecord, in collection: Int, expecting: Expectation = .anything) throws(RepositoryError) {
    try checkVersion(record.schemaVersion, of: collection)
    if case .anything = expecting {} else { try expecting.check(collections[collection].records[record.key], key: record.key) }
    try beginVersion(record.schemaVersion, of: collection)
    put(record, record.slot(at: revision), in: collection)
  }

  /// Puts what migrations made of a record in its place.
  ///
  /// It keeps its revision, because it means the same as before. Only where processes follow each other by revision does it get a new one.
  mutating func rewrite(_ record: EncodedRecord, of old: RecordSlot, in collection: Int) throws(RepositoryError) {
    try checkVersion(record.schemaVersion, of: collection)
    try beginVersion(record.schemaVersion, of: collection)
    let kept = queue.options.access == .shared ? revision : old.revision
    put(record, record.slot(at: kept, sameMeaning: old.sameMeaning.lowerBound...revision), in: collection)
  }

  private mutating func put(_ record: EncodedRecord, _ slot: RecordSlot, in collection: Int) {
    let old = collections[collection].upsert(slot, isContested: &isContested)
    append(record.key, schemaVersion: record.schemaVersion, value: record.value, collection, old: old, new: slot)
  }

  /// Takes a record out, leaving a tombstone; `false` when there was none.
  mutating func delete(
    _ key: RecordKey, in collection: Int, schemaVersion: Int, expecting: Expectation = .anything
  ) throws(RepositoryError) -> Bool {
    try checkVersion(schemaVersion, of: collection)
    if case .anything = expecting {} else { try expecting.check(collections[collection].records[key], key: key) }
    guard let old = collections[collection].remove(key) else { return false }
    append(key, schemaVersion: schemaVersion, value: nil, collection, old: old, new: nil)
    return true
  }

  /// Puts these records in the place of all records of a collection; of two with one key the last one holds.
  mutating func replaceAll(
    in collection: Int, with replacements: [EncodedRecord], schemaVersion: Int
  ) throws(RepositoryError) {
    try checkVersion(schemaVersion, of: collection)
    if !replacements.isEmpty { try beginVersion(schemaVersion, of: collection) }
    var last: [RecordKey: EncodedRecord] = [:]
    for record in replacements { last[record.key] = record }
    for slot in collections[collection].records.ordered() where last[slot.key] == nil {
      let old = collections[collection].remove(slot.key)
      append(slot.key, schemaVersion: schemaVersion, value: nil, collection, old: old, new: nil)
    }
    for record in last.values.sorted(by: { $0.key < $1.key }) {
      put(record, record.slot(at: revision), in: collection)
    }
  }

  /// Refuses to write an older version into a collection to which another process has brought a newer one: it could not be read back there
  /// without a step that nobody has written.
  /// - Throws: `.newerSchema`.
  func checkVersion(_ version: Int, of collection: Int) throws(RepositoryError) {
    let newest = collections[collection].records.newestSchemaVersion
    if newest > version { throw .newerRecords(in: names[collection], found: newest, supported: version) }
  }

  /// Has the store copied before the first record of a newer version than any that a collection holds.
  /// - Throws: what prevented the copy.
  private func beginVersion(_ version: Int, of collection: Int) throws(RepositoryError) {
    guard collections[collection].records.newestSchemaVersion < version else { return }
    try queue.copyStore(before: version, of: collection)
  }

  private mutating func append(
    _ key: RecordKey, schemaVersion: Int, value: Data?, _ collection: Int, old: RecordSlot?, new: RecordSlot?
  ) {
    size.add(key: key, value: value)
    records.append(
      StoredRecord(
        collection: names[collection], key: key, revision: new?.revision ?? revision, schemaVersion: schemaVersion, value: value))
    changes.append(RecordChange(collection: collection, key: key, revision: revision, origin: origin, old: old, new: new))
  }

  /// - Throws: `.uniqueViolation` for a record that these changes have put where another one is.
  private func checkUniqueness(_ changes: ArraySlice<RecordChange>) throws(RepositoryError) {
    var before: [RecordAddressInBatch: RecordSlot?] = [:]
    for change in changes where collections[change.collection].indexes.areUnique {
      let address = RecordAddressInBatch(collection: change.collection, key: change.key)
      if before[address] == nil { before[address] = .some(change.old) }
    }
    for (address, old) in before {
      guard let new = collections[address.collection].records[address.key] else { continue }
      if let violation = collections[address.collection].indexes.violation(of: new, replacing: old) { throw violation }
    }
  }

  private struct RecordAddressInBatch: Hashable {
    let collection: Int
    let key: RecordKey
  }
}
