internal import Foundation

/// A planner of how a query is answered: it chooses the way that looks at the fewest records, by the counts that the indexes know exactly.
struct QueryPlanner {
  let query: QueryShape
  let indexes: IndexSet
  let recordCount: Int

  /// A way to answer, and what it is expected to cost.
  struct Choice {
    var access: AccessPath
    /// The conjuncts that the access path answers by itself.
    var covered: [Int] = []
    /// The parts of an ordered index that its spans are.
    var ranks: [Range<Int>] = []
    /// The number of records that the access path leads to, at most.
    var reach: Int
    /// The number of records that will be looked at, as far as can be told.
    var estimate: Int
    var givesOrder = false
    /// Whether no more than ``estimate`` will be looked at, rather than probably not.
    var isCertain = false

    /// The number of records that may be looked at.
    var bound: Int { isCertain ? estimate : reach }
  }

  /// Whether an index could help with a query, so that it is built before a plan is made.
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

  /// Returns the way that looks at the fewest records.
  /// - Throws: `.unsupported` when a needed index is not declared.
  func plan() throws(RepositoryError) -> Choice {
    if query.isImpossible {
      return Choice(
        access: .nothing, covered: Array(query.conditions.indices), reach: 0, estimate: 0, givesOrder: true, isCertain: true)
    }
    var choices = orderedChoices()
    if let words = query.words {
      // Words are found by their index only; what else is asked is checked.
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
    let least = choices.map { $0.reach }.min() ?? recordCount
    choices.append(scan(selectivity: recordCount == 0 ? 1 : Double(least) / Double(recordCount)))
    return best(of: choices) ?? scan(selectivity: 1)
  }

  private func best(of choices: [Choice]) -> Choice? {
    choices.min { left, right in
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
    // The records lie in the order of their keys' bytes; in that of other ids a few of them can be found without sorting all.
    let givesOrder = query.order.isEmpty && (indexes.keys.isOfBytes || query.maximum != nil) && query.near == nil && query.words == nil
    var estimate = recordCount
    // In the order of other ids every key is looked at before the first record is found.
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
      // Asked first, so that changes are not applied for nothing to an index that cannot help.
      guard definition.kind == .ordered, Self.canUse(definition, for: query), let tree = indexes.tree(index) else { return nil }
      return choice(index, tree, definition.columns)
    }
  }

  private func choice(_ index: Int, _ tree: PersistentTree<IndexEntry>, _ columns: [IndexDefinition.Column]) -> Choice? {
    var covered: [Int] = []
    var spans = [IndexSpan(prefix: [])]
    var next = 0
    var isOneSpan = true
    prefix: while next < columns.count {
      let asked = constraints(on: columns[next].keyPath)
      if let (conjunct, value) = asked.equal {
        note(conjunct, on: columns[next], in: &covered)
        for span in spans.indices { spans[span].prefix.append(value) }
      } else if let (conjunct, values) = asked.oneOf, isOneSpan {
        note(conjunct, on: columns[next], in: &covered)
        spans = values.map { IndexSpan(prefix: spans[0].prefix + [$0]) }
        isOneSpan = spans.count == 1
      } else {
        for range in asked.ranges {
          // What is not a number lies apart from the range. There is hardly ever any, and then the range is all.
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
    guard next > 0 || bound || order != .none else { return nil }

    let isDescending = next < columns.count && columns[next].isDescending
    let ranks = spans.map { $0.ranks(in: tree, isDescending: isDescending) }
    let reach = ranks.reduce(0) { $0 + $1.count }
    var estimate = reach
    var isCertain = false
    if order != .none, let needed = query.needed, reach > 0 {
      let isExact = covered.count == query.conditions.count && !hasResidual
      if case .groups(let grouped, _) = order, grouped < columns.count {
        // Whole groups are gathered; of one group that is all.
        if grouped > next { estimate = min(reach, Self.clamped(Double(needed) * 10)) }
      } else {
        // Nothing is known of what the rest lets through: as if every tenth did.
        estimate = min(reach, isExact ? needed : Self.clamped(Double(needed) * 10))
        isCertain = isExact
      }
    }
    return Choice(
      access: .ordered(index: index, spans: spans, order), covered: covered, ranks: ranks, reach: reach, estimate: estimate,
      givesOrder: order != .none, isCertain: isCertain)
  }

  private func note(_ conjunct: Int, on column: IndexDefinition.Column, in covered: inout [Int]) {
    guard query.conditions[conjunct].isExact, column.rawValues?.areExact ?? true, !covered.contains(conjunct) else { return }
    covered.append(conjunct)
  }

  private struct Asked {
    var equal: (Int, IndexValue)?
    var oneOf: (Int, [IndexValue])?
    var ranges: [(conjunct: Int, lower: Bound?, upper: Bound?, orNotANumber: Bool)] = []
  }

  /// Returns what the conjuncts ask of one property.
  private func constraints(on keyPath: AnyKeyPath) -> Asked {
    var asked = Asked()
    for (position, conjunct) in query.conditions.enumerated() where conjunct.constraint.path?.isSame(as: keyPath) ?? false {
      switch conjunct.constraint {
      case .equal(_, let value): asked.equal = asked.equal ?? (position, value)
      case .oneOf(_, let values): asked.oneOf = asked.oneOf ?? (position, values)
      case .range(_, let lower, let upper, let orNotANumber): asked.ranges.append((position, lower, upper, orNotANumber))
      case .never, .always, .residual: continue
      }
    }
    return asked
  }

  /// Whether the columns after the equal ones are in the query's order, or the reverse of it.
  private func orderUse(_ columns: [IndexDefinition.Column], equal: Int) -> IndexOrderUse {
    if query.order.isEmpty {
      // By id, then: an index orders equal values by it.
      let isFree = query.near == nil && query.words == nil
      return isFree && equal == columns.count ? .groups(columns: equal, isReversed: false) : .none
    }
    let fixed = columns[..<equal]
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
  /// Whether the column behind the prefix has values that are not numbers.
  func hasNotANumber(in tree: PersistentTree<IndexEntry>) -> Bool {
    !IndexSpan(prefix: prefix + [.notANumber]).ranks(in: tree, isDescending: false).isEmpty
  }

  /// Narrows the span to what is also between these bounds.
  mutating func narrow(_ lower: Bound?, _ upper: Bound?) {
    if let lower, self.lower.map({ ($0.value, $0.isInclusive ? 0 : 1) < (lower.value, lower.isInclusive ? 0 : 1) }) ?? true {
      self.lower = lower
    }
    if let upper, self.upper.map({ (upper.value, upper.isInclusive ? 1 : 0) < ($0.value, $0.isInclusive ? 1 : 0) }) ?? true {
      self.upper = upper
    }
  }
}

extension Constraint {
  /// The property that is asked about, if there is one.
  var path: AnyKeyPath? {
    switch self {
    case .equal(let path, _), .range(let path, _, _, _), .oneOf(let path, _): path
    case .never, .always, .residual: nil
    }
  }
}

// Planning/ chooses the index that answers a query. Invariant: a plan is right for every state of the collection; the counts of the
// indexes decide only its cost. Called by QueryRun.

/// The way by which a plan comes by its candidates.
enum AccessPath: Sendable {
  /// No record can meet the query.
  case nothing
  /// All records, in the order of their keys' bytes.
  case scan
  /// Parts of an ordered index.
  case ordered(index: Int, spans: [IndexSpan], IndexOrderUse)
  /// Nearest first.
  case near(index: Int)
  /// In one of the query's boxes.
  case box(index: Int, BoundingBox)
  /// Best match first.
  case words(index: Int)
}

/// A part of an ordered index: entries that begin with some values, and whose next column lies between bounds.
struct IndexSpan: Sendable {
  var prefix: [IndexValue]
  var lower: Bound?
  var upper: Bound?

  /// Returns the ranks of the entries in an index, whose columns descend or not.
  func ranks(in tree: PersistentTree<IndexEntry>, isDescending: Bool) -> Range<Int> {
    let (first, last) = isDescending ? (upper, lower) : (lower, upper)
    let (low, high) = (prefix + (first.map { [$0.value] } ?? []), prefix + (last.map { [$0.value] } ?? []))
    let start = first?.isInclusive ?? true ? tree.start(of: low) : tree.end(of: low)
    let end = last?.isInclusive ?? true ? tree.end(of: high) : tree.start(of: high)
    return start..<max(start, end)
  }
}
