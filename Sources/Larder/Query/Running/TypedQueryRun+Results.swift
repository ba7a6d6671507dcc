internal import Foundation

extension QueryRun {
  /// The results with what the query has found out about each.
  func matches(_ found: [QueryCandidate<Item>]) -> [Match<Item>] {
    let words = query.words
    let texts = indexes.declarations.lazy.compactMap { declaration in
      if case .fullText(let texts) = declaration.kind { texts } else { nil }
    }.first
    return found.map { candidate in
      var source: Match<Item>.ExtractSource?
      if let words, let texts { source = .init(words: words, texts: texts(candidate.item)) }
      return Match(
        item: candidate.item, distance: candidate.distance.map { .meters($0) }, score: candidate.score, source: source)
    }
  }

  /// Returns how many results have each value of a property.
  func grouped<Value: Hashable & IndexableValue>(
    by keyPath: any KeyPath<Item, Value> & Sendable
  ) throws(RepositoryError) -> [Value: Int] {
    var counts: [Value: Int] = [:]
    if isGroupedByIndex(keyPath, Value.self), let tree = tree(beginningWith: keyPath) {
      var start = 0
      while start < tree.count {
        let entry = tree.element(at: start)
        let end = tree.rank { $0.compared(to: [entry.values[0]]) == .orderedDescending }
        if let item = indexes.item(entry.slot) { counts[item[keyPath: keyPath], default: 0] += end - start }
        start = max(end, start + 1)
      }
    } else {
      let values = try results().map { $0.item[keyPath: keyPath] }
      if let rawValues = RawIndexValues.of(Value.self) {
        for value in values { rawValues.note(value, value.indexValue) }
      }
      if Value.standsForOneValue {
        // By index values, as an index groups: a NaN equals itself there, but not as a number.
        var groups: [IndexValue: (value: Value, count: Int)] = [:]
        for value in values { groups[value.indexValue, default: (value, 0)].count += 1 }
        for group in groups.values { counts[group.value] = group.count }
      } else {
        for value in values { counts[value, default: 0] += 1 }
      }
    }
    return counts
  }

  /// Whether an index has the groups, so that no record need be looked at but the first of each.
  func isGroupedByIndex<Value: IndexableValue>(_ keyPath: AnyKeyPath, _ type: Value.Type) -> Bool {
    guard Value.standsForOneValue, case .scan = choice.access, isPlain, query.maximum == nil, query.skipped == 0 else { return false }
    return tree(beginningWith: keyPath) != nil
  }

  private func tree(beginningWith keyPath: AnyKeyPath) -> CountedTree<IndexEntry>? {
    for (index, declaration) in indexes.declarations.enumerated() where declaration.columns.first?.keyPath == keyPath {
      if let tree = indexes.tree(index) { return tree }
    }
    return nil
  }

  /// The plan, with what running it looks at if that is not too much.
  func explained() throws(RepositoryError) -> QueryPlan {
    var examined: Int?
    if choice.bound <= 10_000 {
      var count = 0
      _ = try results(after: nil, examined: &count)
      examined = count
    }
    var checked = residual.map { $0.constraint.path.map { "\($0.propertyName)" } ?? "predicate" }
    checked += query.filters.map { _ in "filter" }
    let areas = isNearAccess ? query.shape.areas.dropLast() : query.shape.areas[...]
    if areas.contains(where: { $0.within != nil }) { checked.append("distance") }
    if query.shape.boxes.count > (isBoxAccess ? 1 : 0) { checked.append("box") }
    return QueryPlan(
      access: planAccess, conditions: conditions, residual: Self.once(checked),
      order: query.order.isEmpty && query.near == nil && query.words == nil ? .id : (choice.givesOrder ? .index : .sorted),
      estimatedRows: choice.estimate, examinedRows: examined, refusal: nil)
  }

  /// The texts without repetition, in order.
  private static func once(_ texts: [String]) -> [String] {
    var seen: Set<String> = []
    return texts.filter { seen.insert($0).inserted }
  }

  private var isNearAccess: Bool { if case .near = choice.access { true } else { false } }
  private var isBoxAccess: Bool { if case .box = choice.access { true } else { false } }

  private var planAccess: QueryPlan.Access {
    switch choice.access {
    case .nothing: .nothing
    case .scan: .scan
    case .ordered(let index, _, _), .near(let index), .box(let index, _), .words(let index): .index("\(indexes.declarations[index])")
    }
  }

  /// What the access path answers, in words without values.
  private var conditions: [String] {
    switch choice.access {
    case .nothing, .scan: return []
    case .near: return ["nearest first"]
    case .box: return ["in a box"]
    case .words: return ["matching words"]
    case .ordered(let index, let spans, _):
      let columns = indexes.declarations[index].columns
      guard let span = spans.first else { return [] }
      var conditions = columns.prefix(span.prefix.count).map { "\($0.keyPath.propertyName) =" }
      if spans.count > 1, !conditions.isEmpty {
        conditions[conditions.count - 1] = "\(columns[conditions.count - 1].keyPath.propertyName) in \(spans.count)"
      }
      if span.lower != nil || span.upper != nil, columns.indices.contains(span.prefix.count) {
        // The infinities only stand for "a number".
        let lower = span.lower.flatMap { $0.value == IndexValue(-Double.infinity) ? nil : $0.isInclusive ? " >=" : " >" }
        let upper = span.upper.flatMap { $0.value == IndexValue(Double.infinity) ? nil : $0.isInclusive ? " <=" : " <" }
        conditions.append(columns[span.prefix.count].keyPath.propertyName + (lower ?? "") + (upper ?? ""))
      }
      return conditions
    }
  }
}
