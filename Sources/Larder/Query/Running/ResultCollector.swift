internal import Foundation

/// Collects the first results of a query, at most a given number, from candidates in any order or in the query's order.
struct ResultCollector<Item: Sendable> {
  private let order: ResultOrder<Item>
  /// Order that compares stored sort keys, or `nil` if a property by which the query sorts has no index values.
  private let keyOrder: SortKey.Order?
  private let readFirst: (@Sendable (any DecodedRecord) -> IndexValue?)?
  /// Number of results that the query needs, offset included, or `nil` for all results.
  private let needed: Int?
  /// True if candidates come in the query's order, so that the first candidates are the results.
  private let arrivesInOrder: Bool
  private var kept: [QueryCandidate<Item>] = []
  /// Sort keys of the kept candidates.
  ///
  /// A sort of the candidates moves the small sort keys and not the values of records.
  private var keys: [SortKey] = []
  /// Sort key of the last candidate that is needed, or `nil` until candidates were cut to the needed number.
  ///
  /// A candidate whose sort key comes after `bar` in the query's order is dropped.
  private var bar: SortKey?

  init(order: ResultOrder<Item>, needed: Int?, arrivesInOrder: Bool) {
    self.order = order
    self.needed = needed
    self.arrivesInOrder = arrivesInOrder
    let isReadable = order.columns.allSatisfy { $0.value != nil }
    keyOrder = isReadable ? SortKey.Order(isReversed: order.columns.map { $0.isReversed }, keys: order.keys) : nil
    readFirst = order.columns.first?.valueInPlace
  }

  /// Returns true if the first property by which the query sorts already excludes a record from the results.
  ///
  /// Once enough candidates are kept, the first sorted property excludes most records. The property is read in place, because a copy of the
  /// record would retain each of its strings. `excludes` is mutating, because otherwise the collector would be copied.
  mutating func excludes(_ slot: RecordSlot) -> Bool {
    // A record that is not decoded yet has no value from which the property could be read in place.
    guard let bar, let keyOrder, let readFirst, let record = slot.unretainedValue else { return false }
    return record._withUnsafeGuaranteedRef { record in readFirst(record).map { bar.head < keyOrder.head(of: $0) } ?? false }
  }

  /// Adds a candidate, unless the kept candidates exclude it.
  ///
  /// - Returns: False if no further candidate can change the results, so that the caller may stop.
  mutating func add(_ candidate: QueryCandidate<Item>) -> Bool {
    // `add` keeps a candidate before it compares the count, so with a limit of 0 it would keep one candidate too many.
    guard needed != 0 else { return false }
    if arrivesInOrder {
      kept.append(candidate)
      return kept.count < needed ?? .max
    }
    // The first property by which the query sorts excludes most candidates, and for an excluded candidate no sort key is created.
    if let bar, let keyOrder, !keyOrder.isReversed.isEmpty, bar.head < keyOrder.head(of: order.columns[0].value?(candidate.item) ?? .null) {
      return true
    }
    let key = sortKey(of: candidate)
    if let bar, !(keyOrder?.isBefore(key, bar) ?? order.isBefore(candidate, kept[bar.position])) { return true }
    keys.append(key)
    kept.append(candidate)
    // The candidates are sorted and cut to the needed number only when more than twice the needed number is kept, so that each candidate is
    // sorted a constant number of times. With a small limit, more than 64 candidates are gathered first, because otherwise almost every
    // candidate would cause a sort.
    if let needed, kept.count / 2 > max(needed, 32) { cut(to: needed) }
    return true
  }

  /// Returns the results in the query's order, without the first `skipped` results.
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
      // The closure captures copies of `order` and `kept`, because it must not access `self` while `sort` modifies `keys`.
      keys.sort { [order, kept] in order.isBefore(kept[$0.position], kept[$1.position]) }
    }
    keys.removeLast(max(0, keys.count - count))
    kept = keys.map { kept[$0.position] }
    // The kept candidates now have other positions in the array, so the positions in the keys are updated.
    for position in keys.indices { keys[position].position = position }
    // The sort key of the last kept candidate excludes later candidates only if the needed number of candidates is kept.
    if keys.count == count { bar = keys.last }
  }
}

/// The values that determine the place of a candidate among the results, in a type without generic parameters.
struct SortKey: Sendable {
  /// Leading bits of the first sorted value (its head), inverted for a descending order.
  ///
  /// The head decides most comparisons of two sort keys.
  let head: UInt64
  let values: [IndexValue]
  let distance: Double?
  let score: Double?
  let key: RecordKey
  /// Position of the candidate in the array of kept candidates.
  var position: Int

  /// The same order as ``ResultOrder``, computed from the stored values of sort keys.
  struct Order: Sendable {
    let isReversed: [Bool]
    let keys: KeyOrder

    /// Returns the head (the leading bits) of the first sorted value, inverted if its column is descending.
    func head(of value: IndexValue) -> UInt64 { IndexHead.of(value, isDescending: isReversed.first ?? false) }

    /// Returns true if the candidate with the left key comes first.
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
  /// Distance of the record from the place of `near`, in metres, or `nil` for a query without `near`.
  var distance: Double?
  /// Rank of the record's text for the query's words, or `nil` without words.
  ///
  /// A greater rank is a better match.
  var score: Double?

  var item: Item { value.item }
}

/// The total order of a query's results.
///
/// Records that are equal in all sorted properties are ordered by id.
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
