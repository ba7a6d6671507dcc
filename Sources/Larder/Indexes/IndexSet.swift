internal import Foundation

// Indexes/ holds the declared indexes of a collection: Ordered/, Geo/ and Text/, on the tree of Tree/. Invariant: indexes cover exactly the
// records of their commit, and are the same on every backend. Called by CollectionState (changes), the engine (builds) and QueryRun.

/// The declared indexes of a collection at one commit, some of which may not be built yet.
///
/// A value type beside the records: a copy shares its storage with the original, and a commit changes its own copy. The declarations are
/// stored without the type of the records, because a collection is opened with one type only.
struct IndexSet: Sendable {
  let definitions: [IndexDefinition]
  /// Order of record ids, which decides between equal values.
  let keys: KeyOrder
  /// True once a repository has declared the collection's indexes, even if it declared none.
  let areDeclared: Bool
  /// True if the collection has a unique index, so that a write may be refused.
  let areUnique: Bool
  var bodies: [IndexBody]

  /// Creates the empty set for a collection that no repository has opened.
  init() { self.init([], keys: .bytes, areDeclared: false) }

  /// Creates the indexes that a repository declares, none of them built.
  init<Item>(_ declarations: [RepositoryIndex<Item>], _ coder: RecordCoder<Item>) {
    self.init(declarations.map { IndexDefinition($0, coder) }, keys: coder.keys.order, areDeclared: true)
  }

  private init(_ definitions: [IndexDefinition], keys: KeyOrder, areDeclared: Bool) {
    (self.definitions, self.keys, self.areDeclared) = (definitions, keys, areDeclared)
    areUnique = definitions.contains { $0.isUnique }
    bodies = definitions.map { _ in .absent }
  }

  /// True if indexes need the decoded values of `count` written records.
  ///
  /// The writing task then decodes them, off the store's executor.
  func needsValues(of count: Int) -> Bool {
    // An index that is not built reads no values.
    let isFollowed = bodies.contains { if case .absent = $0 { false } else { true } }
    return isFollowed && (areUnique || count >= FollowedIndex.many)
  }

  /// True if two index sets declare the same indexes in the same order.
  func isSame(as other: Self) -> Bool {
    definitions.count == other.definitions.count && zip(definitions, other.definitions).allSatisfy { $0.isSame(as: $1) }
  }

  /// True if an index is built, so that queries can use it.
  func isBuilt(_ index: Int) -> Bool { bodies[index].isBuilt }

  /// Returns the content of an index at this commit.
  ///
  /// Cost: the first call after a commit applies the pending changes.
  func body(_ index: Int) -> IndexBody {
    if case .followed(let followed) = bodies[index] { followed.body(definitions[index]) } else { bodies[index] }
  }

  /// Returns the entries of an ordered index, or `nil` if it is of another kind or not built.
  func tree(_ index: Int) -> PersistentTree<IndexEntry>? {
    if case .ordered(let tree) = body(index) { tree } else { nil }
  }

  /// True if the log of any index holds changes, and with them replaced records.
  var keepChanges: Bool { bodies.contains { if case .followed(let followed) = $0 { followed.keepsChanges } else { false } } }

  /// Returns each index whose log holds changes, as it is and with them applied.
  ///
  /// Blocks the thread until the changes are applied.
  func settled() -> [(index: Int, before: FollowedIndex, after: FollowedIndex)] {
    bodies.indices.compactMap { index in
      guard case .followed(let followed) = bodies[index], followed.keepsChanges else { return nil }
      return (index, followed, followed.settled(definitions[index]))
    }
  }

  /// Replaces an index by its settled form, unless a commit has changed it since.
  mutating func settle(_ index: Int, from before: FollowedIndex, to after: FollowedIndex) {
    // A commit since then has changes that `after` lacks.
    if case .followed(let followed) = bodies[index], followed.isSame(as: before) { bodies[index] = .followed(after) }
  }

  /// Returns the position of the first index of a kind.
  func first(_ kind: IndexDefinition.Kind) -> Int? { definitions.firstIndex { $0.kind == kind } }
}

// MARK: - Following commits

extension IndexSet {
  /// Applies or logs a change of one record in every index.
  ///
  /// - Returns: True if a unique index holds the new values for another record, too.
  mutating func replace(_ old: RecordSlot?, with new: RecordSlot?) -> Bool {
    let change = IndexChange(old: old, new: new)
    var isContested = false
    for index in bodies.indices {
      // Skipped, so that an index that no query has needed costs a write nothing.
      if case .absent = bodies[index] { continue }
      // Swapped out of the array while it changes, so that it has one owner and its trees change in place.
      var body = IndexBody.absent
      swap(&body, &bodies[index])
      if follow(change, definitions[index], &body) { isContested = true }
      swap(&body, &bodies[index])
    }
    return isContested
  }

  private func follow(_ change: IndexChange, _ definition: IndexDefinition, _ body: inout IndexBody) -> Bool {
    switch body {
    // Each case empties `body` before it changes the content, for the same reason as the swap above.
    case .building(var log):
      body = .absent
      log.append(change)
      body = .building(log)
    case .followed(var index):
      body = .absent
      index.follow(change, definition)
      body = .followed(index)
    case .absent, .ordered, .geo, .text:
      return definition.apply(change, to: &body)
    }
    return false
  }

  /// Returns a built index in the form that commits update: a unique one directly, because it may refuse a write, any other through a log.
  func followed(_ built: IndexBody, _ index: Int) -> IndexBody {
    definitions[index].isUnique ? built : .followed(FollowedIndex(built))
  }
}

extension IndexSet {
  /// Returns the error for a record that duplicates another one in a unique index, or `nil` if the record may be written.
  ///
  /// - Parameter old: The record before the write that is being staged.
  func violation(of new: RecordSlot, replacing old: RecordSlot?) -> RepositoryError? {
    guard let found = newDuplicate(of: new, replacing: old) else { return nil }
    return RepositoryError(
      .uniqueViolation, "\(found.index) holds these values for the record \(found.other) already", keyHash: new.key.hash)
  }

  /// Returns the first unique index in which a write made a record equal to another one, with the other one's key.
  func newDuplicate(of new: RecordSlot, replacing old: RecordSlot?) -> (index: String, other: RecordKey)? {
    for (index, definition) in definitions.enumerated() where definition.isUnique {
      // Values that are `nil` are never equal, as in SQL.
      guard let tree = tree(index), let entry = definition.entry(new), !entry.hasNull else { continue }
      // A record that was a duplicate before the write may be saved until the app resolves it.
      if let old, let oldEntry = definition.entry(old), oldEntry.hasValues(of: entry) { continue }
      if let other = Self.other(than: entry, in: tree) { return (definition.name, other.slot.key) }
    }
    return nil
  }

  /// Returns the record that a unique index finds equal to a given one, preferring `other` among several.
  func duplicate(of slot: RecordSlot, preferring other: RecordKey, index name: String) -> KnownDuplicate {
    guard let index = definitions.firstIndex(where: { $0.isUnique && $0.name == name }), let tree = tree(index) else { return .unknown }
    guard let entry = definitions[index].entry(slot), !entry.hasNull else { return .none }
    var found = KnownDuplicate.none
    tree.forEach(in: tree.start(of: entry.values)..<tree.end(of: entry.values)) { candidate in
      if candidate.slot.key == other { found = .of(other) }
      if found == .none, candidate.slot.key != slot.key { found = .of(candidate.slot.key) }
      return found != .of(other)
    }
    return found
  }

  /// Returns an entry of another record with the same values as a given entry.
  private static func other(than entry: IndexEntry, in tree: PersistentTree<IndexEntry>) -> IndexEntry? {
    var other: IndexEntry?
    tree.forEach(in: tree.start(of: entry.values)..<tree.end(of: entry.values)) { candidate in
      if candidate.slot.key != entry.slot.key { other = candidate }
      return other == nil
    }
    return other
  }

  /// Returns the records that a unique index finds equal, each paired with the first of its group.
  func duplicates(_ index: Int, collection: String) -> [OpenReport.Duplicate] {
    guard definitions[index].isUnique, let tree = tree(index) else { return [] }
    var duplicates: [OpenReport.Duplicate] = []
    var first: IndexEntry?
    // Equal entries are neighbours, so one pass in the index's order finds every group.
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

/// The answer of a unique index about one record.
package enum KnownDuplicate: Sendable, Hashable {
  /// No open repository has declared the index, so nothing is known.
  case unknown
  /// No other record has the same values.
  case none
  /// The record with this key has the same values.
  case of(RecordKey)
}
