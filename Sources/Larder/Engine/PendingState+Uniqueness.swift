/// Unique indexes, over the records that a write has staged.
extension PendingState {
  /// - Throws: `.uniqueViolation` for a record that these changes have put where another one is.
  func checkUniqueness(_ changes: ArraySlice<RecordChange>) throws(RepositoryError) {
    for (collection, new, old) in uniqueChanges(in: changes) {
      if let violation = collections[collection].indexes.violation(of: new, replacing: old) { throw violation }
    }
  }

  /// Returns the records of collections with a unique index that some changes have written, each as it is now and as it was before them.
  func uniqueChanges(in changes: ArraySlice<RecordChange>) -> [(collection: Int, new: RecordSlot, old: RecordSlot?)] {
    var before: [Int: [RecordKey: RecordSlot?]] = [:]
    for change in changes where collections[change.collection].indexes.areUnique {
      if before[change.collection]?[change.key] == nil { before[change.collection, default: [:]][change.key] = .some(change.old) }
    }
    return before.flatMap { collection, records in
      records.compactMap { key, old in collections[collection].records[key].map { (collection, $0, old) } }
    }
  }
}
