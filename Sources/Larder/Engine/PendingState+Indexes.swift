internal import Foundation

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

/// Checks of unique indexes for the records that a write has staged.
extension PendingState {
  /// Checks that no record that a write has staged has the same values as another record in a unique index.
  ///
  /// - Throws: `.uniqueViolation` for the first record that has such values. The errors of ``searchUniqueIndexes(of:_:)``.
  mutating func checkUniqueness(_ changes: ArraySlice<RecordChange>) throws(RepositoryError) {
    for (collection, new, old) in try uniqueChanges(in: changes) {
      for index in collections[collection].indexes.uniqueIndexes {
        guard let other = try newDuplicate(of: new, replacing: old, in: index, of: collection) else { continue }
        throw RepositoryError(
          .uniqueViolation, "\(collections[collection].indexes.definitions[index].name) holds these values for the record \(other) already",
          keyHash: new.key.hash)
      }
    }
  }

  /// Takes the unique indexes out of the storage in which values of another device have made two records equal.
  ///
  /// Such a write is not refused, because the records of the two devices would differ for ever. A unique index in the storage has no
  /// duplicates, so that an opening need not read the index to find them.
  /// - Throws: The errors of ``searchUniqueIndexes(of:_:)``.
  mutating func takeOutDuplicates(_ changes: ArraySlice<RecordChange>) throws(RepositoryError) {
    guard changes.contains(where: { collections[$0.collection].indexes.holdsStubs }) else { return }
    for (collection, new, old) in try uniqueChanges(in: changes) {
      for index in collections[collection].indexes.uniqueIndexes {
        let copies = copies.filter { $0.collection == collection && $0.index == index && !$0.isGivenUp }
        var isStored: Bool { if case .stored = collections[collection].indexes.bodies[index] { true } else { false } }
        guard isStored || !copies.isEmpty, try newDuplicate(of: new, replacing: old, in: index, of: collection) != nil else { continue }
        for copy in copies { copy.giveUp() }
        // The search may have built the index.
        if isStored { _ = try buildUniqueIndexes([index], of: collection) }
      }
    }
  }

  /// Returns the key of another record whose values in a unique index a write gave to a record, or `nil` if there is none.
  ///
  /// - Throws: The errors of ``searchUniqueIndexes(of:_:)``.
  mutating func newDuplicate(
    of new: RecordSlot, replacing old: RecordSlot?, in index: Int, of collection: Int
  ) throws(RepositoryError) -> RecordKey? {
    try searchUniqueIndexes(of: collection) { (state) throws(RepositoryError) in
      try state.indexes.newDuplicate(of: new, replacing: old, in: index, among: state.records)
    }
  }

  /// Searches the unique indexes of a collection.
  ///
  /// An index in the storage that was lost or does not fit the records is built in memory, because nothing else can refuse a duplicate.
  /// - Throws: The errors of the search and of building an index.
  mutating func searchUniqueIndexes<Output>(
    of collection: Int, _ search: (CollectionState) throws(RepositoryError) -> Output
  ) throws(RepositoryError) -> Output {
    _ = try buildUniqueIndexes(collections[collection].indexes.lostUniqueIndexes, of: collection)
    do throws(RepositoryError) { return try search(collections[collection]) } catch {
      // The search itself may find that an index does not fit the records.
      guard try buildUniqueIndexes(collections[collection].indexes.lostUniqueIndexes, of: collection) else { throw error }
      return try search(collections[collection])
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
