package import Larder

/// A record that differs between two sides.
package struct RecordDifference: Sendable {
  /// The kind of difference.
  package enum Kind: String, Sendable {
    /// Only the second side has the record.
    case added
    /// Only the first side has the record.
    case removed
    /// Both have it, and not alike.
    case changed
  }

  /// The kind.
  package let kind: Kind
  /// The record's address.
  package let address: RecordAddress
  /// The values of both sides, where the side has the record and its value is JSON.
  package let old, new: JSONValue?
  /// The paths of the fields that differ; none where the values are equal, or no JSON.
  package let fields: [FieldPath]
  /// Whether the values are equal, and revision or schema version differ.
  package let isOnlyRevision: Bool
}

extension RecordDifference {
  /// Compares two sides.
  /// - Parameters:
  ///   - collections: The collections to look at; all if there are none.
  ///   - includesRevisions: Whether records with equal values differ by their revisions and schema versions.
  package static func all(
    between old: ComparedRecords, and new: ComparedRecords, collections: Set<String> = [], includesRevisions: Bool = false
  ) -> [RecordDifference] {
    let isWanted = { (record: StoredRecord) in collections.isEmpty || collections.contains(record.collection) }
    var (left, right) = (old.records.filter(isWanted)[...], new.records.filter(isWanted)[...])
    var differences: [RecordDifference] = []
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
    if old.value == new.value && (isSameNumber || !includesRevisions) { return nil }
    let (one, other) = (old.json, new.json)
    let isEqual = old.value == new.value || (one != nil && one == other)
    if isEqual && (isSameNumber || !includesRevisions) { return nil }
    var fields: [FieldPath] = []
    if !isEqual, let one, let other { collect(one, other, [], &fields) }
    return RecordDifference(kind: .changed, address: old.address, old: one, new: other, fields: fields, isOnlyRevision: isEqual)
  }

  /// Collects the paths at which two values differ: through objects, and not through arrays, in which a position says little.
  private static func collect(_ old: JSONValue, _ new: JSONValue, _ steps: [FieldPath.Step], _ fields: inout [FieldPath]) {
    guard old != new else { return }
    guard let one = old.objectValue, let other = new.objectValue else {
      fields.append(FieldPath(steps: steps))
      return
    }
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
