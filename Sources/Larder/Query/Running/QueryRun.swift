// Running/ runs a planned query.
// Invariant: with every plan, a query has the results that testing and sorting all records would give.
// Called by LocalRepository, RepositorySnapshot, Transaction and LiveResults.

/// A run of a query over a collection at one commit.
///
/// The query is planned when the run is created. `QueryRun` is not generic over the record type, because generic code would look up the
/// record's type metadata in every fetch. A run finds only slots, the form of records in memory, and ``TypedQueryRun`` tests and returns
/// the values.
struct QueryRun: Sendable {
  let shape: QueryShape
  let records: RecordMap
  let indexes: IndexSet
  /// Access path that the planner has chosen, with its cost.
  let choice: QueryPlanner.Choice

  /// Plans a query with the indexes that are built.
  ///
  /// The plan does not use an index that is declared but not built.
  /// - Throws: `.unsupported` if a predicate, a place, a limit or an offset is not valid, or if a needed index is not declared.
  init(_ shape: QueryShape, _ state: CollectionState) throws(RepositoryError) {
    try shape.check()
    (self.shape, records, indexes) = (shape, state.records, state.indexes)
    choice = try QueryPlanner(query: shape, indexes: indexes, recordCount: records.count).plan()
    if case .ordered(let index, _, _) = choice.access { indexes.definitions[index].automatic?.noteUse() }
  }

  /// Plans the query of another run again, without the indexes in the storage that do not fit the records.
  init(replanning run: QueryRun) throws(RepositoryError) {
    (shape, records, indexes) = (run.shape, run.records, run.indexes)
    choice = try QueryPlanner(query: shape, indexes: indexes, recordCount: records.count).plan()
  }

  /// True if the access path (an index or a scan) yields exactly the records that meet the query, so that no record has to be tested.
  var isExact: Bool {
    guard choice.covered.count == shape.conditions.count, shape.filterCount == 0, shape.boxes.isEmpty else { return false }
    return switch choice.access {
    case .near: shape.areas.count == 1 && shape.words == nil
    case .words: shape.areas.isEmpty
    case .nothing, .scan, .ordered, .box: shape.areas.isEmpty && shape.words == nil
    }
  }

  /// True if the access path (an index or a scan) yields the records in the order of the query.
  ///
  /// A scan yields records in order if the records are stored in that order, or if the query has a limit, which ends the scan early. Any
  /// other scan yields the records in no fixed order, and only the matching records are sorted.
  var givesOrder: Bool {
    if case .scan = choice.access {
      return choice.givesOrder && ((indexes.keys.isOfBytes && records.isOrdered) || shape.maximum != nil)
    }
    return choice.givesOrder
  }

  /// True if a scan ends after a few records, because every record meets the query and the records come in the query's order.
  var endsEarly: Bool {
    guard case .scan = choice.access, isExact, givesOrder else { return false }
    return shape.needed.map { $0 <= ConcurrentMap.partSize } ?? false
  }

  /// Upper bound of the number of records that the query reads.
  var bound: Int {
    guard isExact, choice.givesOrder, case .ordered(let index, _, let use) = choice.access else { return choice.bound }
    // If the query sorts by only some of the index's columns, entries that are equal in these columns form a group. A group of equal
    // entries is read as a whole and sorted by id, even if the limit needs only a part of it.
    if case .groups(let columns, _) = use, columns < indexes.definitions[index].columns.count { return choice.bound }
    let (stretches, skipped) = skippedByRank
    return Swift.min(stretches?.reduce(0) { $0 + $1.ranks.count } ?? choice.reach, shape.needed(behind: skipped) ?? .max)
  }

  /// Returns the number of records that meet the query without its offset and limit, or `nil` unless an index in the storage counts them.
  ///
  /// - Throws: The errors of ``StoredBase/indexKeyCount(of:from:below:)``.
  func storedCount() throws(RepositoryError) -> Int? {
    guard isExact, let entries = storedEntries else { return nil }
    var count = 0
    for range in choice.positions { count += try entries.count(range) }
    return count
  }

  /// The index in the storage from which the query reads.
  private var storedEntries: StoredEntries? {
    guard indexes.holdsStubs else { return nil }
    // The index may have been found unfit after the query was planned, so `IndexSet.storedEntries` would return `nil`.
    guard case .ordered(let index, _, _) = choice.access, case .stored(let entries) = indexes.bodies[index] else { return nil }
    return entries
  }

  /// Whether an index in the storage was found not to fit the records, so that the query must be planned anew.
  var isRefuted: Bool { indexes.bodies.contains { if case .stored(let entries) = $0 { entries.run.isUnfit } else { false } } }

  /// Number of records that meet the query without its offset and limit, or `nil` if only reading the records shows the number.
  var knownCount: Int? {
    switch choice.access {
    case .nothing: 0
    case .ordered: isExact && choice.positions.isEmpty ? choice.reach : nil
    case .scan, .near, .box, .words: nil
    }
  }
}

// MARK: - The answer straight from an index

extension QueryRun {
  /// Returns the results directly from an index in the query's order, or `nil` if records must be tested or sorted by their values.
  ///
  /// Most queries of an app are answered directly from an index, without a test or sort of values. All records in an index are known to
  /// decode, so none of them has to be left out of the results.
  /// - Throws: The errors of ``RecordMap/resolved(_:)``.
  func slotsFromIndex() throws(RepositoryError) -> [RecordSlot]? {
    guard isExact else { return nil }
    let isSortedByID: Bool
    switch choice.access {
    case .nothing: return []
    case .scan, .box: return nil
    case .ordered: isSortedByID = !choice.givesOrder && shape.order.isEmpty
    case .near, .words: isSortedByID = false
    }
    // A sort by id needs only the keys and no values of records, so `slotsFromIndex()` can sort by id itself.
    guard choice.givesOrder || isSortedByID else { return nil }

    let (stretches, skipped) = skippedByRank
    // Any record may come first after a sort by id, so before such a sort the loop gathers all records that the access path yields.
    let needed = isSortedByID ? .max : shape.needed(behind: skipped) ?? .max
    var slots: [RecordSlot] = []
    // The loop appends a slot before it compares the count, so with a limit of 0 it would return one record too many.
    guard needed > 0 else { return slots }
    if let entries = storedEntries {
      return try storedSlots(entries, needed: needed, isSortedByID: isSortedByID)
    }
    // A hostile file may have counted too many records of a collection whose records stay in the storage.
    if !indexes.holdsStubs { slots.reserveCapacity(Swift.min(choice.bound, needed)) }
    try walkUnresolved(stretches: stretches) { slot, _, _ in
      slots.append(slot)
      return slots.count < needed
    }
    if isSortedByID { slots = indexes.keys.sorted(slots) }
    if skipped > 0 || slots.count > shape.maximum ?? .max { slots = Array(slots.dropFirst(skipped).prefix(shape.maximum ?? .max)) }
    guard indexes.holdsStubs else { return slots }
    // The records are read from the storage only now, because the records behind the limit are not needed.
    return try slots.map { slot throws(RepositoryError) in try records.resolved(slot) }
  }

  /// Returns the results from an index in the storage, of which only those behind the offset are read.
  private func storedSlots(_ entries: StoredEntries, needed: Int, isSortedByID: Bool) throws(RepositoryError) -> [RecordSlot] {
    guard case .ordered(let index, _, _) = choice.access else { return [] }
    var found: [IndexEntry] = []
    var visited = 0
    try visitStored(entries, after: nil) { (entry) throws(RepositoryError) -> Bool in
      visited += 1
      if isSortedByID || visited > shape.skipped { found.append(entry) }
      return visited < needed
    }
    if isSortedByID {
      found.sort { indexes.keys.isBefore($0.slot.key, $1.slot.key) }
      found = Array(found.dropFirst(shape.skipped).prefix(shape.maximum ?? .max))
    }
    let definition = indexes.definitions[index]
    return try found.map { entry throws(RepositoryError) in try entries.record(of: entry, among: records, definition) }
  }

  /// Visits the entries that the access path yields from an index in the storage, until `visit` returns `false`.
  private func visitStored(
    _ entries: StoredEntries, after cursor: PageCursor?, _ visit: (IndexEntry) throws(RepositoryError) -> Bool
  ) throws(RepositoryError) {
    guard case .ordered(let index, let spans, let use) = choice.access else { return }
    let columns = indexes.definitions[index].columns
    for (span, range) in zip(spans, choice.positions) {
      let start = cursor.map { cursor in
        IndexWalk.Start(values: cursor.values(after: span.prefix, shape.order, columns), key: RecordKey(cursor.key))
      }
      if try !entries.visit(range, use, columns: columns.count, from: start, visit) { return }
    }
  }

  /// Ranges of the ordered index after the query's offset, or `nil` if ranks cannot skip it, and the number of results still to skip.
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
  /// Passes each record that the access path yields, with its distance and score, to `visit`, until `visit` returns `false`.
  ///
  /// - Throws: The errors of ``RecordMap/visitOrdered(by:after:_:)`` and ``RecordMap/resolved(_:)``.
  /// - Parameters:
  ///   - cursor: Cursor at the end of the previous page, or `nil` for the first page. An ordered index and a scan in the order of ids are
  ///     read from the cursor on.
  ///   - stretches: Ranges of the ordered index to read instead of the ranges in the plan.
  ///   - visit: Receives a record, its distance in metres, and its score.
  func walk(
    after cursor: PageCursor? = nil, stretches: [IndexWalk.OrderedRange]? = nil,
    _ visit: (RecordSlot, _ distance: Double?, _ score: Double?) -> Bool
  ) throws(RepositoryError) {
    guard indexes.holdsStubs else { return try walkUnresolved(after: cursor, stretches: stretches, visit) }
    if let entries = storedEntries, case .ordered(let index, _, _) = choice.access {
      let definition = indexes.definitions[index]
      return try visitStored(entries, after: cursor) { (entry) throws(RepositoryError) -> Bool in
        visit(try entries.record(of: entry, among: records, definition), nil, nil)
      }
    }
    var failure: RepositoryError?
    try walkUnresolved(after: cursor, stretches: stretches) { slot, distance, score in
      do throws(RepositoryError) { return visit(try records.resolved(slot), distance, score) } catch {
        failure = error
        return false
      }
    }
    if let failure { throw failure }
  }

  /// Passes each record that the access path yields to `visit`, as ``walk(after:stretches:_:)`` does, or a stub of a record in the storage.
  private func walkUnresolved(
    after cursor: PageCursor? = nil, stretches: [IndexWalk.OrderedRange]? = nil,
    _ visit: (RecordSlot, _ distance: Double?, _ score: Double?) -> Bool
  ) throws(RepositoryError) {
    switch choice.access {
    case .nothing:
      return
    case .scan where givesOrder:
      try records.visitOrdered(by: indexes.keys, after: cursor.map { RecordKey($0.key) }) { visit($0, nil, nil) }
    case .scan:
      try records.visit { visit($0, nil, nil) }
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
      // The text search may stop at the limit only if no other condition removes results and no sort changes their order.
      let limit = choice.givesOrder && isExact ? shape.needed ?? .max : .max
      for match in text.search(words, limit: limit) where !visit(match.slot, nil, match.score) { return }
    }
  }

  private func indexWalk(_ index: Int) -> IndexWalk? {
    indexes.tree(index).map { IndexWalk(tree: $0, columns: indexes.definitions[index].columns.count, keys: indexes.keys) }
  }
}

// MARK: - Automatic indexes

extension QueryRun {
  /// True if the run reads all records to sort them by properties of which an index could give the order.
  var wantsAutomaticIndex: Bool {
    guard case .scan = choice.access, isExact, shape.conditions.isEmpty else { return false }
    guard !shape.order.isEmpty, shape.order.count <= IndexEntry.Order.directionLimit else { return false }
    // A query for a large part of the collection copies so many records that an order saves it little.
    guard records.count >= AutomaticIndex.leastCount, let needed = shape.needed else { return false }
    return needed <= records.count / 8
  }
}
