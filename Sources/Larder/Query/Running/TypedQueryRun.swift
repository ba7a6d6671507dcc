internal import Foundation

/// A ``QueryRun`` that returns values: it tests the conditions that the plan leaves open, sorts unordered candidates, and copies the
/// results.
struct TypedQueryRun<Item: Codable & Identifiable & Sendable>: Sendable where Item.ID: Hashable & Codable & Sendable {
  let query: Query<Item>
  let coder: RecordCoder<Item>
  let run: QueryRun

  /// Plans a query over a collection at one commit.
  ///
  /// - Throws: as ``QueryRun``, and `.decodingFailed` for a strict query if a record does not decode.
  init(_ query: Query<Item>, _ coder: RecordCoder<Item>, _ state: CollectionState) throws(RepositoryError) {
    (self.query, self.coder) = (query, coder)
    if query.shape.isStrict {
      // Before the records are decoded: a query that is refused should not cost that.
      try query.shape.check()
      try state.records.checkDecodable(coder)
    }
    run = try QueryRun(query.shape, state)
  }

  /// Total order of the results.
  var order: ResultOrder<Item> { ResultOrder(columns: query.order, keys: coder.keys.order) }

  /// True if few enough records are read to run on the caller's actor.
  var isSmall: Bool { run.bound <= ConcurrentMap.partSize }

  /// Returns the values of the records that meet the query, in its order.
  ///
  /// - Throws: `.unsupported` when a predicate cannot be evaluated for a record.
  func items() throws(RepositoryError) -> [Item] {
    guard let slots = run.slotsFromIndex() else { return try results().map { $0.item } }
    // Copied directly into the array's memory: `append` would move each value once more and look up its type.
    var failure: RepositoryError?
    let items = [Item](unsafeUninitializedCapacity: slots.count) { buffer, count in
      guard let start = buffer.baseAddress else { return }
      do throws(RepositoryError) {
        for slot in slots {
          try slot.copyValue(coder, to: start + count)
          // Counted after each copy, so that an error frees exactly the values that were copied.
          count += 1
        }
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return items
  }

  /// Returns the results in their order, from the query's offset or after a cursor, at most as many as the limit.
  ///
  /// - Throws: as ``items()``.
  func results(after cursor: PageCursor? = nil) throws(RepositoryError) -> [QueryCandidate<Item>] {
    var examined = 0
    return try results(after: cursor, examined: &examined)
  }

  /// Returns the results as ``results(after:)`` does, and adds the number of records that were read to `examined`.
  func results(after cursor: PageCursor?, examined: inout Int) throws(RepositoryError) -> [QueryCandidate<Item>] {
    let order = order
    // A page begins at its cursor, so ranks from the start of the index do not help it.
    let (stretches, skipped) = cursor == nil ? run.skippedByRank : (nil, query.shape.skipped)
    var collector = ResultCollector(order: order, needed: query.shape.needed(behind: skipped), arrivesInOrder: run.givesOrder)
    let start = cursor.map { RecordKey($0.key) }
    var isBehind = false
    try forEachMatch(after: cursor, stretches, unless: { collector.excludes($0) }, examined: &examined) {
      (candidate) throws(RepositoryError) -> Bool in
      if let cursor, let start, !isBehind {
        if !cursor.isBefore(candidate, order, start) { return true }
        isBehind = run.givesOrder  // and all later ones are, too
      }
      return collector.add(candidate)
    }
    return collector.finish(skipping: skipped)
  }

  /// Returns the number of records that meet the query, after its offset and limit.
  ///
  /// - Throws: as ``items()``.
  func count() throws(RepositoryError) -> Int {
    var all = 0
    if let known = run.knownCount {
      all = known
    } else if run.isExact, case .scan = run.choice.access {
      // Records that do not decode are in no result.
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

  /// Visits the records that meet the query in the order of the access path, until the body returns `false`.
  ///
  /// - Parameter isOut: Returns true if a matching record need not be visited. Called only where no test can fail.
  private func forEachMatch(
    after cursor: PageCursor? = nil, _ stretches: [IndexWalk.OrderedRange]? = nil,
    unless isOut: (RecordSlot) -> Bool = { _ in false }, examined: inout Int,
    _ body: (QueryCandidate<Item>) throws(RepositoryError) -> Bool
  ) throws(RepositoryError) {
    let matcher = RecordMatcher(query, coder, run.indexes.definitions, planned: run.choice)
    // A record may be left out untested only if its tests could neither reject it nor throw.
    let mayLeaveOut = matcher.letsAllThrough && !run.givesOrder
    var failure: RepositoryError?
    var count = 0
    // The closure stores the error instead of throwing it, so that `walk` need not be generic over the error.
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
  /// Returns the positions of the indexes that a query can use and that are not built.
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
  /// Returns the state with the missing indexes built for this copy only, without publishing them.
  func building(_ missing: [Int]) -> CollectionState {
    var state = self
    state.indexes.build(missing, from: records)
    return state
  }
}

extension TypedQueryRun {
  /// Returns results with the distance, score and extract source of each.
  func matches(_ results: [QueryCandidate<Item>]) -> [Match<Item>] {
    let definition = run.indexes.first(.fullText).map { run.indexes.definitions[$0] }
    return results.map { candidate in
      var source: Match<Item>.ExtractSource?
      if let words = query.shape.words, let texts = definition?.texts(candidate.slot) { source = .init(words: words, texts: texts) }
      return Match(
        item: candidate.item, distance: candidate.distance.map { .meters($0) }, score: candidate.score, source: source)
    }
  }

  /// Returns the number of results for each value of a property.
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
        // A step of at least one, so that the loop always ends.
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
    // Grouped by index values, as an index groups: NaN equals itself there, and would otherwise make a group for each record.
    var groups: [IndexValue: (value: Value, count: Int)] = [:]
    for value in values { groups[value.indexValue, default: (value, 0)].count += 1 }
    for group in groups.values { counts[group.value] = group.count }
    return counts
  }

  /// Returns an index that has the groups of a property, so that only the first record of each group is read, or `nil` if there is none.
  func groupingIndex<Value: IndexableValue>(_ keyPath: AnyKeyPath, _ type: Value.Type) -> PersistentTree<IndexEntry>? {
    guard case .scan = run.choice.access, run.isExact, query.shape.maximum == nil, query.shape.skipped == 0 else { return nil }
    let tree = run.indexes.definitions.indices.lazy.compactMap { index in
      let isFirst = run.indexes.definitions[index].columns.first?.keyPath.isSame(as: keyPath) ?? false
      return isFirst ? run.indexes.tree(index) : nil
    }.first
    // Checked last: reading the index above applies its pending changes, whose values may show that the type is not exact.
    return Value.standsForOneValue ? tree : nil
  }

  /// Returns the plan, with the number of records that were read if the query is small enough to run.
  ///
  /// - Throws: as ``items()``.
  func explained() throws(RepositoryError) -> QueryPlan {
    // `explain` must stay cheap for a query over a large collection.
    guard run.choice.bound <= 10_000 else { return run.plan(examined: nil) }
    var examined = 0
    _ = try results(after: nil, examined: &examined)
    return run.plan(examined: examined)
  }
}

extension RecordSlot {
  /// Copies the value into uninitialized memory, after decoding it if that was not done before.
  ///
  /// - Throws: as ``decoded(_:)``.
  func copyValue<Item>(_ coder: RecordCoder<Item>, to memory: UnsafeMutablePointer<Item>) throws(RepositoryError) {
    // The value lives as long as this slot, so it is read without a retain.
    if let value = unretainedValue, value._withUnsafeGuaranteedRef({ coder.copy($0, to: memory) }) { return }
    try decoded(coder).copy(to: memory)
  }
}

extension RecordCoder {
  /// Copies a decoded value into uninitialized memory.
  ///
  /// - Returns: False for a value that a repository of another type has decoded. Then nothing is copied.
  func copy(_ value: any DecodedRecord, to memory: UnsafeMutablePointer<Item>) -> Bool {
    guard let value = typed(value) else { return false }
    value.copy(to: memory)
    return true
  }
}

extension DecodedValue {
  /// Copies the value into uninitialized memory.
  ///
  /// Not inlined, for the reason that ``copy()`` gives: the look-up of the type would take longer than the copy.
  @inline(never) func copy(to memory: UnsafeMutablePointer<Item>) { memory.initialize(to: item) }
}
