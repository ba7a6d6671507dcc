internal import Foundation

// Planning/ chooses the index that answers a query.
// Invariant: every plan gives the right results for every state of the collection. The counts that are read from indexes affect only the
// cost of a plan.
// Called by QueryRun.

/// Plans a query: chooses the access path (an index or a scan) that reads the fewest records, by counts read from the indexes.
struct QueryPlanner {
  let query: QueryShape
  let indexes: IndexSet
  let recordCount: Int

  /// An access path with its expected cost.
  struct Choice {
    var access: AccessPath
    /// Positions of the query's conditions that the access path answers, so that no record is tested for them.
    var covered: [Int] = []
    /// Ranks (positions of entries) in the ordered index, one range of ranks for each span of the index that is read.
    var ranks: [Range<Int>] = []
    /// Ranges of an ordered index in the storage, in place of ``ranks``.
    var positions: [Range<StoredEntries.Position>] = []
    /// Greatest number of records that the access path yields.
    ///
    /// For an index of places or words, and for an index in the storage, the number is an estimate.
    var reach: Int
    /// Number of records that the query is expected to read before it has as many results as its limit.
    var estimate: Int
    var givesOrder = false
    /// True if ``estimate`` is an upper bound.
    ///
    /// If `isCertain` is false, the query may read more records than the estimate.
    var isCertain = false

    /// Upper bound of the number of records that the query reads.
    var bound: Int { isCertain ? estimate : reach }
  }

  /// Returns true if an index could answer a condition of a query or yield records in the query's order.
  ///
  /// An index that a query could use is built before the query is planned.
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

  /// Returns the access path that is expected to read the fewest records.
  ///
  /// - Throws: `.unsupported` if the query needs an index that the schema does not declare.
  func plan() throws(RepositoryError) -> Choice {
    if query.isImpossible {
      return Choice(
        access: .nothing, covered: Array(query.conditions.indices), reach: 0, estimate: 0, givesOrder: true, isCertain: true)
    }
    var choices = try orderedChoices()
    if let words = query.words {
      // Only the full-text index can find words. The query's other conditions are tested for each record that the index finds.
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
    // The smallest number of records that an index yields shows how rare matches are. The rarer the matches are, the more records a scan
    // must read to fill the query's limit.
    let least = choices.map { $0.reach }.min() ?? recordCount
    choices.append(scan(selectivity: recordCount == 0 ? 1 : Double(least) / Double(recordCount)))
    return best(of: choices) ?? scan(selectivity: 1)
  }

  private func best(of choices: [Choice]) -> Choice? {
    choices.min { left, right in
      // Of two access paths that read equally many records, the path in the query's order is chosen, because it saves a sort. If the order
      // does not decide between the two paths, the path that answers more conditions is chosen, because each answered condition saves a
      // test per record.
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
    // A scan can yield the records in the byte order of their keys. If ids sort in another order than the bytes of their keys, a scan for a
    // query with a limit uses a heap, which finds the first records without sorting all records.
    let givesOrder = query.order.isEmpty && (indexes.keys.isOfBytes || query.maximum != nil) && query.near == nil && query.words == nil
    var estimate = recordCount
    // If ids have another order than the bytes of their keys, every key must be read before the first result is found.
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
      // A test of a condition may reject records that the index yields, so only a query without such tests is sure to end after the needed
      // number of records.
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

  private func orderedChoices() throws(RepositoryError) -> [Choice] {
    var choices: [Choice] = []
    for (index, definition) in indexes.definitions.enumerated() {
      // `canUse` is checked before `tree`, because `tree` applies the pending changes of an index. Applying the changes is wasted work for
      // an index that the query cannot use.
      guard definition.kind == .ordered, Self.canUse(definition, for: query) else { continue }
      // An automatic index answers the order for which it was built, and nothing else. With conditions, a walk in its order may read more
      // records than a scan, and with a part of its columns, the walk sorts whole groups of records.
      let isPlain = query.conditions.isEmpty && !hasResidual && query.maximum != nil && query.order.count == definition.columns.count
      if definition.automatic != nil, !isPlain { continue }
      do throws(RepositoryError) {
        if let choice = try choice(index, columns: definition.columns) { choices.append(choice) }
      } catch {
        // The query does without a damaged index, which a later query builds anew.
        guard error.code == .corrupted, case .stored(let entries) = indexes.bodies[index], entries.run.isUnfit else { throw error }
      }
    }
    return choices
  }

  private func choice(_ index: Int, columns: [IndexDefinition.Column]) throws(RepositoryError) -> Choice? {
    let stored = indexes.holdsStubs ? indexes.storedEntries(index) : nil
    let resident = stored == nil ? indexes.tree(index) : nil
    guard stored != nil || resident != nil else { return nil }
    var covered: [Int] = []
    var spans = [IndexSpan(prefix: [])]
    var next = 0
    var isOneSpan = true
    // Each index column with an equality condition extends the prefix, the values with which all wanted entries begin. The first column
    // with only a range condition, or without a condition, ends the prefix.
    prefix: while next < columns.count {
      let asked = constraints(on: columns[next].keyPath)
      if let (conjunct, value) = asked.equal {
        note(conjunct, on: columns[next], isStored: stored != nil, in: &covered)
        for span in spans.indices { spans[span].prefix.append(value) }
      } else if let (conjunct, values) = asked.oneOf, isOneSpan {
        note(conjunct, on: columns[next], isStored: stored != nil, in: &covered)
        // The spans (ranges of the index) are made from only one list of values, because a second list would multiply the number of spans.
        spans = values.map { IndexSpan(prefix: spans[0].prefix + [$0]) }
        isOneSpan = spans.count == 1
      } else {
        for range in asked.ranges {
          // NaN sorts outside every range. A condition that NaN meets too (`orNotANumber`) is therefore a range only if no entry with the
          // prefix has NaN, which is usual.
          if range.orNotANumber {
            var hasNotANumber = false
            for span in spans where !hasNotANumber {
              if let resident { hasNotANumber = span.hasNotANumber(in: resident) }
              if let stored { hasNotANumber = try span.hasNotANumber(in: stored) }
            }
            if hasNotANumber { continue }
          }
          note(range.conjunct, on: columns[next], isStored: stored != nil, in: &covered)
          for span in spans.indices { spans[span].narrow(range.lower, range.upper) }
        }
        break prefix
      }
      next += 1
    }
    let bound = next < columns.count && (spans[0].lower != nil || spans[0].upper != nil)
    let order = isOneSpan ? orderUse(columns, equal: next) : .none
    // Without equality conditions, a range or a useful order, the index would yield every record, as a scan does.
    guard next > 0 || bound || order != .none else { return nil }

    let isDescending = next < columns.count && columns[next].isDescending
    let ranks = resident.map { tree in spans.map { $0.ranks(in: tree, isDescending: isDescending) } } ?? []
    var reach = ranks.reduce(0) { $0 + $1.count }
    var positions: [Range<StoredEntries.Position>] = []
    if let stored {
      for span in spans {
        let range = try span.positions(in: stored, isDescending: isDescending)
        reach += try stored.estimate(range, of: recordCount)
        positions.append(range)
      }
    }
    var estimate = reach
    var isCertain = false
    if order != .none, let needed = query.needed, reach > 0 {
      let isExact = covered.count == query.conditions.count && !hasResidual
      if case .groups(let grouped, _) = order, grouped < columns.count {
        // A group is the records with equal values in all columns that the order uses. A group is read as a whole and then sorted by id, so
        // a query whose records form one group reads all of them.
        if grouped > next { estimate = min(reach, Self.clamped(Double(needed) * 10)) }
      } else {
        // The number of records that meet the query's other conditions is unknown, and the estimate assumes that one record in ten meets
        // them.
        estimate = min(reach, isExact ? needed : Self.clamped(Double(needed) * 10))
        isCertain = isExact
      }
    }
    return Choice(
      access: .ordered(index: index, spans: spans, order), covered: covered, ranks: ranks, positions: positions, reach: reach,
      estimate: estimate, givesOrder: order != .none, isCertain: isCertain)
  }

  private func note(_ conjunct: Int, on column: IndexDefinition.Column, isStored: Bool, in covered: inout [Int]) {
    // The values of an index in the storage were not compared with their raw values in this process.
    if isStored, column.rawValues != nil { return }
    // If a condition is not exact, the range of the index may also hold records that do not meet it. A condition that is not exact
    // therefore does not count as covered, and each record is tested for it.
    guard query.conditions[conjunct].isExact, column.rawValues?.areExact ?? true, !covered.contains(conjunct) else { return }
    covered.append(conjunct)
  }

  private struct Asked {
    var equal: (Int, IndexValue)?
    var oneOf: (Int, [IndexValue])?
    var ranges: [(conjunct: Int, lower: Bound?, upper: Bound?, orNotANumber: Bool)] = []
  }

  /// Returns the constraints that the query's conditions put on one property.
  private func constraints(on keyPath: AnyKeyPath) -> Asked {
    var asked = Asked()
    for (position, conjunct) in query.conditions.enumerated() where conjunct.constraint.path?.isSame(as: keyPath) ?? false {
      switch conjunct.constraint {
      // The first equality on a property narrows the index, and a second equality on the same property is tested for each record.
      case .equal(_, let value): asked.equal = asked.equal ?? (position, value)
      case .oneOf(_, let values): asked.oneOf = asked.oneOf ?? (position, values)
      case .range(_, let lower, let upper, let orNotANumber): asked.ranges.append((position, lower, upper, orNotANumber))
      case .never, .always, .residual: continue
      }
    }
    return asked
  }

  /// Returns how the index columns after the first `equal` columns yield the query's order, forwards or in reverse.
  private func orderUse(_ columns: [IndexDefinition.Column], equal: Int) -> IndexOrderUse {
    if query.order.isEmpty {
      // Index entries with equal values are ordered by id, which is also the order of a query without `sorted`.
      let isFree = query.near == nil && query.words == nil
      return isFree && equal == columns.count ? .groups(columns: equal, isReversed: false) : .none
    }
    let fixed = columns[..<equal]
    // A column with the same value in all entries that are read does not affect the order, so the query's order may name it in any place.
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
  /// Returns true if an index entry that begins with the span's prefix has NaN in the column after the prefix.
  func hasNotANumber(in tree: PersistentTree<IndexEntry>) -> Bool {
    !IndexSpan(prefix: prefix + [.notANumber]).ranks(in: tree, isDescending: false).isEmpty
  }

  /// Returns true if an entry of an index in the storage that begins with the span's prefix has NaN in the column after the prefix.
  func hasNotANumber(in entries: StoredEntries) throws(RepositoryError) -> Bool {
    let range = try IndexSpan(prefix: prefix + [.notANumber]).positions(in: entries, isDescending: false)
    return try !entries.forEach(in: range) { (_) throws(RepositoryError) -> Bool in false }
  }

  /// Narrows the span (a range of the index) to its intersection with the given bounds.
  mutating func narrow(_ lower: Bound?, _ upper: Bound?) {
    // Of two bounds with the same value, the exclusive one admits fewer entries and is kept.
    if let lower, self.lower.map({ ($0.value, $0.isInclusive ? 0 : 1) < (lower.value, lower.isInclusive ? 0 : 1) }) ?? true {
      self.lower = lower
    }
    if let upper, self.upper.map({ (upper.value, upper.isInclusive ? 1 : 0) < ($0.value, $0.isInclusive ? 1 : 0) }) ?? true {
      self.upper = upper
    }
  }
}

extension Constraint {
  /// Property whose value the constraint limits, or `nil` for a constraint without a property.
  var path: AnyKeyPath? {
    switch self {
    case .equal(let path, _), .range(let path, _, _, _), .oneOf(let path, _): path
    case .never, .always, .residual: nil
    }
  }
}

/// The source from which a planned query reads its records.
enum AccessPath: Sendable {
  /// No source, because no record can meet the query.
  case nothing
  /// All records of the collection.
  case scan
  /// Records in some ranges of an ordered index.
  case ordered(index: Int, spans: [IndexSpan], IndexOrderUse)
  /// Records of a geo index, by distance from the place of the query's last `near`, nearest first.
  case near(index: Int)
  /// Records of a geo index in one of the query's boxes.
  case box(index: Int, BoundingBox)
  /// Records of a full-text index that have the query's words, best match first.
  case words(index: Int)
}

/// A range of an ordered index: the entries that begin with the prefix values and whose next value lies within the bounds.
struct IndexSpan: Sendable {
  var prefix: [IndexValue]
  var lower: Bound?
  var upper: Bound?

  /// Returns the ranks (positions) of the span's entries in an ordered index.
  ///
  /// - Parameter isDescending: True if the column after the prefix is declared as descending.
  func ranks(in tree: PersistentTree<IndexEntry>, isDescending: Bool) -> Range<Int> {
    let (first, last) = isDescending ? (upper, lower) : (lower, upper)
    let (low, high) = (prefix + (first.map { [$0.value] } ?? []), prefix + (last.map { [$0.value] } ?? []))
    let start = first?.isInclusive ?? true ? tree.start(of: low) : tree.end(of: low)
    let end = last?.isInclusive ?? true ? tree.end(of: high) : tree.start(of: high)
    // If the bounds contradict each other, such as `> 5` and `< 3`, the end lies before the start. `max` prevents a Swift range with
    // reversed bounds, which would trap.
    return start..<max(start, end)
  }

  /// Returns the positions of the span's entries in an index in the storage, as ``ranks(in:isDescending:)`` does for one in memory.
  func positions(in entries: StoredEntries, isDescending: Bool) throws(RepositoryError) -> Range<StoredEntries.Position> {
    let (first, last) = isDescending ? (upper, lower) : (lower, upper)
    let (low, high) = (prefix + (first.map { [$0.value] } ?? []), prefix + (last.map { [$0.value] } ?? []))
    let start = first?.isInclusive ?? true ? try entries.start(of: low) : try entries.end(of: low)
    let end = last?.isInclusive ?? true ? try entries.end(of: high) : try entries.start(of: high)
    return start..<max(start, end)
  }
}
