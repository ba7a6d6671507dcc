internal import Foundation

// Ordered/ holds the ordered index: its entries, and the walk over a part of it in the order of a query.
// Invariant: entries ascend by their values in the directions of the columns, then by id. Called by IndexSet, the planner and QueryRun.

/// One record in an ordered index: its values, then its key.
///
/// Entries are equal if their values and keys are, so that an entry finds the one of an earlier state of the same record. Only entries of
/// one index are compared with each other: they have the same columns in the same directions.
struct IndexEntry: Sendable {
  let values: [IndexValue]
  let slot: RecordSlot
  let order: Order

  init(values: [IndexValue], slot: RecordSlot, order: Order = Order()) {
    self.values = values
    self.slot = slot
    self.order = order
  }

  /// The order of the entries of one index.
  struct Order: Sendable {
    /// The columns that descend, the first one in the lowest bit.
    ///
    /// Columns after the 32nd ascend; records of equal values always ascend by key.
    let descending: UInt32
    let keys: KeyOrder

    init(descending columns: [Bool] = [], keys: KeyOrder = .bytes) {
      descending = columns.enumerated().reduce(0) { $0 | ($1.element ? 1 << UInt32($1.offset) : 0) }
      self.keys = keys
    }
  }

  /// Returns where this entry stands, in the order of the index, against the group of entries whose values begin with a prefix.
  func compared(to prefix: [IndexValue]) -> ComparisonResult {
    for column in 0..<min(values.count, prefix.count) {
      let order = values[column].compared(to: prefix[column])
      if order == .orderedSame { continue }
      let isReversed = self.order.descending != 0 && self.order.descending & (1 << UInt32(column)) != 0
      return isReversed ? (order == .orderedAscending ? .orderedDescending : .orderedAscending) : order
    }
    return values.count < prefix.count ? .orderedAscending : .orderedSame
  }
}

extension IndexEntry: TreeEntry {
  typealias Summary = NoSummary<IndexEntry>

  var key: IndexEntry { self }
}

extension IndexEntry: Comparable {
  static func == (left: IndexEntry, right: IndexEntry) -> Bool {
    left.values == right.values && left.slot.key == right.slot.key
  }

  static func < (left: IndexEntry, right: IndexEntry) -> Bool {
    switch left.compared(to: right.values) {
    case .orderedAscending: true
    case .orderedDescending: false
    case .orderedSame: left.order.keys.isBefore(left.slot.key, right.slot.key)
    }
  }
}

extension PersistentTree<IndexEntry> {
  /// Returns the rank of the first entry of a group, the entries whose values begin with a prefix, or that it would have.
  func start(of prefix: [IndexValue]) -> Int { rank { $0.compared(to: prefix) != .orderedAscending } }

  /// Returns the rank behind the last entry of a group.
  func end(of prefix: [IndexValue]) -> Int { rank { $0.compared(to: prefix) == .orderedDescending } }
}

extension IndexValue {
  /// Returns which value comes first, or that they are equal, at the cost of little more than one comparison.
  func compared(to other: IndexValue) -> ComparisonResult {
    if self == other { return .orderedSame }
    return self < other ? .orderedAscending : .orderedDescending
  }
}
