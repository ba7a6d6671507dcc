package import Larder

/// Record that differs between two stores or dumps, with the kind of difference.
package struct RecordDifference: Sendable {
  /// Kind of difference between the two sides.
  package enum Kind: String, Sendable {
    /// Only the second side has the record.
    case added
    /// Only the first side has the record.
    case removed
    /// Both sides have the record, with different contents.
    case changed
  }

  /// Whether the record was added, removed or changed.
  package let kind: Kind
  /// Collection and key of the record.
  package let address: RecordAddress
  /// The record's value on each side.
  ///
  /// `nil` if that side lacks the record, or if its value is not JSON.
  package let old, new: JSONValue?
  /// Paths of the fields that differ.
  ///
  /// Empty if the values are equal, or if one of them is not JSON.
  package let fields: [FieldPath]
  /// True if the values are equal and only the revision or the schema version differs.
  package let isOnlyRevision: Bool
}

extension RecordDifference {
  /// Returns the differences between two sides, sorted by address.
  /// - Parameters:
  ///   - collections: Collections to compare. An empty set stands for all of them.
  ///   - includesRevisions: Whether records with equal values are reported if their revisions or schema versions differ.
  package static func all(
    between old: ComparedRecords, and new: ComparedRecords, collections: Set<String> = [], includesRevisions: Bool = false
  ) -> [RecordDifference] {
    let isWanted = { (record: StoredRecord) in collections.isEmpty || collections.contains(record.collection) }
    var (left, right) = (old.records.filter(isWanted)[...], new.records.filter(isWanted)[...])
    var differences: [RecordDifference] = []
    // Both sides are sorted by address, so one merge pass finds every difference without a dictionary.
    while let first = left.first ?? right.first {
      let (one, other) = (left.first, right.first)
      if let one, other.map({ one.address < $0.address }) ?? true {
        differences.append(difference(.removed, first.address, one, nil))
        left.removeFirst()
      } else if let other, one.map({ other.address < $0.address }) ?? true {
        differences.append(difference(.added, other.address, nil, other))
        right.removeFirst()
      } else if let one, let other {
        if let change = change(one, other, includesRevisions) { differences.append(change) }
        left.removeFirst()
        right.removeFirst()
      }
    }
    return differences
  }

  private static func difference(_ kind: Kind, _ address: RecordAddress, _ old: StoredRecord?, _ new: StoredRecord?) -> RecordDifference {
    RecordDifference(kind: kind, address: address, old: old?.json, new: new?.json, fields: [], isOnlyRevision: false)
  }

  private static func change(_ old: StoredRecord, _ new: StoredRecord, _ includesRevisions: Bool) -> RecordDifference? {
    let isSameNumber = old.revision == new.revision && old.schemaVersion == new.schemaVersion
    // Equal bytes are the usual case. They are compared first, which saves parsing both values as JSON.
    if old.value == new.value && (isSameNumber || !includesRevisions) { return nil }
    let (one, other) = (old.json, new.json)
    // One value may have different bytes, for example in a dump, whose values are written anew with sorted names.
    let isEqual = old.value == new.value || (one != nil && one == other)
    if isEqual && (isSameNumber || !includesRevisions) { return nil }
    var fields: [FieldPath] = []
    if !isEqual, let one, let other { collect(one, other, [], &fields) }
    return RecordDifference(kind: .changed, address: old.address, old: one, new: other, fields: fields, isOnlyRevision: isEqual)
  }

  /// Appends the paths at which two values differ.
  ///
  /// Objects are compared member by member. Arrays are compared as a whole, because an insertion moves all later positions.
  private static func collect(_ old: JSONValue, _ new: JSONValue, _ steps: [FieldPath.Step], _ fields: inout [FieldPath]) {
    guard old != new else { return }
    guard let one = old.objectValue, let other = new.objectValue else {
      fields.append(FieldPath(steps: steps))
      return
    }
    // `RecordKey` sorts by bytes and compares them. A `String` would take two Unicode spellings of one name for equal.
    for name in Set((one.names + other.names).map { RecordKey($0) }).sorted().map(\.text) {
      let steps = steps + [.member(name)]
      switch (one[name] as JSONValue?, other[name] as JSONValue?) {
      case (let old?, let new?): collect(old, new, steps, &fields)
      case (nil, nil): break
      default: fields.append(FieldPath(steps: steps))
      }
    }
  }
}
