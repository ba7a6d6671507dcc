/// A collection at one commit: its records, and the indexes over exactly these records.
struct CollectionState: Sendable {
  private(set) var records: RecordMap
  /// What the collection's schema declares, as far as it has been built; see ``IndexSet``.
  var indexes: any CollectionIndexes

  init(_ records: RecordMap = RecordMap(), indexes: any CollectionIndexes = NoIndexes()) {
    self.records = records
    self.indexes = indexes
  }

  /// Puts a record in the place of its key, and returns what was there.
  /// - Parameter isContested: Becomes `true` if a unique index holds the values of the record for another one, too.
  mutating func upsert(_ slot: RecordSlot, isContested: inout Bool) -> RecordSlot? {
    let old = records.upsert(slot)
    if indexes.replace(old, with: slot) { isContested = true }
    return old
  }

  /// Puts a record in the place of its key, whatever unique indexes say, and returns what was there.
  mutating func upsert(_ slot: RecordSlot) -> RecordSlot? {
    var isContested = false
    return upsert(slot, isContested: &isContested)
  }

  /// Takes the record of a key out, and returns it.
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
  /// Whether a repository has said which indexes there are, even if none.
  var areDeclared: Bool { get }
  /// Whether a written value will be asked for, so that it is better decoded by the writer's own task.
  var needsValues: Bool { get }
  /// Whether some records may be forbidden beside others.
  var areUnique: Bool { get }
  /// What queries are planned with; `nil` when nothing was declared.
  var table: IndexTable? { get }
  /// Follows a change of one record.
  /// - Returns: Whether a unique index holds its new values for another record, too.
  mutating func replace(_ old: RecordSlot?, with new: RecordSlot?) -> Bool
  /// Returns why a record may not be as it is now, when it was `old` before the write that is being staged.
  func violation(of new: RecordSlot, replacing old: RecordSlot?) -> RepositoryError?
}

/// What stands for the indexes of a collection that no repository has been made for.
struct NoIndexes: CollectionIndexes {
  var areDeclared: Bool { false }
  var areUnique: Bool { false }
  var needsValues: Bool { false }
  var table: IndexTable? { nil }
  mutating func replace(_ old: RecordSlot?, with new: RecordSlot?) -> Bool { false }
  func violation(of new: RecordSlot, replacing old: RecordSlot?) -> RepositoryError? { nil }
}
