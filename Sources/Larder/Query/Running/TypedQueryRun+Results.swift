internal import Foundation

extension TypedQueryRun {
  /// Returns results with what the query has found out about each.
  func matches(_ results: [QueryCandidate<Item>]) -> [Match<Item>] {
    let definition = run.indexes.first(.fullText).map { run.indexes.definitions[$0] }
    return results.map { candidate in
      var source: Match<Item>.ExtractSource?
      if let words = query.shape.words, let texts = definition?.texts(candidate.slot) { source = .init(words: words, texts: texts) }
      return Match(
        item: candidate.item, distance: candidate.distance.map { .meters($0) }, score: candidate.score, source: source)
    }
  }

  /// Returns how many results have each value of a property.
  ///
  /// - Throws: as ``items()``.
  func grouped<Value: Hashable & IndexableValue>(
    by keyPath: any KeyPath<Item, Value> & Sendable
  ) throws(RepositoryError) -> [Value: Int] {
    var counts: [Value: Int] = [:]
    if let tree = groupingIndex(keyPath, Value.self) {
      var start = 0
      while start < tree.count {
        let entry = tree.entry(at: start)
        let end = tree.end(of: [entry.values[0]])
        if let value = coder.valueIfReadable(entry.slot) { counts[value.item[keyPath: keyPath], default: 0] += end - start }
        start = max(end, start + 1)
      }
      return counts
    }
    let values = try results().map { $0.item[keyPath: keyPath] }
    if let rawValues = RawIndexValues.of(Value.self) {
      for value in values { rawValues.note(value, value.indexValue) }
    }
    guard Value.standsForOneValue else {
      for value in values { counts[value, default: 0] += 1 }
      return counts
    }
    // By index values, as an index groups: a NaN equals itself there, but not as a number.
    var groups: [IndexValue: (value: Value, count: Int)] = [:]
    for value in values { groups[value.indexValue, default: (value, 0)].count += 1 }
    for group in groups.values { counts[group.value] = group.count }
    return counts
  }

  /// Returns an index that has the groups, so that no record need be looked at but the first of each.
  func groupingIndex<Value: IndexableValue>(_ keyPath: AnyKeyPath, _ type: Value.Type) -> PersistentTree<IndexEntry>? {
    guard case .scan = run.choice.access, run.isExact, query.shape.maximum == nil, query.shape.skipped == 0 else { return nil }
    let tree = run.indexes.definitions.indices.lazy.compactMap { index in
      let isFirst = run.indexes.definitions[index].columns.first?.keyPath.isSame(as: keyPath) ?? false
      return isFirst ? run.indexes.tree(index) : nil
    }.first
    // Asked last: what is in the index has been noted once it was asked for its entries.
    return Value.standsForOneValue ? tree : nil
  }

  /// Returns the plan, with the number of records that running it looks at if that is not too large.
  ///
  /// - Throws: as ``items()``.
  func explained() throws(RepositoryError) -> QueryPlan {
    guard run.choice.bound <= 10_000 else { return run.plan(examined: nil) }
    var examined = 0
    _ = try results(after: nil, examined: &examined)
    return run.plan(examined: examined)
  }
}
