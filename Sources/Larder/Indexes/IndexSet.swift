internal import Foundation

// Indexes/ holds the indexes of a collection: Ordered/, Geo/ and Text/, on the persistent tree of Tree/.
// Invariant: indexes cover exactly the records of their commit, and are the same on every backend.
// Called by CollectionState (changes), the engine (builds) and QueryRun.

/// The indexes of a collection at one commit, declared and automatic ones, some of which may not be built yet.
///
/// An index set is a value: a copy shares its storage with the original, and a commit changes its own copy. The declarations are stored
/// without the generic type of the records, because a collection is opened with one type only.
struct IndexSet: Sendable {
  /// Declared indexes, followed by the automatic ones.
  var definitions: [IndexDefinition]
  /// Order of record ids, which decides between entries with equal indexed values.
  let keys: KeyOrder
  /// True once a repository has declared the collection's indexes, even if the repository declared no index.
  let areDeclared: Bool
  /// True if the collection has a unique index, which may refuse a write.
  let areUnique: Bool
  /// Count of the queries that decides which automatic index gives up its place, or `nil` before a repository has declared the indexes.
  let automaticQueries: QueryCount?
  var bodies: [IndexBody]
  /// True if the indexes hold stubs of records, because the values stay in the storage.
  private(set) var holdsStubs = false
  /// Positions of the unique indexes that were built or found in the storage, so that each write must be compared with them.
  var enforcedIndexes: Set<Int> = []
  /// Edits of the indexes in the storage that the last call of ``replace(_:with:)`` has made.
  private(set) var storedEdits: [(index: StoredIndexID, edit: StoredEdit)] = []

  /// Creates an empty index set for a collection that no repository has opened.
  init() { self.init([], keys: .bytes, areDeclared: false) }

  /// Creates the indexes that a repository declares, in the state "not built".
  init<Item>(_ declarations: [RepositoryIndex<Item>], _ coder: RecordCoder<Item>) {
    self.init(declarations.map { IndexDefinition($0, coder) }, keys: coder.keys.order, areDeclared: true)
  }

  private init(_ definitions: [IndexDefinition], keys: KeyOrder, areDeclared: Bool) {
    (self.definitions, self.keys, self.areDeclared) = (definitions, keys, areDeclared)
    areUnique = definitions.contains { $0.isUnique }
    automaticQueries = areDeclared ? QueryCount() : nil
    bodies = definitions.map { _ in .absent }
  }

  /// Returns the indexes, none of which is built, for records whose values stay in the storage or in memory.
  func holdingStubs(_ holdsStubs: Bool) -> IndexSet {
    var indexes = self
    indexes.holdsStubs = holdsStubs
    for index in definitions.indices { indexes.definitions[index].holdsStubs = holdsStubs }
    return indexes
  }

  /// True if the indexes need the decoded values of `count` written records soon after the write.
  ///
  /// A unique index reads the decoded values of written records at once. If `FollowedIndex.many` or more changes are pending, a background
  /// thread reads the decoded values. If `needsValues` returns true, the writing task decodes the values, so that the store's executor does
  /// not have to decode them.
  func needsValues(of count: Int) -> Bool {
    // An index that is neither built nor under construction reads no written records, so it needs no decoded values.
    let isFollowed = bodies.indices.contains { index in
      if case .absent = bodies[index] { return false }
      // A write of more records than that removes the automatic indexes.
      return definitions[index].automatic == nil || count <= AutomaticIndex.leastCount
    }
    return isFollowed && (areUnique || count >= FollowedIndex.many)
  }

  /// True if two index sets declare the same indexes in the same order.
  func isSame(as other: Self) -> Bool {
    let (own, others) = (definitions.prefix(declaredCount), other.definitions.prefix(other.declaredCount))
    return own.count == others.count && zip(own, others).allSatisfy { $0.isSame(as: $1) }
  }

  /// True if an index is built, so that queries can use it.
  func isBuilt(_ index: Int) -> Bool { bodies[index].isBuilt }

  /// Returns the content of an index at this commit.
  ///
  /// Cost: the first call after a commit applies the index's pending changes. Later calls return the stored result.
  func body(_ index: Int) -> IndexBody {
    if case .followed(let followed) = bodies[index] { followed.body(definitions[index]) } else { bodies[index] }
  }

  /// Returns the entries of an ordered index in the storage, or `nil` if the index is of another kind or does not fit the records.
  func storedEntries(_ index: Int) -> StoredEntries? {
    if case .stored(let entries) = bodies[index], !entries.run.isUnfit { entries } else { nil }
  }

  /// Returns the positions of the indexes that a storage can hold, with the identity of each.
  ///
  /// Of two indexes with one name, only the first one can be stored.
  func storedIDs(of collection: String) -> [(index: Int, id: StoredIndexID)] {
    var names: Set<String> = []
    return definitions.enumerated().compactMap { index, definition in
      guard let name = definition.storedName, names.insert(name).inserted else { return nil }
      return (index, StoredIndexID(collection: collection, name: name))
    }
  }

  /// Gives up the indexes in the storage that are lost, so that a later query builds them.
  mutating func dropStored(ifLost isLost: (StoredIndexID) -> Bool) {
    for index in bodies.indices {
      if case .stored(let entries) = bodies[index], isLost(entries.run.id) { bodies[index] = .absent }
    }
  }

  /// Gives up every index, and builds the unique ones for other records, because each write reads those.
  ///
  /// - Throws: The errors of ``built(_:over:)``.
  mutating func beginAnew(over records: RecordMap) throws(RepositoryError) {
    bodies = bodies.map { _ in .absent }
    try build(definitions.indices.filter { definitions[$0].isUnique }, from: records)
  }

  /// Returns the entries of an ordered index in memory, or `nil` if the index is of another kind or not built.
  func tree(_ index: Int) -> PersistentTree<IndexEntry>? {
    if case .ordered(let tree) = body(index) { tree } else { nil }
  }

  /// True if the change log of any index holds changes, each of which keeps its replaced record in memory.
  var keepChanges: Bool { bodies.contains { if case .followed(let followed) = $0 { followed.keepsChanges } else { false } } }

  /// Returns each index whose change log is not empty, together with its settled form, to which the logged changes are applied.
  ///
  /// `settled()` blocks its thread until the changes are applied.
  func settled() -> [(index: Int, before: FollowedIndex, after: FollowedIndex)] {
    bodies.indices.compactMap { index in
      guard case .followed(let followed) = bodies[index], followed.keepsChanges else { return nil }
      return (index, followed, followed.settled(definitions[index]))
    }
  }

  /// Replaces an index by its settled form, unless a commit has changed the index since ``settled()``.
  mutating func settle(_ index: Int, from before: FollowedIndex, to after: FollowedIndex) {
    // If a commit came after `settled()`, the changes of the commit are missing in `after`, and the replacement would lose these changes.
    if case .followed(let followed) = bodies[index], followed.isSame(as: before) { bodies[index] = .followed(after) }
  }

  /// Returns the position of the first declared index of a kind, or `nil` if there is none.
  func first(_ kind: IndexDefinition.Kind) -> Int? { definitions.firstIndex { $0.kind == kind } }
}

// MARK: - Following commits

extension IndexSet {
  /// Applies or logs a change of one record in every index.
  ///
  /// - Returns: True if the new record has the same values as another record in a unique index, or may have, because the index is in the
  ///   storage.
  mutating func replace(_ old: RecordSlot?, with new: RecordSlot?) -> Bool {
    let change = IndexChange(old: old, new: new)
    var isContested = false
    // The entries of all stored indexes share one stub of each record.
    var stubs: IndexChange?
    if holdsStubs { storedEdits.removeAll(keepingCapacity: true) }
    for index in bodies.indices {
      // An index that no query has needed yet is not built and is skipped, so that a declared index costs no write time before its first
      // use.
      if case .absent = bodies[index] { continue }
      if case .stored = bodies[index] {
        let known = stubs ?? change.stubs
        stubs = known
        if editStored(index, change, known) { isContested = true }
        continue
      }
      if let automatic = definitions[index].automatic, !automatic.isWorthChange() {
        bodies[index] = .absent
        continue
      }
      // The content of the index is moved out of the array while it changes, so that the content has one owner and its trees change in
      // place. If the array kept a second reference to the content, each change would copy tree nodes.
      var body = IndexBody.absent
      swap(&body, &bodies[index])
      if follow(change, by: definitions[index], in: &body) { isContested = true }
      swap(&body, &bodies[index])
    }
    return isContested
  }

  /// Applies a change of one record to an index in the storage.
  ///
  /// - Returns: True if a unique index must be searched for the values of the new record before the write ends.
  private mutating func editStored(_ index: Int, _ change: IndexChange, _ stubs: IndexChange) -> Bool {
    guard case .stored(var entries) = bodies[index] else { return false }
    // The index has one owner while it changes. An index that the change does not fit stays `.absent`: the commit does not name it, so the
    // backend drops it.
    bodies[index] = .absent
    guard let edit = StoredEdit(change, definitions[index], stubs: stubs) else { return false }
    entries.replace(edit.before, with: edit.after)
    storedEdits.append((entries.run.id, edit))
    bodies[index] = .stored(entries)
    guard definitions[index].isUnique, let after = edit.after, !after.hasNull else { return false }
    return edit.before?.hasValues(of: after) != true
  }

  private func follow(_ change: IndexChange, by definition: IndexDefinition, in body: inout IndexBody) -> Bool {
    switch body {
    // Each case of the `switch` empties `body` before it changes the content, so that the content has one owner and changes in place.
    case .building(var log):
      body = .absent
      log.append(change)
      body = .building(log)
    case .followed(var index):
      body = .absent
      index.follow(change, definition)
      body = .followed(index)
    case .absent, .ordered, .stored, .geo, .text:
      return definition.apply(change, to: &body)
    }
    return false
  }
}

extension IndexSet {
  /// Positions of the unique indexes.
  var uniqueIndexes: [Int] { areUnique ? definitions.indices.filter { definitions[$0].isUnique } : [] }

  /// True if ``lostUniqueIndexes`` is not empty.
  var hasLostUniqueIndex: Bool { holdsStubs && enforcedIndexes.contains { !isBuilt($0) } }

  /// Positions of the unique indexes over records in the storage that were lost, or that do not fit the records.
  var lostUniqueIndexes: [Int] { holdsStubs ? uniqueIndexes.filter { enforcedIndexes.contains($0) && !isBuilt($0) } : [] }

  /// Returns the key of another record whose values in a unique index a write gave to a record.
  ///
  /// - Parameters:
  ///   - new: A record that the write has stored.
  ///   - old: The record before the write that is being staged, or `nil` if the write inserts the record.
  ///   - index: Position of a unique index.
  ///   - records: The records of the indexes, with the changes of the write.
  /// - Returns: `nil` if the write caused no duplicate in the index, or if the index is neither built nor in the storage.
  /// - Throws: The errors of ``StoredEntries/visit(withValuesOf:among:_:_:)``.
  func newDuplicate(
    of new: RecordSlot, replacing old: RecordSlot?, in index: Int, among records: RecordMap
  ) throws(RepositoryError) -> RecordKey? {
    let definition = definitions[index]
    // A record with `nil` among its indexed values is never a duplicate, as with NULL in a unique index of SQL.
    guard isSearchable(index), let entry = definition.entry(new), !entry.hasNull else { return nil }
    // If the write leaves the values in the unique index unchanged, a record that is already a duplicate may be saved. The app can
    // resolve the duplicate later.
    if let old, let oldEntry = definition.entry(old), oldEntry.hasValues(of: entry) { return nil }
    var other: RecordKey?
    try visit(index, withValuesOf: entry, among: records) { key in
      if key != new.key { other = key }
      return other == nil
    }
    return other
  }

  /// Searches a unique index for another record with the same values as a given record, and prefers the record with the key `other`.
  ///
  /// - Throws: The errors of ``StoredEntries/visit(withValuesOf:among:_:_:)``.
  func duplicate(
    of slot: RecordSlot, preferring other: RecordKey, index name: String, among records: RecordMap
  ) throws(RepositoryError) -> KnownDuplicate {
    guard let index = uniqueIndexes.first(where: { definitions[$0].name == name }), isSearchable(index) else { return .unknown }
    guard let entry = definitions[index].entry(slot), !entry.hasNull else { return .none }
    var found = KnownDuplicate.none
    try visit(index, withValuesOf: entry, among: records) { key in
      if key == other { found = .of(other) }
      if found == .none, key != slot.key { found = .of(key) }
      return found != .of(other)
    }
    return found
  }

  /// True if an index can be searched, also one in the storage that a query on another thread has just found not to fit the records.
  private func isSearchable(_ index: Int) -> Bool { if case .stored = bodies[index] { true } else { isBuilt(index) } }

  /// Visits the keys of the records with the same values as an entry in an ordered index, until `body` returns `false`.
  private func visit(
    _ index: Int, withValuesOf entry: IndexEntry, among records: RecordMap, _ body: (RecordKey) -> Bool
  ) throws(RepositoryError) {
    if case .stored(let entries) = bodies[index] {
      try entries.visit(withValuesOf: entry, among: records, definitions[index], body)
    } else if let tree = tree(index) {
      tree.forEach(in: tree.start(of: entry.values)..<tree.end(of: entry.values)) { body($0.slot.key) }
    }
  }

  /// True if a unique index in memory has two entries with the same values.
  ///
  /// Cost: a walk over the entries up to the first two.
  func hasDuplicates(_ index: Int) -> Bool {
    guard definitions[index].isUnique, let tree = tree(index) else { return false }
    var (last, isFound): (IndexEntry?, Bool) = (nil, false)
    tree.forEach(in: 0..<tree.count) { (entry) -> Bool in
      isFound = last.map { $0.hasValues(of: entry) && !entry.hasNull } ?? false
      last = entry
      return !isFound
    }
    return isFound
  }

  /// Returns the records with equal values in a unique index, each paired with the first record that has the same values.
  ///
  /// A unique index in the storage has none: see ``StoredIndexBuilder/copySoon(_:of:in:)``.
  func duplicates(_ index: Int, collection: String) -> [OpenReport.Duplicate] {
    guard definitions[index].isUnique, let tree = tree(index) else { return [] }
    var duplicates: [OpenReport.Duplicate] = []
    var first: IndexEntry?
    // Entries with equal values are neighbours in the index, so one pass in the index's order finds every group of duplicates.
    tree.forEach(in: 0..<tree.count) { entry in
      if let first, first.hasValues(of: entry), !entry.hasNull {
        duplicates.append(
          .init(collection: collection, index: definitions[index].name, first: first.slot.key, second: entry.slot.key))
      } else {
        first = entry
      }
      return true
    }
    return duplicates
  }
}

/// The result of the search in a unique index for another record with the same values.
package enum KnownDuplicate: Sendable, Hashable {
  /// No open repository has declared the unique index, or the index is not built, so duplicates cannot be found.
  case unknown
  /// No other record has the same values in the unique index.
  case none
  /// The record with the associated key has the same values in the unique index.
  case of(RecordKey)
}
