internal import Foundation

// Ordered/ holds the ordered index: its entries, and the walk over a part of it in the order of a query.
// Invariant: entries ascend by their values in the directions of the columns, then by id. Called by IndexSet, the planner and QueryRun.

/// One record in an ordered index: its values, then its key.
///
/// Entries are equal if their values and keys are, so that an entry finds the one of an earlier state of the same record. Only entries of
/// one index are compared with each other: they have the same columns in the same directions.
struct IndexEntry: Sendable {
  /// The head of the first value.
  let head: UInt64
  let values: [IndexValue]
  let slot: RecordSlot
  let order: Order

  init(values: [IndexValue], slot: RecordSlot, order: Order = Order()) {
    head = values.first.map { IndexHead.of($0, isDescending: order.isDescending(0)) } ?? 0
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

    func isDescending(_ column: Int) -> Bool { descending != 0 && descending & (1 << UInt32(column)) != 0 }

    /// Returns where values stand against others, column by column, as far as both go.
    func compare(_ values: [IndexValue], _ others: [IndexValue], from first: Int = 0) -> ComparisonResult {
      for column in first..<max(first, min(values.count, others.count)) {
        let order = values[column].compared(to: others[column])
        if order == .orderedSame { continue }
        return isDescending(column) ? (order == .orderedAscending ? .orderedDescending : .orderedAscending) : order
      }
      return .orderedSame
    }

    /// Returns the digest of values, and whether it is all of them.
    func digest(_ values: [IndexValue], head: UInt64? = nil) -> (digest: IndexDigest, isExact: Bool) {
      guard let value = values.first else { return (IndexDigest(), true) }
      var digest = IndexDigest(first: head ?? IndexHead.of(value, isDescending: isDescending(0)))
      guard IndexHead.isExact(digest.first, isDescending: isDescending(0)) else {
        let rest = IndexHead.rest(of: value, isDescending: isDescending(0))
        digest.second = rest.number
        return (digest, rest.isAll && values.count == 1)
      }
      guard values.count > 1 else { return (digest, true) }
      digest.second = IndexHead.of(values[1], isDescending: isDescending(1))
      return (digest, values.count == 2 && IndexHead.isExact(digest.second, isDescending: isDescending(1)))
    }
  }

  /// Returns where this entry stands, in the order of the index, against the group of entries whose values begin with a prefix.
  func compared(to prefix: [IndexValue]) -> ComparisonResult {
    let order = order.compare(values, prefix)
    return order == .orderedSame && values.count < prefix.count ? .orderedAscending : order
  }
}

extension IndexEntry: TreeEntry {
  typealias Summary = NoSummary<IndexEntry>

  var key: IndexEntry { self }
  /// Few, as copying a leaf counts the references to the records.
  static var leafCapacity: Int { 12 }

  static func digest(_ key: IndexEntry) -> IndexDigest {
    var (digest, isExact) = key.order.digest(key.values, head: key.head)
    if isExact { digest.key = key.order.keys.head(of: key.slot.key) }
    return digest
  }

  static var isDigestExact: Bool { false }
}

extension IndexEntry: Comparable {
  static func == (left: IndexEntry, right: IndexEntry) -> Bool {
    left.head == right.head && left.hasValues(of: right) && left.slot.key == right.slot.key
  }

  static func < (left: IndexEntry, right: IndexEntry) -> Bool {
    if left.head != right.head { return left.head < right.head }
    let order = left.order
    let isFirstEqual = IndexHead.isExact(left.head, isDescending: order.isDescending(0))
    return switch order.compare(left.values, right.values, from: isFirstEqual ? 1 : 0) {
    case .orderedAscending: true
    case .orderedDescending: false
    case .orderedSame: left.values.count < right.values.count || order.keys.isBefore(left.slot.key, right.slot.key)
    }
  }

  /// Whether both have the same values.
  func hasValues(of other: IndexEntry) -> Bool { head == other.head && values == other.values }
}

extension PersistentTree<IndexEntry> {
  /// Returns the rank of the first entry of a group, the entries whose values begin with a prefix, or that it would have.
  func start(of prefix: [IndexValue]) -> Int { rank(of: prefix) { $0 != .orderedAscending } }

  /// Returns the rank behind the last entry of a group.
  func end(of prefix: [IndexValue]) -> Int { rank(of: prefix) { $0 == .orderedDescending } }

  /// Returns the rank of the first entry that is not before values, of all columns, and a key.
  func rank(of values: [IndexValue], _ key: RecordKey) -> Int {
    guard let order = first?.order else { return 0 }
    var (digest, isExact) = order.digest(values)
    if isExact { digest.key = order.keys.head(of: key) }
    return rank(
      whereFirst: { entry in
        switch entry.compared(to: values) {
        case .orderedAscending: false
        case .orderedDescending: true
        case .orderedSame: !order.keys.isBefore(entry.slot.key, key)
        }
      },
      byDigest: { $0 < digest ? false : digest < $0 ? true : nil })
  }

  /// Returns the rank of the first entry whose place against a group is asked for.
  private func rank(of prefix: [IndexValue], whereFirst isMet: (ComparisonResult) -> Bool) -> Int {
    guard let order = first?.order, !prefix.isEmpty else { return isMet(.orderedSame) ? 0 : count }
    let (group, isExact) = order.digest(prefix)
    // Of an exact value alone there is no rest: the column behind it is no matter.
    let comparesSecond = prefix.count > 1 || !IndexHead.isExact(group.first, isDescending: order.isDescending(0))
    return rank(
      whereFirst: { isMet($0.compared(to: prefix)) },
      byDigest: { digest in
        if digest.first != group.first { return isMet(digest.first < group.first ? .orderedAscending : .orderedDescending) }
        if comparesSecond, digest.second != group.second {
          return isMet(digest.second < group.second ? .orderedAscending : .orderedDescending)
        }
        return isExact ? isMet(.orderedSame) : nil
      })
  }
}

extension IndexValue {
  /// Returns which value comes first, or that they are equal, at the cost of little more than one comparison.
  func compared(to other: IndexValue) -> ComparisonResult {
    if self == other { return .orderedSame }
    return self < other ? .orderedAscending : .orderedDescending
  }
}
