internal import Foundation

// Planning/ chooses the index that answers a query. Invariant: a plan is right for every state of the collection, and the counts of the
// indexes decide only its cost. Called by QueryRun.

/// A planner of queries: it chooses the access path that reads the fewest records, by the exact counts of the indexes.
struct QueryPlanner {
  let query: QueryShape
  let indexes: IndexSet
  let recordCount: Int

  /// An access path with its expected cost.
  struct Choice {
    var access: AccessPath
    /// Positions of the conditions that the access path answers by itself.
    var covered: [Int] = []
    /// Ranks in an ordered index that its spans cover.
    var ranks: [Range<Int>] = []
    /// Number of records that the access path yields, at most.
    ///
    /// For places and words it is an estimate.
    var reach: Int
    /// Number of records that are expected to be read.
    var estimate: Int
    var givesOrder = false
    /// True if ``estimate`` is an upper bound and not only likely.
    var isCertain = false

    /// Upper bound of the number of records that are read.
    var bound: Int { isCertain ? estimate : reach }
  }

  /// True if an index could help with a query, so that it is built before the query is planned.
  static func canUse(_ index: IndexDefinition, for query: QueryShape) -> Bool {
    switch index.kind {
    case .ordered:
      guard let first = index.columns.first?.keyPath else { return false }
      if let column = query.order.first, column.keyPath.isSame(as: first) { return true }
      return query.conditions.contains { $0.constraint.path?.isSame(as: first) ?? false }
    case .geo: return query.isPlaced
    case .fullText: return query.words != nil
    }
  }

  /// Returns the access path that reads the fewest records.
  ///
  /// - Throws: `.unsupported` when a needed index is not declared.
  func plan() throws(RepositoryError) -> Choice {
    if query.isImpossible {
      return Choice(
        access: .nothing, covered: Array(query.conditions.indices), reach: 0, estimate: 0, givesOrder: true, isCertain: true)
    }
    var choices = orderedChoices()
    if let words = query.words {
      // Words are found by their index only, and the other conditions are tested for each record.
      let index = try declared(.fullText, "fullText", for: "matching")
      guard case .text(let text) = indexes.body(index) else { return scan(selectivity: 1) }
      let reach = text.estimate(words)
      return Choice(access: .words(index: index), reach: reach, estimate: reach, givesOrder: query.order.isEmpty && query.near == nil)
    }
    if query.isPlaced {
      let index = try declared(.geo, "geo", for: query.near == nil ? "within" : "near")
      if case .geo(let geo) = indexes.body(index) { choices += geoChoices(index, geo) }
      return best(of: choices) ?? scan(selectivity: 1)
    }
    // The best index shows how many records match, and so how far a scan with a limit must read.
    let least = choices.map { $0.reach }.min() ?? recordCount
    choices.append(scan(selectivity: recordCount == 0 ? 1 : Double(least) / Double(recordCount)))
    return best(of: choices) ?? scan(selectivity: 1)
  }

  private func best(of choices: [Choice]) -> Choice? {
    choices.min { left, right in
      // Ties: an order saves the sort, then each covered condition saves a test.
      if left.estimate != right.estimate { return left.estimate < right.estimate }
      if left.givesOrder != right.givesOrder { return left.givesOrder }
      return left.covered.count > right.covered.count
    }
  }

  private func declared(_ kind: IndexDefinition.Kind, _ name: String, for use: String) throws(RepositoryError) -> Int {
    guard let index = indexes.first(kind) else {
      throw RepositoryError(.unsupported, "\(use) needs a .\(name) index, and the schema declares none")
    }
    return index
  }

  // MARK: Scan and places

  private var hasResidual: Bool { query.filterCount > 0 || query.isPlaced || query.words != nil }

  private func scan(selectivity: Double) -> Choice {
    // Records are stored in the order of their keys' bytes. With a limit, a few in another order of ids are found without sorting all.
    let givesOrder = query.order.isEmpty && (indexes.keys.isOfBytes || query.maximum != nil) && query.near == nil && query.words == nil
    var estimate = recordCount
    // In any other order, every key is read before the first record is found.
    if givesOrder, indexes.keys.isOfBytes, let needed = query.needed, selectivity > 0 {
      estimate = min(estimate, Self.clamped(Double(needed) / selectivity))
    }
    return Choice(access: .scan, reach: recordCount, estimate: estimate, givesOrder: givesOrder)
  }

  private func geoChoices(_ index: Int, _ geo: GeoIndex) -> [Choice] {
    var choices: [Choice] = []
    let isPlain = query.conditions.isEmpty && query.filterCount == 0
    if let near = query.near {
      let reach =
        near.radius.map { geo.estimate(latitude: near.latitude, longitude: near.longitude, within: $0.meters) } ?? geo.count
      let givesOrder = query.order.isEmpty
      // Only a query without other conditions ends after the needed records: any test may reject some.
      let estimate = givesOrder && isPlain && query.boxes.isEmpty && query.areas.count == 1 ? min(reach, query.needed ?? reach) : reach
      choices.append(
        Choice(access: .near(index: index), reach: reach, estimate: estimate, givesOrder: givesOrder, isCertain: estimate < reach))
    }
    for box in query.boxes {
      let reach = geo.estimate(box)
      choices.append(Choice(access: .box(index: index, box), reach: reach, estimate: reach))
    }
    return choices
  }

  // MARK: Ordered indexes

  private func orderedChoices() -> [Choice] {
    indexes.definitions.indices.compactMap { index in
      let definition = indexes.definitions[index]
      // `canUse` first: `tree` applies pending changes, which is wasted on an index that cannot help.
      guard definition.kind == .ordered, Self.canUse(definition, for: query), let tree = indexes.tree(index) else { return nil }
      return choice(index, tree, definition.columns)
    }
  }

  private func choice(_ index: Int, _ tree: PersistentTree<IndexEntry>, _ columns: [IndexDefinition.Column]) -> Choice? {
    var covered: [Int] = []
    var spans = [IndexSpan(prefix: [])]
    var next = 0
    var isOneSpan = true
    // Equalities extend the prefix column by column. The first column with only a range, or without a condition, ends it.
    prefix: while next < columns.count {
      let asked = constraints(on: columns[next].keyPath)
      if let (conjunct, value) = asked.equal {
        note(conjunct, on: columns[next], in: &covered)
        for span in spans.indices { spans[span].prefix.append(value) }
      } else if let (conjunct, values) = asked.oneOf, isOneSpan {
        note(conjunct, on: columns[next], in: &covered)
        // One list of values only: a second one would multiply the spans.
        spans = values.map { IndexSpan(prefix: spans[0].prefix + [$0]) }
        isOneSpan = spans.count == 1
      } else {
        for range in asked.ranges {
          // NaN sorts outside every range. If the prefix has none, as is usual, the range is exact.
          guard !range.orNotANumber || spans.allSatisfy({ !$0.hasNotANumber(in: tree) }) else { continue }
          note(range.conjunct, on: columns[next], in: &covered)
          for span in spans.indices { spans[span].narrow(range.lower, range.upper) }
        }
        break prefix
      }
      next += 1
    }
    let bound = next < columns.count && (spans[0].lower != nil || spans[0].upper != nil)
    let order = isOneSpan ? orderUse(columns, equal: next) : .none
    // The index would yield every record, in no useful order.
    guard next > 0 || bound || order != .none else { return nil }

    let isDescending = next < columns.count && columns[next].isDescending
    let ranks = spans.map { $0.ranks(in: tree, isDescending: isDescending) }
    let reach = ranks.reduce(0) { $0 + $1.count }
    var estimate = reach
    var isCertain = false
    if order != .none, let needed = query.needed, reach > 0 {
      let isExact = covered.count == query.conditions.count && !hasResidual
      if case .groups(let grouped, _) = order, grouped < columns.count {
        // Groups are gathered whole, so a query with one group reads all of it.
        if grouped > next { estimate = min(reach, Self.clamped(Double(needed) * 10)) }
      } else {
        // The selectivity of the other conditions is unknown. The estimate assumes that one record in ten meets them.
        estimate = min(reach, isExact ? needed : Self.clamped(Double(needed) * 10))
        isCertain = isExact
      }
    }
    return Choice(
      access: .ordered(index: index, spans: spans, order), covered: covered, ranks: ranks, reach: reach, estimate: estimate,
      givesOrder: order != .none, isCertain: isCertain)
  }

  private func note(_ conjunct: Int, on column: IndexDefinition.Column, in covered: inout [Int]) {
    // An inexact condition stays with the tests: its span also holds records that do not meet it.
    guard query.conditions[conjunct].isExact, column.rawValues?.areExact ?? true, !covered.contains(conjunct) else { return }
    covered.append(conjunct)
  }

  private struct Asked {
    var equal: (Int, IndexValue)?
    var oneOf: (Int, [IndexValue])?
    var ranges: [(conjunct: Int, lower: Bound?, upper: Bound?, orNotANumber: Bool)] = []
  }

  /// Returns the constraints of all conditions on one property.
  private func constraints(on keyPath: AnyKeyPath) -> Asked {
    var asked = Asked()
    for (position, conjunct) in query.conditions.enumerated() where conjunct.constraint.path?.isSame(as: keyPath) ?? false {
      switch conjunct.constraint {
      // The first one narrows the index. A second equality on the same property is tested.
      case .equal(_, let value): asked.equal = asked.equal ?? (position, value)
      case .oneOf(_, let values): asked.oneOf = asked.oneOf ?? (position, values)
      case .range(_, let lower, let upper, let orNotANumber): asked.ranges.append((position, lower, upper, orNotANumber))
      case .never, .always, .residual: continue
      }
    }
    return asked
  }

  /// Returns how the columns after the equal ones yield the query's order, forwards or in reverse.
  private func orderUse(_ columns: [IndexDefinition.Column], equal: Int) -> IndexOrderUse {
    if query.order.isEmpty {
      // An index orders equal values by id, which is the order of a query without one.
      let isFree = query.near == nil && query.words == nil
      return isFree && equal == columns.count ? .groups(columns: equal, isReversed: false) : .none
    }
    let fixed = columns[..<equal]
    // A column with one value does not affect the order, so the query may sort by it in any place.
    let wanted = query.order.filter { column in !fixed.contains { $0.keyPath.isSame(as: column.keyPath) } }
    let rest = columns[equal...]
    guard wanted.count <= rest.count, zip(wanted, rest).allSatisfy({ $0.keyPath.isSame(as: $1.keyPath) }) else { return .none }
    var isReversed: Bool?
    for (column, other) in zip(wanted, rest) {
      let isTurned = column.isReversed != other.isDescending
      if isReversed ?? isTurned != isTurned { return .none }
      isReversed = isTurned
    }
    return .groups(columns: equal + wanted.count, isReversed: isReversed ?? false)
  }

  private static func clamped(_ number: Double) -> Int { Int(exactly: number.rounded(.up)) ?? Int.max }
}

extension IndexSpan {
  /// True if the column behind the prefix has NaN in any entry.
  func hasNotANumber(in tree: PersistentTree<IndexEntry>) -> Bool {
    !IndexSpan(prefix: prefix + [.notANumber]).ranks(in: tree, isDescending: false).isEmpty
  }

  /// Narrows the span to the intersection with these bounds.
  mutating func narrow(_ lower: Bound?, _ upper: Bound?) {
    // Of two bounds with one value, the exclusive one is narrower.
    if let lower, self.lower.map({ ($0.value, $0.isInclusive ? 0 : 1) < (lower.value, lower.isInclusive ? 0 : 1) }) ?? true {
      self.lower = lower
    }
    if let upper, self.upper.map({ (upper.value, upper.isInclusive ? 1 : 0) < ($0.value, $0.isInclusive ? 1 : 0) }) ?? true {
      self.upper = upper
    }
  }
}

extension Constraint {
  /// Property that the constraint is on, or `nil` for a constraint on none.
  var path: AnyKeyPath? {
    switch self {
    case .equal(let path, _), .range(let path, _, _, _), .oneOf(let path, _): path
    case .never, .always, .residual: nil
    }
  }
}

/// The way in which a plan finds its candidates.
enum AccessPath: Sendable {
  /// No record can meet the query.
  case nothing
  /// All records, in the order of their keys' bytes.
  case scan
  /// Ranges of an ordered index.
  case ordered(index: Int, spans: [IndexSpan], IndexOrderUse)
  /// Records by distance from the query's last place, nearest first.
  case near(index: Int)
  /// Records in one of the query's boxes.
  case box(index: Int, BoundingBox)
  /// Records with the query's words, best match first.
  case words(index: Int)
}

/// A range of an ordered index: entries that begin with some values, and whose next column lies between bounds.
struct IndexSpan: Sendable {
  var prefix: [IndexValue]
  var lower: Bound?
  var upper: Bound?

  /// Returns the ranks of the span's entries in an index.
  ///
  /// `isDescending` is the direction of the column behind the prefix.
  func ranks(in tree: PersistentTree<IndexEntry>, isDescending: Bool) -> Range<Int> {
    let (first, last) = isDescending ? (upper, lower) : (lower, upper)
    let (low, high) = (prefix + (first.map { [$0.value] } ?? []), prefix + (last.map { [$0.value] } ?? []))
    let start = first?.isInclusive ?? true ? tree.start(of: low) : tree.end(of: low)
    let end = last?.isInclusive ?? true ? tree.end(of: high) : tree.start(of: high)
    // Contradictory bounds, such as `> 5` and `< 3`, would otherwise make a range that traps.
    return start..<max(start, end)
  }
}
