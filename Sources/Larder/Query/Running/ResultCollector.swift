internal import Foundation

/// A bounded top-k collector of a query's results, from candidates that come in any order or in the query's.
struct ResultCollector<Item: Sendable> {
  private let order: ResultOrder<Item>
  /// Order by the values that were read once per candidate, or `nil` if a sorted property has no index values.
  private let keyOrder: SortKey.Order?
  private let readFirst: (@Sendable (any DecodedRecord) -> IndexValue?)?
  /// Number of results that decide the answer, or `nil` for all.
  private let needed: Int?
  /// True if candidates come in the query's order, so that the first ones are the answer.
  private let arrivesInOrder: Bool
  private var kept: [QueryCandidate<Item>] = []
  /// Sort keys of the kept candidates, which are small, so that sorting moves no values.
  private var keys: [SortKey] = []
  /// Sort key of the last needed result, once there are enough.
  ///
  /// A candidate that comes after it is dropped.
  private var bar: SortKey?

  init(order: ResultOrder<Item>, needed: Int?, arrivesInOrder: Bool) {
    self.order = order
    self.needed = needed
    self.arrivesInOrder = arrivesInOrder
    let isReadable = order.columns.allSatisfy { $0.value != nil }
    keyOrder = isReadable ? SortKey.Order(isReversed: order.columns.map { $0.isReversed }, keys: order.keys) : nil
    readFirst = order.columns.first?.valueInPlace
  }

  /// Returns true if the first sorted property of a record already excludes it, as that of most does once enough are kept.
  ///
  /// Reads the property in place, because a copy of a value retains each of its texts. Mutating, because otherwise the collector would be
  /// copied.
  mutating func excludes(_ slot: RecordSlot) -> Bool {
    // A record that is not decoded yet has no value to read in place.
    guard let bar, let keyOrder, let readFirst, let record = slot.unretainedValue else { return false }
    return record._withUnsafeGuaranteedRef { record in readFirst(record).map { bar.head < keyOrder.head(of: $0) } ?? false }
  }

  /// Adds a candidate.
  ///
  /// - Returns: False when no further candidate can affect the results.
  mutating func add(_ candidate: QueryCandidate<Item>) -> Bool {
    // With a limit of 0, the first candidate would be kept before the count is compared.
    guard needed != 0 else { return false }
    if arrivesInOrder {
      kept.append(candidate)
      return kept.count < needed ?? .max
    }
    // Most candidates come after the kept ones by their first property alone. For these no sort key is made.
    if let bar, let keyOrder, !keyOrder.isReversed.isEmpty, bar.head < keyOrder.head(of: order.columns[0].value?(candidate.item) ?? .null) {
      return true
    }
    let key = sortKey(of: candidate)
    if let bar, !(keyOrder?.isBefore(key, bar) ?? order.isBefore(candidate, kept[bar.position])) { return true }
    keys.append(key)
    kept.append(candidate)
    // Cut only when twice as many as needed are kept, so that each candidate is sorted a constant number of times. At least 32, or a small
    // limit would sort at almost every candidate.
    if let needed, kept.count / 2 > max(needed, 32) { cut(to: needed) }
    return true
  }

  /// Returns the results in order, without the first `skipped`.
  consuming func finish(skipping skipped: Int) -> [QueryCandidate<Item>] {
    if !arrivesInOrder { cut(to: needed ?? kept.count) }
    return skipped == 0 ? kept : Array(kept.dropFirst(skipped))
  }

  private func sortKey(of candidate: QueryCandidate<Item>) -> SortKey {
    let values = order.columns.map { $0.value?(candidate.item) ?? .null }
    return SortKey(
      head: values.first.flatMap { keyOrder?.head(of: $0) } ?? 0, values: values, distance: candidate.distance, score: candidate.score,
      key: candidate.slot.key, position: kept.count)
  }

  private mutating func cut(to count: Int) {
    if let keyOrder {
      keys.sort(by: keyOrder.isBefore)
    } else {
      // Copies are captured, because the closure must not read `self` while `keys` of it changes.
      keys.sort { [order, kept] in order.isBefore(kept[$0.position], kept[$1.position]) }
    }
    keys.removeLast(max(0, keys.count - count))
    kept = keys.map { kept[$0.position] }
    // The kept candidates were moved, so the keys must point to their new positions.
    for position in keys.indices { keys[position].position = position }
    // Fewer candidates than needed exclude nothing.
    if keys.count == count { bar = keys.last }
  }
}

/// The values that order a candidate among the results, in a type that does not depend on the type of the records.
struct SortKey: Sendable {
  /// Head of the first sorted value, inverted for a reverse order, which decides most comparisons.
  let head: UInt64
  let values: [IndexValue]
  let distance: Double?
  let score: Double?
  let key: RecordKey
  /// Position of the candidate among the kept ones.
  var position: Int

  /// The order of ``ResultOrder``, on values that were read before.
  struct Order: Sendable {
    let isReversed: [Bool]
    let keys: KeyOrder

    /// Returns the head of a first value in the direction of its column.
    func head(of value: IndexValue) -> UInt64 { IndexHead.of(value, isDescending: isReversed.first ?? false) }

    /// Returns true if the left key comes first.
    func isBefore(_ left: SortKey, _ right: SortKey) -> Bool {
      if left.head != right.head { return left.head < right.head }
      for column in isReversed.indices {
        let order = left.values[column].compared(to: right.values[column])
        if order != .orderedSame { return (order == .orderedAscending) != isReversed[column] }
      }
      if isReversed.isEmpty {
        if let first = left.distance, let second = right.distance {
          if first != second { return first < second }
        } else if let first = left.score, let second = right.score, first != second {
          return first > second
        }
      }
      return keys.isBefore(left.key, right.key)
    }
  }
}

/// A candidate for a query's results: two references and two numbers, for a record of any size.
struct QueryCandidate<Item: Sendable>: Sendable {
  let slot: RecordSlot
  let value: DecodedValue<Item>
  /// Distance from the place of `near`, in metres.
  var distance: Double?
  /// Rank of the record's words, where a greater number is a better match.
  var score: Double?

  var item: Item { value.item }
}

/// The total order of a query's results, in which the record id decides last.
struct ResultOrder<Item: Sendable>: Sendable {
  let columns: [SortColumn<Item>]
  let keys: KeyOrder

  /// Returns true if the left candidate comes first.
  func isBefore(_ left: QueryCandidate<Item>, _ right: QueryCandidate<Item>) -> Bool {
    for column in columns {
      let order = column.compare(left.item, right.item)
      if order != 0 { return order < 0 }
    }
    if columns.isEmpty {
      if let first = left.distance, let second = right.distance {
        if first != second { return first < second }
      } else if let first = left.score, let second = right.score, first != second {
        return first > second
      }
    }
    return keys.isBefore(left.slot.key, right.slot.key)
  }
}
