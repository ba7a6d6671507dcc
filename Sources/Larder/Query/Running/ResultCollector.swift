internal import Foundation

/// A collector of the first results of a query, while candidates come in, in their order or in any.
struct ResultCollector<Item: Sendable> {
  private let order: ResultOrder<Item>
  /// The order by what was read of the candidates once; `nil` when a property that the query sorts by has no index values.
  private let keyOrder: SortKey.Order?
  private let readFirst: (@Sendable (any DecodedRecord) -> IndexValue?)?
  /// The number of results that decide the answer; `nil` for all.
  private let needed: Int?
  /// Whether candidates come in the query's order, so that the first ones are the answer.
  private let arrivesInOrder: Bool
  private var kept: [QueryCandidate<Item>] = []
  /// The sort keys of those that are kept: small, so that sorting moves no values.
  private var keys: [SortKey] = []
  /// The last of the first `needed`, once there were so many: what does not come before it is out.
  private var bar: SortKey?

  init(order: ResultOrder<Item>, needed: Int?, arrivesInOrder: Bool) {
    self.order = order
    self.needed = needed
    self.arrivesInOrder = arrivesInOrder
    let isReadable = order.columns.allSatisfy { $0.value != nil }
    keyOrder = isReadable ? SortKey.Order(isReversed: order.columns.map { $0.isReversed }, keys: order.keys) : nil
    readFirst = order.columns.first?.valueInPlace
  }

  /// Whether the first property of a record tells that it is out, as that of most does once enough are kept.
  ///
  /// Reads it where it lies: to copy a value counts a reference for each of its texts. Mutating, or the collector would be copied.
  mutating func excludes(_ slot: RecordSlot) -> Bool {
    guard let bar, let keyOrder, let readFirst, let record = slot.unretainedValue else { return false }
    return record._withUnsafeGuaranteedRef { record in readFirst(record).map { bar.head < keyOrder.head(of: $0) } ?? false }
  }

  /// Adds a candidate.
  /// - Returns: `false` when no further one can matter.
  mutating func add(_ candidate: QueryCandidate<Item>) -> Bool {
    guard needed != 0 else { return false }
    if arrivesInOrder {
      kept.append(candidate)
      return kept.count < needed ?? .max
    }
    // Most come behind those that are kept, and their first property tells: then nothing is made of the others.
    if let bar, let keyOrder, !keyOrder.isReversed.isEmpty, bar.head < keyOrder.head(of: order.columns[0].value?(candidate.item) ?? .null) {
      return true
    }
    let key = sortKey(of: candidate)
    if let bar, !(keyOrder?.isBefore(key, bar) ?? order.isBefore(candidate, kept[bar.position])) { return true }
    keys.append(key)
    kept.append(candidate)
    // Cut back only when twice too many are kept, so that each one is sorted a constant number of times.
    if let needed, kept.count / 2 > max(needed, 32) { cut(to: needed) }
    return true
  }

  /// Returns the results in order, without the first so many.
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
      keys.sort { [order, kept] in order.isBefore(kept[$0.position], kept[$1.position]) }
    }
    keys.removeLast(max(0, keys.count - count))
    kept = keys.map { kept[$0.position] }
    for position in keys.indices { keys[position].position = position }
    if keys.count == count { bar = keys.last }
  }
}

/// The values that order a candidate among the results, of one type whatever the type of the records is.
struct SortKey: Sendable {
  /// The head of the first value, turned round where it is sorted in reverse: most comparisons end with it.
  let head: UInt64
  let values: [IndexValue]
  let distance: Double?
  let score: Double?
  let key: RecordKey
  /// The position of the candidate among those that are kept.
  var position: Int

  /// The order of ``ResultOrder``, by values that were read before.
  struct Order: Sendable {
    let isReversed: [Bool]
    let keys: KeyOrder

    /// Returns the head of a first value.
    func head(of value: IndexValue) -> UInt64 { IndexHead.of(value, isDescending: isReversed.first ?? false) }

    /// Whether the left one comes first.
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

/// A record that may be a result of a query: two references, whatever the record holds.
struct QueryCandidate<Item: Sendable>: Sendable {
  let slot: RecordSlot
  let value: DecodedValue<Item>
  /// The distance from the place of `near`, in metres.
  var distance: Double?
  /// The rank of its words; more is better.
  var score: Double?

  var item: Item { value.item }
}

/// The order of a query's results: total, because at last the id decides.
struct ResultOrder<Item: Sendable>: Sendable {
  let columns: [SortColumn<Item>]
  let keys: KeyOrder

  /// Whether the left one comes first.
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
