internal import Foundation

/// A ``QueryRun`` that returns values: it tests what the plan leaves open, sorts what comes in no order, and hands out the results.
struct TypedQueryRun<Item: Codable & Identifiable & Sendable>: Sendable where Item.ID: Hashable & Codable & Sendable {
  let query: Query<Item>
  let coder: RecordCoder<Item>
  let run: QueryRun

  /// Plans a query over a collection at one commit.
  ///
  /// - Throws: as ``QueryRun``; `.decodingFailed` for a strict query and a record that does not decode.
  init(_ query: Query<Item>, _ coder: RecordCoder<Item>, _ state: CollectionState) throws(RepositoryError) {
    (self.query, self.coder) = (query, coder)
    if query.shape.isStrict {
      try query.shape.check()
      try state.records.checkDecodable(coder)
    }
    run = try QueryRun(query.shape, state)
  }

  /// The total order of the results.
  var order: ResultOrder<Item> { ResultOrder(columns: query.order, keys: coder.keys.order) }

  /// Whether few enough records are looked at to do it on the caller's actor.
  var isSmall: Bool { run.bound <= ConcurrentMap.partSize }

  /// Returns the records that meet the query, in its order: straight from an index where that answers the whole query.
  ///
  /// - Throws: `.unsupported` when a predicate cannot be evaluated for a record.
  func items() throws(RepositoryError) -> [Item] {
    guard let slots = run.slotsFromIndex() else { return try results().map { $0.item } }
    // Copied to where they stay: to append one would move it once more, and look up its type.
    var failure: RepositoryError?
    let items = [Item](unsafeUninitializedCapacity: slots.count) { buffer, count in
      guard let start = buffer.baseAddress else { return }
      do throws(RepositoryError) {
        for slot in slots {
          try slot.copyValue(coder, to: start + count)
          count += 1
        }
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return items
  }

  /// Returns the results in their order, from the query's offset, at most as many as its limit; after a cursor, if one is given.
  ///
  /// - Throws: as ``items()``.
  func results(after cursor: PageCursor? = nil) throws(RepositoryError) -> [QueryCandidate<Item>] {
    var examined = 0
    return try results(after: cursor, examined: &examined)
  }

  /// Returns the results as ``results(after:)`` does, and adds the number of records that were looked at to `examined`.
  func results(after cursor: PageCursor?, examined: inout Int) throws(RepositoryError) -> [QueryCandidate<Item>] {
    let order = order
    let (stretches, skipped) = cursor == nil ? run.skippedByRank : (nil, query.shape.skipped)
    var collector = ResultCollector(order: order, needed: query.shape.needed(behind: skipped), arrivesInOrder: run.givesOrder)
    let start = cursor.map { RecordKey($0.key) }
    var isBehind = false
    try forEachMatch(after: cursor, stretches, unless: { collector.excludes($0) }, examined: &examined) {
      (candidate) throws(RepositoryError) -> Bool in
      if let cursor, let start, !isBehind {
        if !cursor.isBefore(candidate, order, start) { return true }
        isBehind = run.givesOrder  // and so are all that follow
      }
      return collector.add(candidate)
    }
    return collector.finish(skipping: skipped)
  }

  /// Returns how many records meet the query, its offset and limit taken into account.
  ///
  /// - Throws: as ``items()``.
  func count() throws(RepositoryError) -> Int {
    var all = 0
    if let known = run.knownCount {
      all = known
    } else if run.isExact, case .scan = run.choice.access {
      all = run.records.count - run.records.undecodable(coder).count
    } else {
      var examined = 0
      try forEachMatch(examined: &examined) { (_) throws(RepositoryError) -> Bool in
        all += 1
        return true
      }
    }
    return min(max(all - query.shape.skipped, 0), query.shape.maximum ?? .max)
  }

  /// Visits the records that meet the query, as the access path gives them, until the body returns `false`.
  ///
  /// - Parameter isOut: Whether a record that meets the query need not be visited; asked only where no test of it can fail.
  private func forEachMatch(
    after cursor: PageCursor? = nil, _ stretches: [IndexWalk.Stretch]? = nil,
    unless isOut: (RecordSlot) -> Bool = { _ in false }, examined: inout Int,
    _ body: (QueryCandidate<Item>) throws(RepositoryError) -> Bool
  ) throws(RepositoryError) {
    let matcher = RecordMatcher(query, coder, run.indexes.definitions, planned: run.choice)
    let mayLeaveOut = matcher.letsAllThrough && !run.givesOrder
    var failure: RepositoryError?
    var count = 0
    // The walk takes a closure that does not throw, so that it need not be generic over the error.
    run.walk(after: cursor, stretches: stretches) { slot, distance, score in
      count += 1
      if mayLeaveOut, isOut(slot) { return true }
      do throws(RepositoryError) {
        guard let candidate = try matcher.match(slot, distance: distance, score: score) else { return true }
        return try body(candidate)
      } catch {
        failure = error
        return false
      }
    }
    examined += count
    if let failure { throw failure }
  }
}

extension IndexSet {
  /// Returns the indexes that a query can use and that were not built.
  func missing(for shape: QueryShape, alsoUsing keyPath: AnyKeyPath? = nil) -> [Int] {
    definitions.indices.filter { index in
      if isBuilt(index) { return false }
      let definition = definitions[index]
      if let keyPath, definition.kind == .ordered, definition.columns.first?.keyPath.isSame(as: keyPath) == true { return true }
      return QueryPlanner.canUse(definition, for: shape)
    }
  }
}

extension CollectionState {
  /// Returns the state with indexes that were missing, built for this copy alone and not published.
  func building(_ missing: [Int]) -> CollectionState {
    var state = self
    state.indexes.build(missing, from: records)
    return state
  }
}

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

extension RecordSlot {
  /// Copies the value, decoded at the first call, into memory that holds none yet.
  /// - Throws: as ``decoded(_:)``.
  func copyValue<Item>(_ coder: RecordCoder<Item>, to memory: UnsafeMutablePointer<Item>) throws(RepositoryError) {
    // It lives as long as this slot: nothing counts a reference to it.
    if let value = unretainedValue, value._withUnsafeGuaranteedRef({ coder.copy($0, to: memory) }) { return }
    try decoded(coder).copy(to: memory)
  }
}

extension RecordCoder {
  /// Copies a decoded value into memory that holds none yet.
  /// - Returns: `false` for one that a repository of another type has decoded.
  func copy(_ value: any DecodedRecord, to memory: UnsafeMutablePointer<Item>) -> Bool {
    guard let value = typed(value) else { return false }
    value.copy(to: memory)
    return true
  }
}

extension DecodedValue {
  /// Copies the value into memory that holds none yet.
  ///
  /// Not inlined, as ``copy()``.
  @inline(never) func copy(to memory: UnsafeMutablePointer<Item>) { memory.initialize(to: item) }
}
