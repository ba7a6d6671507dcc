/// A collection at one commit: its records, and the indexes over exactly these records.
struct CollectionState: Sendable {
  private(set) var records = RecordMap()
  /// Indexes that the collection's schema declares, some of which may not be built yet.
  var indexes = IndexSet()

  /// Inserts a record or replaces the one with its key, and returns the replaced record.
  ///
  /// - Parameter isContested: Becomes `true` if a unique index now holds the record's values for another record, too. It is never reset.
  mutating func upsert(_ slot: RecordSlot, isContested: inout Bool) -> RecordSlot? {
    // The indexes find the entries of the replaced record by its old values, so they need both.
    let old = records.upsert(slot)
    if indexes.replace(old, with: slot) { isContested = true }
    return old
  }

  /// Inserts a record or replaces the one with its key, without a check of unique indexes, and returns the replaced record.
  mutating func upsert(_ slot: RecordSlot) -> RecordSlot? {
    var isContested = false
    return upsert(slot, isContested: &isContested)
  }

  /// Removes the record of a key and returns it, or `nil` if there was none.
  mutating func remove(_ key: RecordKey) -> RecordSlot? {
    // A removal of an absent key would fill the logs of the indexes with changes of nothing.
    guard let old = records[key] else { return nil }
    records.remove(key)
    _ = indexes.replace(old, with: nil)
    return old
  }

  /// Returns a copy of the records that is quicker to search, or `nil` if too few have changed for the work to pay.
  ///
  /// - Parameter isGivenUp: Polled during the work, which ends with `nil` once this returns `true`.
  func rebasedIfWorthwhile(unless isGivenUp: () -> Bool) -> RecordMap? {
    var records = records
    return records.rebaseIfWorthwhile(unless: isGivenUp) ? records : nil
  }

  /// Replaces the records by the same records in the form of ``rebasedIfWorthwhile(unless:)``.
  mutating func replaceRecords(with rebased: RecordMap) { records = rebased }
}
