/// A collection at one commit: its records, and the indexes over exactly these records.
struct CollectionState: Sendable {
  private(set) var records: RecordMap
  /// The indexes that the collection's schema declares, as far as they have been built; see ``IndexSet``.
  var indexes: any CollectionIndexes

  init(_ records: RecordMap = RecordMap(), indexes: any CollectionIndexes = NoIndexes()) {
    self.records = records
    self.indexes = indexes
  }

  /// Inserts a record, or replaces the one with its key, and returns that.
  /// - Parameter isContested: Becomes `true` if a unique index holds the values of the record for another one, too.
  mutating func upsert(_ slot: RecordSlot, isContested: inout Bool) -> RecordSlot? {
    let old = records.upsert(slot)
    if indexes.replace(old, with: slot) { isContested = true }
    return old
  }

  /// Inserts a record, or replaces the one with its key, whatever unique indexes say, and returns that.
  mutating func upsert(_ slot: RecordSlot) -> RecordSlot? {
    var isContested = false
    return upsert(slot, isContested: &isContested)
  }

  /// Removes the record of a key, and returns it.
  mutating func remove(_ key: RecordKey) -> RecordSlot? {
    guard let old = records[key] else { return nil }
    records.remove(key)
    _ = indexes.replace(old, with: nil)
    return old
  }

  mutating func rebaseIfWorthwhile() { records.rebaseIfWorthwhile() }
}

/// The indexes of a collection, whatever its type: an immutable value beside the records of the same commit.
protocol CollectionIndexes: Sendable {
  /// Whether a repository has declared the indexes, even if there are none.
  var areDeclared: Bool { get }
  /// Whether a written value will be asked for, so that it is better decoded by the writer's own task.
  var needsValues: Bool { get }
  /// Whether one of them is unique.
  var areUnique: Bool { get }
  /// The table that queries are planned with; `nil` when nothing was declared.
  var table: IndexTable? { get }
  /// Follows a change of one record.
  /// - Returns: Whether a unique index holds its new values for another record, too.
  mutating func replace(_ old: RecordSlot?, with new: RecordSlot?) -> Bool
  /// Returns the reason why a record violates a unique index, if it was `old` before the write that is being staged.
  func violation(of new: RecordSlot, replacing old: RecordSlot?) -> RepositoryError?
}

/// The indexes of a collection that no repository has been made for.
struct NoIndexes: CollectionIndexes {
  var areDeclared: Bool { false }
  var areUnique: Bool { false }
  var needsValues: Bool { false }
  var table: IndexTable? { nil }
  mutating func replace(_ old: RecordSlot?, with new: RecordSlot?) -> Bool { false }
  func violation(of new: RecordSlot, replacing old: RecordSlot?) -> RepositoryError? { nil }
}
