internal import Foundation

// Indexes/ holds the declared indexes of a collection: Ordered/, Geo/ and Text/, on the tree of Tree/. Invariant: indexes are over exactly
// the records of their commit, and are the same on every backend. Called by CollectionState (changes), the engine (builds) and QueryRun.

/// The declared indexes of a collection, as far as they have been built, over the records of one commit.
///
/// A value beside the records: a copy shares everything with the original, and a commit changes its own copy. A collection is read as one
/// type, so what it declares is known without that type.
struct IndexSet: Sendable {
  let definitions: [IndexDefinition]
  /// The order of the ids.
  let keys: KeyOrder
  /// Whether a repository has declared the indexes of the collection, even if none.
  let areDeclared: Bool
  /// Whether the collection has a unique index, so that a write may be refused.
  let areUnique: Bool
  var bodies: [IndexBody]

  /// Makes the indexes of a collection that no repository was opened for.
  init() { self.init([], keys: .bytes, areDeclared: false) }

  /// Makes the indexes that a repository declares, none of them built.
  init<Item>(_ declarations: [RepositoryIndex<Item>], _ coder: RecordCoder<Item>) {
    self.init(declarations.map { IndexDefinition($0, coder) }, keys: coder.keys.order, areDeclared: true)
  }

  private init(_ definitions: [IndexDefinition], keys: KeyOrder, areDeclared: Bool) {
    (self.definitions, self.keys, self.areDeclared) = (definitions, keys, areDeclared)
    areUnique = definitions.contains { $0.isUnique }
    bodies = definitions.map { _ in .absent }
  }

  /// Whether so many written values will be asked for by indexes at once, so that they are better decoded in the writer's own task.
  func needsValues(of count: Int) -> Bool {
    let isFollowed = bodies.contains { if case .absent = $0 { false } else { true } }
    return isFollowed && (areUnique || count >= FollowedIndex.many)
  }

  /// Whether both declare the same.
  func isSame(as other: Self) -> Bool {
    definitions.count == other.definitions.count && zip(definitions, other.definitions).allSatisfy { $0.isSame(as: $1) }
  }

  /// Whether an index can be used.
  func isBuilt(_ index: Int) -> Bool { bodies[index].isBuilt }

  /// Returns the content of an index at this commit.
  ///
  /// Cost: that of applying the changes that wait, at the first call.
  func body(_ index: Int) -> IndexBody {
    if case .followed(let followed) = bodies[index] { followed.body(definitions[index]) } else { bodies[index] }
  }

  /// Returns the entries of an ordered index; `nil` when it is of another kind, or was not built.
  func tree(_ index: Int) -> PersistentTree<IndexEntry>? {
    if case .ordered(let tree) = body(index) { tree } else { nil }
  }

  /// Whether an index keeps changes that it has followed.
  var keepChanges: Bool { bodies.contains { if case .followed(let followed) = $0 { followed.keepsChanges } else { false } } }

  /// Returns the indexes that keep changes, each with what it is without them.
  ///
  /// Blocks the thread, as long as it takes to apply them.
  func settled() -> [(index: Int, before: FollowedIndex, after: FollowedIndex)] {
    bodies.indices.compactMap { index in
      guard case .followed(let followed) = bodies[index], followed.keepsChanges else { return nil }
      return (index, followed, followed.settled(definitions[index]))
    }
  }

  /// Puts an index in the place of the one that it was made of, if that is still there.
  mutating func settle(_ index: Int, from before: FollowedIndex, to after: FollowedIndex) {
    if case .followed(let followed) = bodies[index], followed.isSame(as: before) { bodies[index] = .followed(after) }
  }

  /// Returns the first index of a kind.
  func first(_ kind: IndexDefinition.Kind) -> Int? { definitions.firstIndex { $0.kind == kind } }
}

// MARK: - Following commits

extension IndexSet {
  /// Follows a change of one record.
  /// - Returns: Whether a unique index holds its new values for another record, too.
  mutating func replace(_ old: RecordSlot?, with new: RecordSlot?) -> Bool {
    let change = IndexChange(old: old, new: new)
    var isContested = false
    for index in bodies.indices {
      if case .absent = bodies[index] { continue }
      // Taken out of the array while it is changed, so that it has one owner and changes in place.
      var body = IndexBody.absent
      swap(&body, &bodies[index])
      if follow(change, definitions[index], &body) { isContested = true }
      swap(&body, &bodies[index])
    }
    return isContested
  }

  private func follow(_ change: IndexChange, _ definition: IndexDefinition, _ body: inout IndexBody) -> Bool {
    switch body {
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

  /// Returns a built index as commits keep it up: a unique one at once, since it may refuse a write; others when they are asked.
  func followed(_ built: IndexBody, _ index: Int) -> IndexBody {
    definitions[index].isUnique ? built : .followed(FollowedIndex(built))
  }
}

extension IndexSet {
  /// Returns why a record may not be as it is now, when it was `old` before the write that is being staged; `nil` when it may.
  func violation(of new: RecordSlot, replacing old: RecordSlot?) -> RepositoryError? {
    guard let found = newDuplicate(of: new, replacing: old) else { return nil }
    return RepositoryError(
      .uniqueViolation, "\(found.index) holds these values for the record \(found.other) already", keyHash: new.key.hash)
  }

  /// Returns the first unique index that holds the values of a record for another one, too, which it did not when the record was `old`.
  func newDuplicate(of new: RecordSlot, replacing old: RecordSlot?) -> (index: String, other: RecordKey)? {
    for (index, definition) in definitions.enumerated() where definition.isUnique {
      guard let tree = tree(index), let entry = definition.entry(new), !entry.hasNull else { continue }
      // What was equal already is no new violation: the record may be saved until the app resolves it.
      if let old, let oldEntry = definition.entry(old), oldEntry.hasValues(of: entry) { continue }
      if let other = Self.other(than: entry, in: tree) { return (definition.name, other.slot.key) }
    }
    return nil
  }

  /// Returns which other record a unique index finds equal to a record: a preferred one, where it is among several.
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

  /// Returns a different record with the values of an entry.
  private static func other(than entry: IndexEntry, in tree: PersistentTree<IndexEntry>) -> IndexEntry? {
    var other: IndexEntry?
    tree.forEach(in: tree.start(of: entry.values)..<tree.end(of: entry.values)) { candidate in
      if candidate.slot.key != entry.slot.key { other = candidate }
      return other == nil
    }
    return other
  }

  /// Returns the records that a unique index finds equal, each with the first of them.
  func duplicates(_ index: Int, collection: String) -> [OpenReport.Duplicate] {
    guard definitions[index].isUnique, let tree = tree(index) else { return [] }
    var duplicates: [OpenReport.Duplicate] = []
    var first: IndexEntry?
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

/// What a unique index says of a record.
package enum KnownDuplicate: Sendable, Hashable {
  /// No repository with the index is open.
  case unknown
  /// No other record has its values.
  case none
  /// Another record has its values.
  case of(RecordKey)
}
