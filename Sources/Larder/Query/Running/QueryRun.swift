// Running/ runs a planned query. Invariant: the results are those of testing and sorting every record, with any plan. Called by
// LocalRepository, RepositorySnapshot, Transaction and LiveResults.

/// A run of a query over a collection at one commit, planned when it is created.
///
/// It is not generic over the records: it finds their slots, and ``TypedQueryRun`` tests and returns their values. Generic code would look
/// up the record's types in every fetch.
struct QueryRun: Sendable {
  let shape: QueryShape
  let records: RecordMap
  let indexes: IndexSet
  /// Access path that the planner chose, with its cost.
  let choice: QueryPlanner.Choice

  /// Plans a query.
  ///
  /// An index that is not built is not used.
  ///
  /// - Throws: `.unsupported` for a predicate, a place, a limit or an offset that is not valid, and when an index that the query needs is
  ///   not declared.
  init(_ shape: QueryShape, _ state: CollectionState) throws(RepositoryError) {
    try shape.check()
    (self.shape, records, indexes) = (shape, state.records, state.indexes)
    choice = try QueryPlanner(query: shape, indexes: indexes, recordCount: records.count).plan()
  }

  /// True if the access path yields exactly the records that meet the query, so that no value has to be tested.
  var isExact: Bool {
    guard choice.covered.count == shape.conditions.count, shape.filterCount == 0, shape.boxes.isEmpty else { return false }
    return switch choice.access {
    case .near: shape.areas.count == 1 && shape.words == nil
    case .words: shape.areas.isEmpty
    case .nothing, .scan, .ordered, .box: shape.areas.isEmpty && shape.words == nil
    }
  }

  /// True if candidates come in the order of the query.
  ///
  /// A scan yields them in order where that is free, or where a limit lets it end early. Otherwise the matching records are sorted, which
  /// are fewer than all.
  var givesOrder: Bool {
    if case .scan = choice.access {
      return choice.givesOrder && ((indexes.keys.isOfBytes && records.isOrdered) || shape.maximum != nil)
    }
    return choice.givesOrder
  }

  /// True if a scan ends after a few records, because each of them meets the query and they come in its order.
  var endsEarly: Bool {
    guard case .scan = choice.access, isExact, givesOrder else { return false }
    return shape.needed.map { $0 <= ConcurrentMap.partSize } ?? false
  }

  /// Upper bound of the number of records that are read.
  var bound: Int {
    guard isExact, choice.givesOrder, case .ordered(let index, _, let use) = choice.access else { return choice.bound }
    // Entries that are equal in the sorted columns but not in all of the index's are gathered as a whole group and sorted by id.
    if case .groups(let columns, _) = use, columns < indexes.definitions[index].columns.count { return choice.bound }
    let (stretches, skipped) = skippedByRank
    return Swift.min(stretches?.reduce(0) { $0 + $1.ranks.count } ?? choice.reach, shape.needed(behind: skipped) ?? .max)
  }

  /// Number of records that meet the query before its offset and limit, or `nil` if only reading them shows it.
  var knownCount: Int? {
    switch choice.access {
    case .nothing: 0
    case .ordered: isExact ? choice.reach : nil
    case .scan, .near, .box, .words: nil
    }
  }
}

// MARK: - The answer straight from an index

extension QueryRun {
  /// Returns the results directly from an index, in its order, or `nil` where records must be tested or sorted by their values.
  ///
  /// Most queries of an app are answered this way. Records in an index are known to decode.
  func slotsFromIndex() -> [RecordSlot]? {
    guard isExact else { return nil }
    let isSortedByID: Bool
    switch choice.access {
    case .nothing: return []
    case .scan, .box: return nil
    case .ordered: isSortedByID = !choice.givesOrder && shape.order.isEmpty
    case .near, .words: isSortedByID = false
    }
    // Sorting by id reads no value, so it can be done here.
    guard choice.givesOrder || isSortedByID else { return nil }

    let (stretches, skipped) = skippedByRank
    // Sorted by id afterwards, any record may be among the first, so all are gathered.
    let needed = isSortedByID ? .max : shape.needed(behind: skipped) ?? .max
    var slots: [RecordSlot] = []
    // The walk below appends a record before it compares the count.
    guard needed > 0 else { return slots }
    slots.reserveCapacity(Swift.min(choice.bound, needed))
    walk(stretches: stretches) { slot, _, _ in
      slots.append(slot)
      return slots.count < needed
    }
    if isSortedByID { slots = indexes.keys.sorted(slots) }
    if skipped == 0, slots.count <= shape.maximum ?? .max { return slots }
    return Array(slots.dropFirst(skipped).prefix(shape.maximum ?? .max))
  }

  /// Parts of an ordered index behind the query's offset, if their ranks are known, and the number of results still to skip.
  var skippedByRank: (stretches: [IndexWalk.OrderedRange]?, skipped: Int) {
    guard shape.skipped > 0, isExact, choice.givesOrder, choice.ranks.count == 1, case .ordered(let index, _, let use) = choice.access,
      let walk = indexWalk(index)
    else { return (nil, shape.skipped) }
    let (stretches, skipped) = walk.skipping(shape.skipped, of: choice.ranks[0], use)
    return (stretches, skipped)
  }
}

// MARK: - Walking

extension QueryRun {
  /// Visits the records that the access path yields, each with the distance and score that it has computed, until `visit` returns `false`.
  ///
  /// - Parameters:
  ///   - cursor: End of the page before. An ordered index or the records by id are visited from there.
  ///   - stretches: Parts of the ordered index that remain, in place of all that the plan names.
  ///   - visit: Takes a record, its distance in metres, and its score.
  func walk(
    after cursor: PageCursor? = nil, stretches: [IndexWalk.OrderedRange]? = nil,
    _ visit: (RecordSlot, _ distance: Double?, _ score: Double?) -> Bool
  ) {
    switch choice.access {
    case .nothing:
      return
    case .scan where givesOrder:
      records.visitOrdered(by: indexes.keys, after: cursor.map { RecordKey($0.key) }) { visit($0, nil, nil) }
    case .scan:
      records.visit { visit($0, nil, nil) }
    case .ordered(let index, let spans, let use):
      guard let walk = indexWalk(index) else { return }
      if let stretches {
        for stretch in stretches where !walk.visit(stretch.ranks, stretch.use, from: nil, { visit($0, nil, nil) }) { return }
        return
      }
      for (span, ranks) in zip(spans, choice.ranks) {
        let start = cursor.map { cursor in
          let values = cursor.values(after: span.prefix, shape.order, indexes.definitions[index].columns)
          return IndexWalk.Start(values: values, key: RecordKey(cursor.key))
        }
        if !walk.visit(ranks, use, from: start, { visit($0, nil, nil) }) { return }
      }
    case .near(let index):
      guard case .geo(let geo) = indexes.body(index), let near = shape.near else { return }
      geo.nearest(to: near.latitude, near.longitude, within: near.radius?.meters) { visit($0, $1, nil) }
    case .box(let index, let box):
      guard case .geo(let geo) = indexes.body(index) else { return }
      geo.forEach(in: box) { visit($0, nil, nil) }
    case .words(let index):
      guard case .text(let text) = indexes.body(index), let words = shape.words else { return }
      // The search may stop at the limit only if nothing else removes or reorders its results.
      let limit = choice.givesOrder && isExact ? shape.needed ?? .max : .max
      for match in text.search(words, limit: limit) where !visit(match.slot, nil, match.score) { return }
    }
  }

  private func indexWalk(_ index: Int) -> IndexWalk? {
    indexes.tree(index).map { IndexWalk(tree: $0, columns: indexes.definitions[index].columns.count, keys: indexes.keys) }
  }
}
