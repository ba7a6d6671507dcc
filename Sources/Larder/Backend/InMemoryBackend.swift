public import Foundation
internal import Synchronization

/// A backend that keeps a store in memory only, for tests, previews, and values that are not worth a file.
///
/// A store in memory gives every guarantee of a commit except durability: its records are lost when the `InMemoryBackend` is released.
///
/// `InMemoryBackend` is a ``PagingBackend``, so that a test can run with ``Residency/onDisk(cache:)``. That residency saves no memory here,
/// because the backend itself holds every record.
public final class InMemoryBackend: PagingBackend {
  private struct State: Sendable {
    var records: [RecordAddress: StoredRecord] = [:]
    var indexes: [StoredIndexID: MemoryIndex] = [:]
    var commit = Revision.zero
    var isOpen = false
    var isReadOnly = false
    var wasOpened = false
    var tombstoneLimit = 0
    var tombstoneCount = 0
    /// Revision of the newest deletion whose tombstone was removed.
    var tombstoneHorizon = Revision.zero
    let storeID = UUID()

    var recordCount: Int { records.count - tombstoneCount }

    mutating func put(_ record: StoredRecord) {
      let old = records.updateValue(record, forKey: record.address)
      // A tombstone that replaces a tombstone must count once in `tombstoneCount`.
      if let old, old.value == nil { tombstoneCount -= 1 }
      if record.value == nil { tombstoneCount += 1 }
    }

    /// Applies the edits of a batch, and drops each index of a changed collection that the batch does not keep up to date.
    mutating func editIndexes(_ batch: WriteBatch) {
      let changed = Set(batch.records.map(\.collection))
      for id in indexes.keys where changed.contains(id.collection) && !batch.indexes.contains(id) { indexes[id] = nil }
      for edit in batch.indexEdits {
        guard var index = indexes.removeValue(forKey: edit.index) else { continue }
        // An edit that does not fit shows that the index has other keys than the records, so the index stays removed.
        if index.apply(edit) { indexes[edit.index] = index }
      }
    }

    /// Passes all records and tombstones to `visit`, sorted by collection and key.
    func read(_ visit: (StoredRecord) -> Void) -> OpenReport {
      for record in records.values.sorted(by: { $0.address < $1.address }) { visit(record) }
      return OpenReport(
        storeID: storeID, commit: commit, isNew: !wasOpened, recordCount: recordCount, tombstoneHorizon: tombstoneHorizon)
    }

    /// Removes the oldest tombstones until at most `tombstoneLimit` of them are left.
    mutating func forgetOldTombstones() {
      guard tombstoneCount > tombstoneLimit else { return }
      let oldestFirst = records.values.filter { $0.value == nil }.sorted { $0.revision < $1.revision }
      tombstoneCount = tombstoneLimit
      for tombstone in oldestFirst.dropLast(tombstoneLimit) {
        records[tombstone.address] = nil
        // `tombstoneHorizon` is overwritten for each removed tombstone, so that it ends at the newest deletion whose tombstone was removed.
        tombstoneHorizon = tombstone.revision
      }
    }
  }
  private let state = Mutex(State())

  /// Creates an empty backend.
  ///
  /// The backend keeps its records after its store is closed, so that a test can open the same backend again.
  public init() {}

  /// Creates a backend that is already open and holds the given records.
  init(open records: [StoredRecord], at commit: Revision, tombstoneLimit: Int) {
    state.withLock { state in
      for record in records { state.put(record) }
      (state.commit, state.isOpen, state.wasOpened, state.tombstoneLimit) = (commit, true, true, tombstoneLimit)
    }
  }

  /// Unique identifier of the store.
  var storeID: UUID { state.withLock { $0.storeID } }

  /// The word "memory", which error messages print in place of a file name.
  public var name: String { "memory" }

  /// Whether other processes may commit: always `false`, since no other process can reach the memory of this process.
  public var hasOtherWriters: Bool { false }

  /// Passes the records and tombstones of earlier commits to `visit`, sorted by collection and key.
  ///
  /// - Throws: `.unsupported` for `.shared` access, `.alreadyOpen` if the backend is open.
  public func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    // `visit` is called without the lock: a `visit` that calls this backend would deadlock.
    return try beginOpening(options).read(visit)
  }

  /// Returns a summary of each collection, and passes the tombstones of earlier commits to `visit`, sorted by collection and key.
  ///
  /// - Throws: The errors of ``open(_:_:)``.
  public func openPaged(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> PagedOpening {
    var summaries: [String: CollectionSummary] = [:]
    let report = try beginOpening(options).read { record in
      guard let value = record.value else { return visit(record) }
      summaries[record.collection] = CollectionSummary(record, value, addedTo: summaries[record.collection])
    }
    return PagedOpening(report: report, collections: Array(summaries.values))
  }

  /// Returns a copy of the newest commit, which shares its memory with this backend until the next commit.
  ///
  /// - Throws: `.closed`.
  public func keepBase() throws(RepositoryError) -> any StoredBase {
    try checkOpen()
    return state.withLock { MemoryBase($0.records, $0.indexes.filter(\.value.isComplete), commit: $0.commit) }
  }

  /// Always `true`.
  public var storesIndexes: Bool { true }

  /// Returns whether an index is complete and fits the records of the newest commit.
  public func holdsIndex(_ index: StoredIndexID) -> Bool { state.withLock { $0.indexes[index]?.isComplete ?? false } }

  /// Adds keys to an index.
  ///
  /// - Throws: `.closed`, `.unsupported` if no index is being built, or for keys that do not ascend.
  public func extendIndex(_ index: StoredIndexID, by keys: [Data], isFirst: Bool) throws(RepositoryError) {
    try changeIndexes { indexes in
      var found = isFirst ? MemoryIndex() : indexes.removeValue(forKey: index)
      if isFirst { indexes[index] = nil }
      guard found?.isComplete == false, found?.append(keys) == true else { return false }
      indexes[index] = found
      return true
    }
  }

  /// Marks an index as complete.
  ///
  /// - Throws: `.closed`, `.unsupported` if there is no such index.
  public func storeBoundaries(_ boundaries: [Data], of index: StoredIndexID) throws(RepositoryError) {
    try changeIndexes { indexes in
      guard indexes[index] != nil else { return false }
      indexes[index]?.boundaries = boundaries
      return true
    }
  }

  /// Removes an index.
  ///
  /// - Throws: `.closed`.
  public func dropIndex(_ index: StoredIndexID) throws(RepositoryError) {
    try changeIndexes { indexes in
      indexes[index] = nil
      return true
    }
  }

  private func changeIndexes(_ body: (inout [StoredIndexID: MemoryIndex]) -> Bool) throws(RepositoryError) {
    try checkOpen()
    guard state.withLock({ body(&$0.indexes) }) else { throw .storesNoIndexes(name) }
  }

  /// Marks the backend as open, and returns its contents.
  private func beginOpening(_ options: StoreOptions) throws(RepositoryError) -> State {
    guard options.access != .shared else { throw RepositoryError(.unsupported, "memory is not shared", file: name) }
    // `isOpen` is checked and set under one lock, so that two concurrent calls of `open` cannot both succeed.
    let opened: State? = state.withLock { state in
      guard !state.isOpen else { return nil }
      let found = state
      state.isOpen = true
      state.isReadOnly = options.access == .readOnly
      state.tombstoneLimit = options.limits.tombstones
      return found
    }
    guard let opened else { throw RepositoryError(.alreadyOpen, "the backend is open", file: name) }
    return opened
  }

  /// Marks the store as existing, so that later opens do not report a new store.
  ///
  /// - Throws: `.closed`.
  public func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport {
    try checkOpen()
    state.withLock { $0.wasOpened = true }
    return report
  }

  /// Adds the batch to the records in memory.
  ///
  /// - Throws: `.closed`, `.unsupported` for a batch that does not follow the newest commit, or if the store was opened `.readOnly`.
  public func commit(_ batch: WriteBatch) throws(RepositoryError) {
    let failure: RepositoryError? = state.withLock { state in
      guard state.isOpen else { return RepositoryError(.closed, file: name) }
      guard !state.isReadOnly else { return RepositoryError(.unsupported, "the store was opened for reading only", file: name) }
      // A gap or an overlap of commit numbers means that the store and its backend disagree about the number of the newest commit.
      guard batch.commits.lowerBound == state.commit.number + 1 else { return .notConsecutive(batch, after: state.commit, file: name) }
      for record in batch.records { state.put(record) }
      state.editIndexes(batch)
      state.commit = Revision(batch.commits.upperBound)
      return nil
    }
    if let failure { throw failure }
  }

  /// Only checks that the backend is open, since no flush can make memory outlive the process.
  public func flush() throws(RepositoryError) { try checkOpen() }

  /// Whether there are more tombstones than twice the tombstone limit plus a thousand.
  public var wantsCheckpoint: Bool { state.withLock { $0.isOpen && $0.tombstoneCount / 2 - 500 > $0.tombstoneLimit } }

  /// Removes the oldest tombstones above the tombstone limit, since a store in memory has no journal to fold into a main file.
  public func checkpoint() throws(RepositoryError) {
    try checkOpen()
    state.withLock { if !$0.isReadOnly { $0.forgetOldTombstones() } }
  }

  private func checkOpen() throws(RepositoryError) {
    guard state.withLock({ $0.isOpen }) else { throw RepositoryError(.closed, file: name) }
  }

  /// Returns the number of records and of tombstones in memory.
  ///
  /// Records in memory have no checksums that `verify` could compare.
  public func verify() -> VerifyReport {
    state.withLock { state in
      VerifyReport(
        commit: state.commit, recordCount: state.recordCount, tombstoneCount: state.tombstoneCount)
    }
  }

  /// Always throws, since a store in memory has no file to copy.
  ///
  /// - Throws: `.unsupported`, or `.closed` if the backend is not open.
  public func backup(to url: URL) throws(RepositoryError) {
    try checkOpen()
    throw RepositoryError(.unsupported, "a store in memory has no file to back up", file: name)
  }

  /// Passes all records and tombstones to `visit`, sorted by collection and key.
  ///
  /// - Throws: `.closed`.
  public func readAll(_ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    try checkOpen()
    // The copy of the state is read without the lock: a `visit` that calls this backend would deadlock.
    var report = state.withLock { $0 }.read(visit)
    // An open store must not be reported as new, so `isNew` is set to `false`: `read` reports a store as new until `recover` has set
    // `wasOpened`. A store opened `.readOnly` never calls `recover`.
    report.isNew = false
    return report
  }

  /// Checks that the store is open, and does nothing else, since memory has no lock to release.
  public func suspend() throws(RepositoryError) { try checkOpen() }

  /// Returns `true`: the store need not read its records again, since no other process can reach the memory of this process.
  public func resume() throws(RepositoryError) -> Bool {
    try checkOpen()
    return true
  }

  /// Closes the store, and keeps every record and tombstone in memory.
  public func abandon() { state.withLock { $0.isOpen = false } }

  /// Closes the store, and removes the oldest tombstones above the tombstone limit.
  ///
  /// The backend keeps the records in memory, so that the next `open` finds them.
  public func close() throws(RepositoryError) {
    state.withLock { state in
      // A store opened `.readOnly` must leave the contents unchanged, its tombstones included.
      if !state.isReadOnly { state.forgetOldTombstones() }
      state.isOpen = false
    }
  }
}

extension CollectionSummary {
  /// Makes the summary of a collection with one more record.
  fileprivate init(_ record: StoredRecord, _ value: Data, addedTo old: CollectionSummary?) {
    let versions = old?.schemaVersions ?? record.schemaVersion...record.schemaVersion
    self.init(
      name: record.collection, recordCount: (old?.recordCount ?? 0) + 1, byteCount: (old?.byteCount ?? 0) + value.count,
      schemaVersions: min(versions.lowerBound, record.schemaVersion)...max(versions.upperBound, record.schemaVersion))
  }
}

/// The keys of an index in an ``InMemoryBackend``.
private struct MemoryIndex: Sendable {
  private(set) var keys: [Data] = []
  var boundaries: [Data]?

  var isComplete: Bool { boundaries != nil }

  /// Adds keys behind the others, and returns false if they do not ascend.
  mutating func append(_ more: [Data]) -> Bool {
    let first = max(keys.count - 1, 0)
    keys += more
    return zip(keys[first...], keys[first...].dropFirst()).allSatisfy { $0.precedes($1) }
  }

  /// Removes one key and adds another, and returns false if the first is missing or the second is there.
  mutating func apply(_ edit: IndexEdit) -> Bool {
    if let removed = edit.removed {
      let position = position(of: removed)
      guard position < keys.count, keys[position] == removed else { return false }
      keys.remove(at: position)
    }
    if let added = edit.added {
      let position = position(of: added)
      guard position == keys.count || keys[position] != added else { return false }
      keys.insert(added, at: position)
    }
    return true
  }

  /// Returns the position of the first key at or after a key.
  func position(of key: Data) -> Int { (0..<keys.count).partitionPoint { !keys[$0].precedes(key) } }
}

/// The records of an ``InMemoryBackend`` as of one commit.
private final class MemoryBase: StoredBase {
  let commit: Revision
  private let records: [RecordAddress: StoredRecord]
  private let indexes: [StoredIndexID: MemoryIndex]
  /// The keys of each collection in order, once a walk has needed them.
  private let sorted = Mutex<[String: [RecordKey]]>([:])

  init(_ records: [RecordAddress: StoredRecord], _ indexes: [StoredIndexID: MemoryIndex], commit: Revision) {
    (self.records, self.indexes, self.commit) = (records, indexes, commit)
  }

  func boundaries(of index: StoredIndexID) throws(RepositoryError) -> [Data] { try stored(index).boundaries ?? [] }

  func indexKeys(of index: StoredIndexID, from lower: Data, below upper: Data?) throws(RepositoryError) -> [Data] {
    let index = try stored(index)
    return Array(index.keys[range(in: index, from: lower, below: upper)])
  }

  func indexKeyCount(of index: StoredIndexID, from lower: Data, below upper: Data?) throws(RepositoryError) -> Int {
    range(in: try stored(index), from: lower, below: upper).count
  }

  private func stored(_ index: StoredIndexID) throws(RepositoryError) -> MemoryIndex {
    guard let found = indexes[index] else { throw .storesNoIndexes("memory") }
    return found
  }

  private func range(in index: MemoryIndex, from lower: Data, below upper: Data?) -> Range<Int> {
    let start = index.position(of: lower)
    return start..<max(start, upper.map(index.position) ?? index.keys.count)
  }

  func records(_ keys: [RecordKey], of collection: String) throws(RepositoryError) -> [StoredRecord?] {
    keys.map { key in
      let record = records[RecordAddress(collection: collection, key: key)]
      return record?.value == nil ? nil : record
    }
  }

  func records(of collection: String, after key: RecordKey?, limit: Int) throws(RepositoryError) -> [StoredRecord] {
    let keys = keys(of: collection)
    let start = key.map { key in (0..<keys.count).partitionPoint { key < keys[$0] } } ?? 0
    var (found, size): ([StoredRecord], Int) = ([], 0)
    for key in keys[start...].prefix(limit) {
      guard let record = records[RecordAddress(collection: collection, key: key)], let value = record.value else { continue }
      size += value.count
      if size > Self.blockSize, !found.isEmpty { break }
      found.append(record)
    }
    return found
  }

  private func keys(of collection: String) -> [RecordKey] {
    sorted.withLock { sorted in
      if let keys = sorted[collection] { return keys }
      let keys = records.values.lazy.filter { $0.collection == collection && $0.value != nil }.map(\.key).sorted()
      sorted[collection] = keys
      return keys
    }
  }

  /// Length of the values after which a block of records ends.
  private static let blockSize = 1 << 20
}

extension RepositoryError {
  /// Returns the error for a batch whose commit numbers do not follow the store's newest commit.
  public static func notConsecutive(_ batch: WriteBatch, after commit: Revision, file: String) -> RepositoryError {
    RepositoryError(.unsupported, "a batch from commit \(batch.commits.lowerBound) cannot follow commit \(commit)", file: file)
  }
}
