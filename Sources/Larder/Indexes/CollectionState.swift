/// A collection at one commit: its records, and the indexes over exactly these records.
struct CollectionState: Sendable {
  private(set) var records = RecordMap()
  /// The indexes that the collection's schema declares, as far as they have been built; see ``IndexSet``.
  var indexes = IndexSet()

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

  /// Returns the records in a form that is quicker to look up in, where so many have changed that it is worthwhile; `nil` otherwise.
  ///
  /// - Parameter isGivenUp: Whether the caller has no time for it any more.
  func rebasedIfWorthwhile(unless isGivenUp: () -> Bool) -> RecordMap? {
    var records = records
    return records.rebaseIfWorthwhile(unless: isGivenUp) ? records : nil
  }

  /// Replaces the records by the same ones in another form.
  mutating func take(_ rebased: RecordMap) { records = rebased }
}
