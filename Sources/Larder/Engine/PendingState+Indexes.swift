internal import Foundation
internal import Synchronization

/// Indexes in the storage, which a commit changes together with its records.
extension PendingState {
  /// Adds the changes that a record's change makes to the keys of the collection's stored indexes.
  ///
  /// Call it before the record is added to ``records``, and after the indexes of the collection have followed the change.
  mutating func noteIndexEdits(_ change: IndexChange, in collection: Int) {
    guard collections[collection].indexes.holdsStubs else { return }
    for (index, edit) in collections[collection].indexes.storedEdits { note(edit, of: index, upTo: nil) }
    for copy in copies where copy.collection == collection && !copy.isGivenUp {
      guard let edit = StoredEdit(change, collections[collection].indexes.definitions[copy.index], stubs: change.stubs) else {
        copy.giveUp()
        continue
      }
      // The keys behind the last copied one are copied later, as they are then.
      if let end = copy.end { note(edit, of: copy.id, upTo: end) }
    }
  }

  private mutating func note(_ edit: StoredEdit, of index: StoredIndexID, upTo end: Data?) {
    if let before = edit.before, let after = edit.after, before == after { return }
    func key(of entry: IndexEntry) -> Data? {
      let key = IndexKey.bytes(of: entry)
      return end.map { $0.precedes(key) } ?? false ? nil : key
    }
    let (removed, added) = (edit.before.flatMap(key), edit.after.flatMap(key))
    if removed == nil, added == nil { return }
    indexEdits.append((records.count, IndexEdit(index: index, removed: removed, added: added)))
  }

  /// Stored indexes that ``indexEdits`` keeps up to date.
  var storedIndexes: Set<StoredIndexID> {
    // Before its first transaction, a copy has no keys, and the storage may have an old index of its name.
    var stored = Set(copies.lazy.filter { !$0.isGivenUp && $0.end != nil }.map(\.id))
    for collection in collections where collection.indexes.holdsStubs {
      for body in collection.indexes.bodies { if case .stored(let entries) = body { stored.insert(entries.run.id) } }
    }
    return stored
  }
}

/// An index in memory, and the part of it that was copied to the storage.
final class IndexCopy: Sendable {
  let id: StoredIndexID
  let collection: Int
  let index: Int
  private let progress = Mutex(Progress())

  private struct Progress: Sendable {
    var end: Data?
    var count = 0
    var boundaries = [Data()]
    var isGivenUp = false
    /// Number of times that the copy has begun anew.
    var restarts = 0
  }

  init(_ id: StoredIndexID, collection: Int, index: Int) { (self.id, self.collection, self.index) = (id, collection, index) }

  /// The last copied key, or `nil` before the first transaction.
  var end: Data? { progress.withLock { $0.end } }
  var boundaries: [Data] { progress.withLock { $0.boundaries } }
  /// Whether the index stays in memory, because the storage cannot hold the entry of a record.
  var isGivenUp: Bool { progress.withLock { $0.isGivenUp } }

  func giveUp() { progress.withLock { $0.isGivenUp = true } }

  /// Begins the copy anew, at most three times.
  ///
  /// - Returns: False if the copy cannot go on.
  func restart() -> Bool {
    progress.withLock { progress in
      guard progress.end != nil, progress.restarts < 3, !progress.isGivenUp else { return false }
      progress = Progress(restarts: progress.restarts + 1)
      return true
    }
  }

  /// Adds keys that were copied.
  func append(_ keys: [Data]) {
    progress.withLock { progress in
      for key in keys {
        if progress.count > 0, progress.count.isMultiple(of: StoredRun.blockSize) { progress.boundaries.append(key) }
        progress.count += 1
      }
      progress.end = keys.last ?? progress.end ?? Data()
    }
  }
}

/// Checks of unique indexes for the records that a write has staged.
extension PendingState {
  /// Checks that no staged record has the same values as another record in a unique index.
  ///
  /// - Throws: `.uniqueViolation` for the first record that has such values.
  func checkUniqueness(_ changes: ArraySlice<RecordChange>) throws(RepositoryError) {
    for (collection, new, old) in try uniqueChanges(in: changes) {
      if let violation = collections[collection].indexes.violation(of: new, replacing: old) { throw violation }
    }
  }

  /// Returns the changed records of collections with a unique index, each with its value now and its value before the changes.
  func uniqueChanges(
    in changes: ArraySlice<RecordChange>
  ) throws(RepositoryError) -> [(collection: Int, new: RecordSlot, old: RecordSlot?)] {
    var before: [Int: [RecordKey: RecordSlot?]] = [:]
    for change in changes where collections[change.collection].indexes.areUnique {
      // A record may change several times in one write. Only the first change of a record holds its value from before the write.
      if before[change.collection]?[change.key] == nil { before[change.collection, default: [:]][change.key] = .some(change.old) }
    }
    var found: [(collection: Int, new: RecordSlot, old: RecordSlot?)] = []
    for (collection, records) in before {
      for (key, old) in records { if let new = try collections[collection].records[key] { found.append((collection, new, old)) } }
    }
    return found
  }
}
