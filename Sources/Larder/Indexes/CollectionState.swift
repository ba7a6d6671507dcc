/// The state of a collection at one commit: its records, and the indexes over exactly these records.
struct CollectionState: Sendable {
  private(set) var records = RecordMap()
  /// Declared and automatic indexes of the collection, some of which may not be built yet.
  var indexes = IndexSet()

  /// Inserts a record or replaces the record with the same key, and returns the replaced record.
  ///
  /// - Parameter isContested: Becomes `true` if a unique index now holds the record's values for another record, too, or may hold them,
  ///   because it is in the storage. `upsert` never sets `isContested` to `false`.
  /// - Throws: The errors of ``RecordMap/upsert(_:)``, with nothing changed.
  mutating func upsert(_ slot: RecordSlot, isContested: inout Bool) throws(RepositoryError) -> RecordSlot? {
    // An index finds the entry of the replaced record by its old values, so each index gets the old and the new record.
    let old = try records.upsert(slot)
    if indexes.replace(old, with: slot) { isContested = true }
    return old
  }

  /// Inserts a record or replaces the record with the same key, and ignores duplicates in unique indexes.
  ///
  /// - Returns: The replaced record, or `nil` if there was none.
  /// - Throws: The errors of ``RecordMap/upsert(_:)``, with nothing changed.
  mutating func upsert(_ slot: RecordSlot) throws(RepositoryError) -> RecordSlot? {
    var isContested = false
    return try upsert(slot, isContested: &isContested)
  }

  /// Removes the record of a key and returns the record, or `nil` if the collection does not hold the key.
  ///
  /// - Throws: The errors of ``RecordMap/remove(_:)``, with nothing changed.
  mutating func remove(_ key: RecordKey) throws(RepositoryError) -> RecordSlot? {
    // Without the `guard`, each removal of an absent key would append an empty change to the change log of every index.
    guard let old = try records.remove(key) else { return nil }
    _ = indexes.replace(old, with: nil)
    return old
  }

  /// Returns a record map with all changes merged into its base, or `nil` if the changes are too few to be worth merging.
  ///
  /// The base of a ``RecordMap`` holds the records of the map's creation and is faster to search than the tree of later changes. Merging is
  /// worthwhile if the changed records outnumber the base by more than 4,096.
  ///
  /// - Parameter isGivenUp: Closure that is polled during the sort of the changed records. If the closure returns `true`, the result is
  ///   `nil`.
  func rebasedIfWorthwhile(unless isGivenUp: () -> Bool) -> RecordMap? {
    var records = records
    return records.rebaseIfWorthwhile(unless: isGivenUp) ? records : nil
  }

  /// Replaces records that stay in the storage by those of another base, without the indexes.
  ///
  /// - Parameter counted: Number and versions of the records of each collection that has records, or `nil` to read all records once.
  /// - Throws: The errors of ``PagedRecords/forEach(after:_:)``, and those of building the unique indexes.
  mutating func begin(anewOver base: any StoredBase, counted: [CollectionSummary]?) throws(RepositoryError) {
    guard let paged = records.paged(over: base) else { return }
    var (count, versions) = (0, (oldest: Int.max, newest: 0))
    if let counted {
      if let summary = counted.first(where: { $0.name == paged.collection }) {
        (count, versions) = (summary.recordCount, (summary.schemaVersions.lowerBound, summary.schemaVersions.upperBound))
      }
    } else {
      _ = try paged.forEach { slot in
        count += 1
        versions = (min(versions.oldest, slot.schemaVersion), max(versions.newest, slot.schemaVersion))
        return true
      }
    }
    records = RecordMap(paged, count: count, versions: versions)
    try indexes.beginAnew(over: records)
  }

  /// Replaces the record map by another one of the same records.
  mutating func replaceRecords(with rebased: RecordMap) { records = rebased }
}
