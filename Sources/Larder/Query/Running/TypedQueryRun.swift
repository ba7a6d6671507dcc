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
