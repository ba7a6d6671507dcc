internal import Foundation

// Ordered/ holds the ordered index: its entries, and the walk over a part of it in the order of a query. Invariant: entries ascend by their
// values in the directions of the columns, then by id. Called by IndexSet, the planner and QueryRun.

/// A record in an ordered index: its values, then its key.
///
/// Entries are equal if their values and keys are, so that an entry finds the entry of an earlier state of the same record. Only entries of
/// one index are compared with each other: they have the same columns in the same directions.
struct IndexEntry: Sendable {
  /// First 64 bits of the first value, in the form of ``IndexHead``.
  let head: UInt64
  let slot: RecordSlot
  private let rest: Rest
  private let keys: KeyOrder
  private let descending: UInt32

  /// The part of the values that the head does not contain, in a form that for most entries allocates no memory.
  private enum Rest: Sendable {
    /// One value, which is its head together with the number that ``IndexHead/rest(of:isDescending:)`` returns.
    case one(UInt64)
    /// Two values, each of which is its head alone.
    case two(UInt64)
    case text(String)
    case values([IndexValue])
  }

  init(values: [IndexValue], slot: RecordSlot, order: Order = Order()) {
    let (digest, isExact) = order.digest(values)
    (head, self.slot) = (digest.first, slot)
    (keys, descending) = (order.keys, order.descending)
    // Numbers and short texts need no array: an entry then takes 40 bytes and no allocation.
    rest =
      switch values.count {
      case 1 where isExact: .one(digest.second)
      case 2 where isExact: .two(digest.second)
      case 1: if case .text(let text) = values[0].form { .text(text) } else { .values(values) }
      default: .values(values)
      }
  }

  /// Directions of the index's columns and order of its keys, which each entry carries.
  var order: Order { Order(descending: descending, keys: keys) }

  /// Values of all columns.
  ///
  /// A text of up to seven bytes is returned in Unicode's composed form, in which texts are compared.
  var values: [IndexValue] { if case .values(let values) = rest { values } else { (0..<columnCount).map(value) } }

  var columnCount: Int {
    switch rest {
    case .one, .text: 1
    case .two: 2
    case .values(let values): values.count
    }
  }

  /// Returns the value of a column, rebuilt from the head if no array holds it.
  func value(_ column: Int) -> IndexValue {
    switch rest {
    case .one(let number): IndexHead.value(head, number, isDescending: order.isDescending(0))
    case .two(let second): IndexHead.value(column == 0 ? head : second, 0, isDescending: order.isDescending(column))
    case .text(let text): IndexValue(text)
    case .values(let values): values[column]
    }
  }

  /// The order of the entries of one index: the directions of its columns, and the order of keys.
  struct Order: Sendable {
    /// Columns that descend, as bits, the first one lowest.
    ///
    /// Columns after the 32nd ascend. Records of equal values always ascend by key.
    let descending: UInt32
    let keys: KeyOrder

    init(descending: UInt32, keys: KeyOrder) { (self.descending, self.keys) = (descending, keys) }

    init(descending columns: [Bool] = [], keys: KeyOrder = .bytes) {
      descending = columns.enumerated().reduce(0) { $0 | ($1.element ? 1 << UInt32($1.offset) : 0) }
      self.keys = keys
    }

    func isDescending(_ column: Int) -> Bool { descending != 0 && descending & (1 << UInt32(column)) != 0 }

    /// Compares values with others column by column, up to the end of the shorter list.
    func compare(_ values: [IndexValue], _ others: [IndexValue], from first: Int = 0) -> ComparisonResult {
      for column in first..<max(first, min(values.count, others.count)) {
        let order = values[column].compared(to: others[column])
        if order != .orderedSame { return placed(order, column) }
      }
      return .orderedSame
    }

    /// Returns the result of a comparison, reversed if the column descends.
    func placed(_ result: ComparisonResult, _ column: Int) -> ComparisonResult {
      guard result != .orderedSame, isDescending(column) else { return result }
      return result == .orderedAscending ? .orderedDescending : .orderedAscending
    }

    /// Returns the digest of values, and true if the digest determines all of them.
    func digest(_ values: [IndexValue], head: UInt64? = nil) -> (digest: IndexDigest, isExact: Bool) {
      guard let value = values.first else { return (IndexDigest(), true) }
      var digest = IndexDigest(first: head ?? IndexHead.of(value, isDescending: isDescending(0)))
      // The rest of the first value decides before the second value does, so it takes the second number.
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

  /// Compares this entry with the group of entries whose values begin with a prefix, in the order of the index.
  func compared(to prefix: [IndexValue]) -> ComparisonResult {
    let count = columnCount
    for column in 0..<min(count, prefix.count) {
      let place = order.placed(value(column).compared(to: prefix[column]), column)
      if place != .orderedSame { return place }
    }
    return count < prefix.count ? .orderedAscending : .orderedSame
  }

  /// Compares the values with those of another entry that has the same head.
  private func comparedBehindHead(to other: IndexEntry) -> ComparisonResult {
    switch (rest, other.rest) {
    // The numbers already ascend in the order of the index, also where a column descends.
    case (.one(let number), .one(let otherNumber)), (.two(let number), .two(let otherNumber)):
      return number == otherNumber ? .orderedSame : number < otherNumber ? .orderedAscending : .orderedDescending
    // Both share the first seven bytes, but a comparison of the whole texts needs no copy without them.
    case (.text(let text), .text(let otherText)):
      return order.placed(text == otherText ? .orderedSame : text < otherText ? .orderedAscending : .orderedDescending, 0)
    default:
      let isFirstEqual = IndexHead.isExact(head, isDescending: order.isDescending(0))
      return order.compare(values, other.values, from: isFirstEqual ? 1 : 0)
    }
  }
}

extension IndexEntry: TreeEntry {
  typealias Summary = NoSummary<IndexEntry>

  var key: IndexEntry { self }
  /// Small leaves, because copying a leaf retains each record in it.
  static var leafCapacity: Int { 12 }

  static func digest(_ key: IndexEntry) -> IndexDigest {
    var (digest, isExact) = key.valueDigest
    // The key decides only between equal values, and an inexact digest does not show that they are equal.
    if isExact { digest.key = key.keys.head(of: key.slot.key) }
    return digest
  }

  private var valueDigest: (digest: IndexDigest, isExact: Bool) {
    switch rest {
    case .one(let number), .two(let number): (IndexDigest(first: head, second: number), true)
    case .text(let text):
      (IndexDigest(first: head, second: IndexHead.rest(of: IndexValue(text), isDescending: order.isDescending(0)).number), false)
    case .values(let values): order.digest(values, head: head)
    }
  }

  static var isDigestExact: Bool { false }
}

extension IndexEntry: Comparable {
  static func == (left: IndexEntry, right: IndexEntry) -> Bool {
    left.head == right.head && left.hasValues(of: right) && left.slot.key == right.slot.key
  }

  static func < (left: IndexEntry, right: IndexEntry) -> Bool {
    if left.head != right.head { return left.head < right.head }
    return switch left.comparedBehindHead(to: right) {
    case .orderedAscending: true
    case .orderedDescending: false
    case .orderedSame: left.columnCount < right.columnCount || left.keys.isBefore(left.slot.key, right.slot.key)
    }
  }

  /// True if two entries have the same values.
  func hasValues(of other: IndexEntry) -> Bool {
    head == other.head && columnCount == other.columnCount && comparedBehindHead(to: other) == .orderedSame
  }

  /// True if two entries have the same values in their first columns.
  func hasValues(of other: IndexEntry, inFirst columns: Int) -> Bool {
    if columns == 0 { return true }
    guard head == other.head else { return false }
    // Equal heads that hold the whole value save the comparison of the first column.
    let isFirstEqual = IndexHead.isExact(head, isDescending: order.isDescending(0))
    return ((isFirstEqual ? 1 : 0)..<columns).allSatisfy { value($0) == other.value($0) }
  }

  /// True if a value is missing, so that the entry never violates a unique index.
  var hasNull: Bool { (0..<columnCount).contains { value($0) == .null } }
}

extension PersistentTree<IndexEntry> {
  /// Removes every entry of a record, for a type that decodes to other values each time.
  ///
  /// Cost: reads every entry.
  mutating func sweep(_ key: RecordKey, butFor kept: RecordSlot? = nil) {
    // Collected first: a removal would change the tree that is being read.
    var left: [IndexEntry] = []
    forEachLeaf { leaf in left += leaf.filter { $0.slot.key == key && $0.slot !== kept } }
    for entry in left { remove(entry) }
  }

  /// Returns the rank of the first entry whose values begin with a prefix, or the rank at which it would be.
  func start(of prefix: [IndexValue]) -> Int { rank(of: prefix) { $0 != .orderedAscending } }

  /// Returns the rank behind the last entry whose values begin with a prefix.
  func end(of prefix: [IndexValue]) -> Int { rank(of: prefix) { $0 == .orderedDescending } }

  /// Returns the rank of the first entry at or after a position: the values of all columns, and a key.
  func rank(of values: [IndexValue], _ key: RecordKey) -> Int {
    // Entries carry the order of the index, so an empty tree has none.
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

  /// Returns the rank of the first entry whose comparison with the prefix meets a condition.
  private func rank(of prefix: [IndexValue], whereFirst isMet: (ComparisonResult) -> Bool) -> Int {
    guard let order = first?.order, !prefix.isEmpty else { return isMet(.orderedSame) ? 0 : count }
    let (group, isExact) = order.digest(prefix)
    // An exact head leaves the second number to the next column, which a prefix of one value does not constrain.
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
  /// Compares two index values, at the cost of little more than one comparison.
  func compared(to other: IndexValue) -> ComparisonResult {
    // `==` first: to find equal texts by `<` takes two passes over them.
    if self == other { return .orderedSame }
    return self < other ? .orderedAscending : .orderedDescending
  }
}

/// Sorted entries of a part of an ordered index, to be merged with other portions.
///
/// Portions can be made in parallel.
///
/// The digests of the entries are sorted and merged, because they are small and compare as numbers. Two entries are compared only where
/// their digests are equal.
struct OrderedPortion: Sendable {
  private struct Place: Sendable {
    let digest: IndexDigest
    var position: Int
  }

  private var entries: [IndexEntry]
  private var places: [Place]

  /// Sorts entries, whose record keys are all different.
  init(_ entries: [IndexEntry]) {
    self.entries = entries
    places = entries.enumerated().map { Place(digest: IndexEntry.digest($0.element), position: $0.offset) }
    places.sort { Self.isBefore($0, $1, entries: entries) }
  }

  /// Returns the entries of all portions in the order of the index.
  static func joined(_ portions: [OrderedPortion]) -> [IndexEntry] {
    let entries = portions.count == 1 ? portions[0].entries : portions.flatMap(\.entries)
    var runs: [[Place]] = []
    var start = 0
    for portion in portions {
      runs.append(portion.places.map { Place(digest: $0.digest, position: $0.position + start) })
      start += portion.entries.count
    }
    // Merged in pairs: each round halves the runs, so an entry moves log₂ of their number times, not once for each.
    while runs.count > 1 {
      runs = stride(from: 0, to: runs.count, by: 2).map { index in
        index + 1 < runs.count ? runs[index].merged(with: runs[index + 1]) { isBefore($0, $1, entries: entries) } : runs[index]
      }
    }
    return runs.first?.map { entries[$0.position] } ?? []
  }

  // Called n log n times in a build, to compare a few numbers.
  @inline(__always)
  private static func isBefore(_ left: Place, _ right: Place, entries: [IndexEntry]) -> Bool {
    if left.digest != right.digest { return left.digest < right.digest }
    return entries[left.position] < entries[right.position]
  }
}
