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

  /// Whether a written value will be asked for at once, so that it is better decoded in the writer's own task.
  var needsValues: Bool {
    bodies.contains { if case .absent = $0 { false } else { true } }
  }

  /// Whether both declare the same.
  func isSame(as other: Self) -> Bool {
    definitions.count == other.definitions.count && zip(definitions, other.definitions).allSatisfy { $0.isSame(as: $1) }
  }

  /// Whether an index can be used.
  func isBuilt(_ index: Int) -> Bool { bodies[index].isBuilt }

  /// Returns the entries of an ordered index; `nil` when it is of another kind, or was not built.
  func tree(_ index: Int) -> PersistentTree<IndexEntry>? {
    if case .ordered(let tree) = bodies[index] { tree } else { nil }
  }

  /// Returns the first index of a kind.
  func first(_ kind: IndexDefinition.Kind) -> Int? { definitions.firstIndex { $0.kind == kind } }
}

// MARK: - Following commits

extension IndexSet {
  /// Follows a change of one record.
  /// - Returns: Whether a unique index holds its new values for another record, too.
  mutating func replace(_ old: RecordSlot?, with new: RecordSlot?) -> Bool {
    guard needsValues else { return false }
    var isContested = false
    for index in bodies.indices {
      // Taken out of the array while it is changed, so that it has one owner and changes in place.
      var body = IndexBody.absent
      swap(&body, &bodies[index])
      if change(&body, definitions[index], old, new) { isContested = true }
      swap(&body, &bodies[index])
    }
    return isContested
  }

  /// Follows a change of one record in one index.
  /// - Returns: Whether the index is unique and holds the new values for another record, too.
  func change(_ body: inout IndexBody, _ definition: IndexDefinition, _ old: RecordSlot?, _ new: RecordSlot?) -> Bool {
    var isContested = false
    switch body {
    case .absent:
      break
    case .building(var log):
      body = .absent
      log.append((old, new))
      body = .building(log)
    case .ordered(var tree):
      body = .absent
      let (before, after) = (old.flatMap(definition.entry), new.flatMap(definition.entry))
      // Where the values are the same, the new entry takes the place of the old one.
      let isMoved = before != after
      if let before, isMoved { tree.remove(before) }
      if let after {
        if definition.isUnique, isMoved {
          // Entries with the same values lie side by side. The first of them came alone, so it is enough to look when the second one comes.
          let (left, right) = tree.neighbours(of: after)
          isContested = (left?.values == after.values || right?.values == after.values) && !after.values.contains(.null)
        }
        tree.insert(after)
      }
      body = .ordered(tree)
    case .geo(var geo):
      body = .absent
      if let old, let place = definition.place(old) { geo.remove(old.key, at: place) }
      if let new, let place = definition.place(new) { geo.insert(new, at: place) }
      body = .geo(geo)
    case .text(var text):
      body = .absent
      let (before, after) = (old.flatMap(definition.texts), new.flatMap(definition.texts))
      if let new, let after {
        text.update(new, from: before ?? [], to: after)
      } else if let old, let before {
        text.remove(old.key, texts: before)
      }
      body = .text(text)
    }
    return isContested
  }
}
