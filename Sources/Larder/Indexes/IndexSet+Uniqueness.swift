internal import Foundation

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
