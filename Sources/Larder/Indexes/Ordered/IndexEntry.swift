internal import Foundation

// Ordered/ holds the ordered index: its entries, and the traversal of a range of entries in the order of a query.
// Invariant: entries are sorted by their values in the directions of the columns, then by record id.
// Called by IndexSet, the query planner and QueryRun.

/// An entry of an ordered index: the indexed values of a record, and the record.
///
/// Two entries are equal if their values and record keys are equal. An entry that is made from the old values of a changed record therefore
/// finds the record's entry in the index. Only entries of one index are compared with each other, so two compared entries have the same
/// columns in the same directions.
struct IndexEntry: Sendable {
  /// First 64 bits of the first column's value, in the form of ``IndexHead``.
  let head: UInt64
  let slot: RecordSlot
  private let rest: Rest
  private let keys: KeyOrder
  private let descending: UInt32

  /// The part of an entry's values that the head does not contain, in a form that allocates no memory for most entries.
  private enum Rest: Sendable {
    /// One value, which the entry's head and the number of ``IndexHead/rest(of:isDescending:)`` together determine.
    case one(UInt64)
    /// Two values, each of which fits into its ``IndexHead`` of 64 bits. The associated number is the head of the second value.
    case two(UInt64)
    /// One text of more than seven bytes, which does not fit into the entry's head of 64 bits.
    case text(String)
    case values([IndexValue])
  }

  init(values: [IndexValue], slot: RecordSlot, order: Order = Order()) {
    let (digest, isExact) = order.digest(values)
    (head, self.slot) = (digest.first, slot)
    (keys, descending) = (order.keys, order.descending)
    // Numbers and short texts need no array of values, so an entry with such values takes 40 bytes and no allocation.
    rest =
      switch values.count {
      case 1 where isExact: .one(digest.second)
      case 2 where isExact: .two(digest.second)
      case 1: if case .text(let text) = values[0].form { .text(text) } else { .values(values) }
      default: .values(values)
      }
  }

  /// Directions of the index's columns and order of the record keys, which every entry stores.
  var order: Order { Order(descending: descending, keys: keys) }

  /// Indexed values of the record, one for each column of the index.
  ///
  /// A text of up to seven bytes is returned in Unicode's composed form, because `IndexHead` stores texts in that form.
  var values: [IndexValue] { if case .values(let values) = rest { values } else { (0..<columnCount).map(value) } }

  var columnCount: Int {
    switch rest {
    case .one, .text: 1
    case .two: 2
    case .values(let values): values.count
    }
  }

  /// Returns the value of a column, which is rebuilt from its head if the entry stores neither the text nor an array of values.
  func value(_ column: Int) -> IndexValue {
    switch rest {
    case .one(let number): IndexHead.value(head, number, isDescending: order.isDescending(0))
    case .two(let second): IndexHead.value(column == 0 ? head : second, 0, isDescending: order.isDescending(column))
    case .text(let text): IndexValue(text)
    case .values(let values): values[column]
    }
  }

  /// The order of the entries of one index: the directions of its columns, and the order of record keys.
  struct Order: Sendable {
    /// One bit for each column, which is 1 if the column descends.
    ///
    /// The lowest bit belongs to the first column.
    ///
    /// Columns after ``directionLimit`` ascend. Records with equal values always ascend by record key.
    let descending: UInt32
    /// Number of columns that may descend.
    static let directionLimit = 32
    let keys: KeyOrder

    init(descending: UInt32, keys: KeyOrder) { (self.descending, self.keys) = (descending, keys) }

    init(descending columns: [Bool] = [], keys: KeyOrder = .bytes) {
      descending = columns.enumerated().reduce(0) { $0 | ($1.element ? 1 << UInt32($1.offset) : 0) }
      self.keys = keys
    }

    func isDescending(_ column: Int) -> Bool { descending != 0 && descending & (1 << UInt32(column)) != 0 }

    /// Compares two lists of values column by column, up to the end of the shorter list.
    func compare(_ values: [IndexValue], _ others: [IndexValue], from first: Int = 0) -> ComparisonResult {
      for column in first..<max(first, min(values.count, others.count)) {
        let order = values[column].compared(to: others[column])
        if order != .orderedSame { return placed(order, column) }
      }
      return .orderedSame
    }

    /// Returns the result of a comparison of two values of a column, reversed if the column descends.
    func placed(_ result: ComparisonResult, _ column: Int) -> ComparisonResult {
      guard result != .orderedSame, isDescending(column) else { return result }
      return result == .orderedAscending ? .orderedDescending : .orderedAscending
    }

    /// Returns the digest of an entry's values, and true if the digest determines all values.
    func digest(_ values: [IndexValue], head: UInt64? = nil) -> (digest: IndexDigest, isExact: Bool) {
      guard let value = values.first else { return (IndexDigest(), true) }
      var digest = IndexDigest(first: head ?? IndexHead.of(value, isDescending: isDescending(0)))
      // If the head does not hold the whole first value, the second number of the digest is the rest of the first value. Entries are
      // compared by their whole first value before their second value.
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

  /// Compares the first values of this entry with a prefix of values, in the order of the index.
  ///
  /// - Returns: `.orderedSame` if this entry's first values equal the prefix.
  func compared(to prefix: [IndexValue]) -> ComparisonResult {
    let count = columnCount
    for column in 0..<min(count, prefix.count) {
      let place = order.placed(value(column).compared(to: prefix[column]), column)
      if place != .orderedSame { return place }
    }
    return count < prefix.count ? .orderedAscending : .orderedSame
  }

  /// Compares this entry's values with the values of another entry that has the same head.
  private func comparedBehindHead(to other: IndexEntry) -> ComparisonResult {
    switch (rest, other.rest) {
    // A descending column stores its numbers with inverted bits, so the numbers ascend in the order of the index for both directions.
    case (.one(let number), .one(let otherNumber)), (.two(let number), .two(let otherNumber)):
      return number == otherNumber ? .orderedSame : number < otherNumber ? .orderedAscending : .orderedDescending
    // Two texts with equal heads have their first seven bytes in common. The whole texts are compared, because skipping the seven bytes
    // would copy the texts.
    case (.text(let text), .text(let otherText)):
      let isBefore = text != otherText && IndexHead.precedes(text, otherText)
      return order.placed(text == otherText ? .orderedSame : isBefore ? .orderedAscending : .orderedDescending, 0)
    default:
      let isFirstEqual = IndexHead.isExact(head, isDescending: order.isDescending(0))
      return order.compare(values, other.values, from: isFirstEqual ? 1 : 0)
    }
  }
}

extension IndexEntry: TreeEntry {
  typealias Summary = NoSummary<IndexEntry>

  var key: IndexEntry { self }
  /// Leaves of the tree hold few entries, because an edit copies a leaf and retains each record of the leaf.
  static var leafCapacity: Int { 12 }

  static func digest(_ key: IndexEntry) -> IndexDigest {
    var (digest, isExact) = key.valueDigest
    // The record key orders only entries with equal values. If the digest is inexact, its equal numbers do not imply equal values, so the
    // digest does not include the record key.
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

  /// True if two entries have the same values in all columns.
  func hasValues(of other: IndexEntry) -> Bool {
    head == other.head && columnCount == other.columnCount && comparedBehindHead(to: other) == .orderedSame
  }

  /// True if two entries have the same values in the first `columns` columns.
  func hasValues(of other: IndexEntry, inFirst columns: Int) -> Bool {
    if columns == 0 { return true }
    guard head == other.head else { return false }
    // If the equal heads determine the whole first value, the first column needs no comparison.
    let isFirstEqual = IndexHead.isExact(head, isDescending: order.isDescending(0))
    return ((isFirstEqual ? 1 : 0)..<columns).allSatisfy { value($0) == other.value($0) }
  }

  /// True if a value of the entry is `nil`, so that the entry never violates a unique index.
  var hasNull: Bool { (0..<columnCount).contains { value($0) == .null } }
}

extension PersistentTree<IndexEntry> {
  /// Removes all entries of a record by its key, except the entry of the record version `kept`.
  ///
  /// If a type decodes the same bytes to other values each time, a search by value does not find the entries of its records. Cost: reads
  /// every entry of the index.
  mutating func sweep(_ key: RecordKey, butFor kept: RecordSlot? = nil) {
    // The entries are collected before the first removal, because a removal changes the tree that the loop reads.
    var left: [IndexEntry] = []
    forEachLeaf { leaf in left += leaf.filter { $0.slot.key == key && $0.slot !== kept } }
    for entry in left { remove(entry) }
  }

  /// Returns the rank of the first entry whose values begin with a prefix, or the rank at which such an entry would be inserted.
  func start(of prefix: [IndexValue]) -> Int { rank(of: prefix) { $0 != .orderedAscending } }

  /// Returns the rank directly after the last entry whose values begin with a prefix.
  func end(of prefix: [IndexValue]) -> Int { rank(of: prefix) { $0 == .orderedDescending } }

  /// Returns the rank of the first entry at or after a position, which consists of the values of all columns and a record key.
  func rank(of values: [IndexValue], _ key: RecordKey) -> Int {
    // The order of the index is stored in its entries. An empty tree has no order, and every position has the rank 0.
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

  /// Returns the rank of the first entry whose comparison with a prefix of values meets a condition.
  private func rank(of prefix: [IndexValue], whereFirst isMet: (ComparisonResult) -> Bool) -> Int {
    guard let order = first?.order, !prefix.isEmpty else { return isMet(.orderedSame) ? 0 : count }
    let (group, isExact) = order.digest(prefix)
    // If the head determines the whole first value, the second number of a digest belongs to the second column. A prefix of one value says
    // nothing about the second column, so the second number is not compared for such a prefix.
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
  /// Compares two index values, for little more than the cost of `==`.
  func compared(to other: IndexValue) -> ComparisonResult {
    // `==` comes first, because finding out with `<` that two texts are equal takes two passes over the texts.
    if self == other { return .orderedSame }
    return self < other ? .orderedAscending : .orderedDescending
  }
}

/// The sorted entries of a range of the collection's records, one of the portions that an index build merges.
///
/// The build of an ordered index makes its portions in parallel.
///
/// The digests of the entries are sorted and merged, because digests are small and compare as numbers. Two entries are compared only if
/// their digests are equal.
struct OrderedPortion: Sendable {
  /// The digest of an entry, and the entry's position in ``entries``.
  private struct Place: Sendable {
    let digest: IndexDigest
    var position: Int
  }

  private var entries: [IndexEntry]
  private var places: [Place]

  /// Creates a portion by sorting entries, whose record keys must all be different.
  init(_ entries: [IndexEntry]) {
    self.entries = entries
    places = entries.enumerated().map { Place(digest: IndexEntry.digest($0.element), position: $0.offset) }
    places.sort { Self.isBefore($0, $1, entries: entries) }
  }

  /// Merges the entries of all portions of an ordered index, and returns them in the order of the index.
  static func joined(_ portions: [OrderedPortion]) -> [IndexEntry] {
    let entries = portions.count == 1 ? portions[0].entries : portions.flatMap(\.entries)
    var runs: [[Place]] = []
    var start = 0
    for portion in portions {
      runs.append(portion.places.map { Place(digest: $0.digest, position: $0.position + start) })
      start += portion.entries.count
    }
    // The sorted lists of the portions (runs) are merged in pairs, so that each entry moves about log₂(number of runs) times. If all runs
    // were merged into the first one after another, an entry of the first run would move once for each other run.
    while runs.count > 1 {
      runs = stride(from: 0, to: runs.count, by: 2).map { index in
        index + 1 < runs.count ? runs[index].merged(with: runs[index + 1]) { isBefore($0, $1, entries: entries) } : runs[index]
      }
    }
    return runs.first?.map { entries[$0.position] } ?? []
  }

  // `isBefore` is inlined, because an index build calls it n log n times to compare a few numbers.
  @inline(__always)
  private static func isBefore(_ left: Place, _ right: Place, entries: [IndexEntry]) -> Bool {
    if left.digest != right.digest { return left.digest < right.digest }
    return entries[left.position] < entries[right.position]
  }
}
