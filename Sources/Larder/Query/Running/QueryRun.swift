/// Answers a query at one commit: prepares, plans, and walks the records that the plan leads to.
struct QueryRun<Item: Codable & Identifiable & Sendable>: Sendable where Item.ID: Hashable & Codable & Sendable {
  let query: PreparedQuery<Item>
  let records: RecordMap
  let indexes: IndexSet<Item>
  let choice: QueryPlanner.Choice
  let order: ResultOrder<Item>
  /// The conditions that the access path does not answer by itself.
  let residual: [Conjunct<Item>]
  private let tests: [Conjunct<Item>.Evaluation]

  /// - Throws: `.unsupported` when an index that the query needs is not declared; `.decodingFailed` for a strict query and a record that does
  ///   not decode.
  init(_ query: PreparedQuery<Item>, records: RecordMap, indexes: IndexSet<Item>) throws(RepositoryError) {
    if query.shape.isStrict { try records.checkDecodable(indexes.coder) }
    let table = IndexTable(shapes: indexes.shapes, bodies: indexes.bodies, keys: indexes.coder.keys.order)
    let choice = try QueryPlanner(query: query.shape, indexes: table, recordCount: records.count).plan()
    self.query = query
    self.records = records
    self.indexes = indexes
    self.choice = choice
    order = ResultOrder(columns: query.order, keys: indexes.coder.keys.order)
    residual = query.conjuncts.enumerated().filter { !choice.covered.contains($0.offset) }.map { $0.element }
    tests = residual.map { $0.evaluate }
  }

  /// The results in their order, from the query's offset, at most as many as its limit; after a cursor, if one is given.
  func results(after cursor: PageCursor? = nil) throws(RepositoryError) -> [QueryCandidate<Item>] {
    var examined = 0
    return try results(after: cursor, examined: &examined)
  }

  func results(after cursor: PageCursor?, examined: inout Int) throws(RepositoryError) -> [QueryCandidate<Item>] {
    let (rest, skipped) = cursor == nil ? skippedByRank : (nil, query.skipped)
    let needed = query.maximum.map { $0.addingReportingOverflow(skipped).overflow ? .max : $0 + skipped }
    var found = ResultCollector(order: order, needed: needed, arrivesInOrder: givesOrder)
    var seen = 0
    try forEachMatch(from: cursor, rest, examined: &seen) { (candidate) throws(RepositoryError) -> Bool in
      if let cursor, try !cursor.isBefore(candidate, order) { return true }
      return found.add(candidate)
    }
    examined += seen
    return found.finish(skipping: skipped)
  }

  /// What is left of an ordered index behind the query's offset, where that can be told by rank, and how many are still to be left out.
  private var skippedByRank: (rest: [IndexWalk.Stretch]?, inside: Int) {
    guard query.skipped > 0, isPlain, choice.givesOrder, choice.ranks.count == 1, case .ordered(let index, _, let use) = choice.access,
      let walk = indexWalk(index)
    else { return (nil, query.skipped) }
    let (rest, inside) = walk.skipping(query.skipped, of: choice.ranks[0], use)
    return (rest, inside)
  }

  /// Returns how many records meet the query, its offset and limit taken into account.
  func count() throws(RepositoryError) -> Int {
    let all: Int
    if case .ordered = choice.access, isPlain {
      all = choice.reach
    } else if case .scan = choice.access, isPlain {
      all = records.count - records.undecodable(indexes.coder).count
    } else {
      var matches = 0
      var examined = 0
      try forEachMatch(from: nil, examined: &examined) { (_) throws(RepositoryError) -> Bool in
        matches += 1
        return true
      }
      all = matches
    }
    return min(max(all - query.skipped, 0), query.maximum ?? .max)
  }

  /// Whether records come in the order of the query.
  ///
  /// A scan gives them so where that costs nothing, or where a limit lets it end early; else the few that meet the query are sorted instead of
  /// all.
  var givesOrder: Bool {
    if case .scan = choice.access { return choice.givesOrder && (records.isOrdered || query.maximum != nil) }
    return choice.givesOrder
  }

  /// Whether counting looks at no record.
  var isCounted: Bool {
    switch choice.access {
    case .nothing: true
    case .ordered: isPlain
    case .scan, .near, .box, .words: false
    }
  }

  /// Whether the access path leads to just the records that are asked for.
  var isPlain: Bool {
    residual.isEmpty && query.filters.isEmpty && !query.shape.isPlaced && query.words == nil
  }

  // MARK: Walking

  /// Visits the records that meet the query, as the access path gives them, until the body has enough.
  func forEachMatch(
    from cursor: PageCursor?, _ rest: [IndexWalk.Stretch]? = nil, examined: inout Int,
    _ body: (QueryCandidate<Item>) throws(RepositoryError) -> Bool
  ) throws(RepositoryError) {
    var failure: RepositoryError?
    var count = 0
    // Walkers take closures that do not throw, so that they need not be generic over the error.
    let visit = { (slot: RecordSlot, distance: Double?, score: Double?) -> Bool in
      count += 1
      do throws(RepositoryError) {
        guard let candidate = try self.match(slot, distance, score) else { return true }
        return try body(candidate)
      } catch {
        failure = error
        return false
      }
    }
    walk(from: cursor, rest, visit)
    examined += count
    if let failure { throw failure }
  }

  private func indexWalk(_ index: Int) -> IndexWalk? {
    indexes.tree(index).map { IndexWalk(tree: $0, columns: indexes.declarations[index].columns.count, keys: order.keys) }
  }

  private func walk(from cursor: PageCursor?, _ rest: [IndexWalk.Stretch]?, _ visit: (RecordSlot, Double?, Double?) -> Bool) {
    switch choice.access {
    case .nothing:
      return
    case .scan where givesOrder:
      for slot in records.ordered() where !visit(slot, nil, nil) { return }
    case .scan:
      records.visit { visit($0, nil, nil) }
    case .ordered(let index, let spans, let use):
      guard let walk = indexWalk(index) else { return }
      if let rest {
        for stretch in rest where !walk.visit(stretch.ranks, stretch.use, from: nil, { visit($0, nil, nil) }) { return }
        return
      }
      for (span, ranks) in zip(spans, choice.ranks) {
        let start = cursor.map { cursor in
          let values = cursor.values(after: span.prefix, query.order, indexes.declarations[index].columns)
          return IndexWalk.Start(values: values, key: RecordKey(cursor.key))
        }
        if !walk.visit(ranks, use, from: start, { visit($0, nil, nil) }) { return }
      }
    case .near(let index):
      guard case .geo(let geo) = indexes.bodies[index], let near = query.near else { return }
      geo.nearest(to: near.latitude, near.longitude, within: near.within?.meters) { visit($0, $1, nil) }
    case .box(let index, let box):
      guard case .geo(let geo) = indexes.bodies[index] else { return }
      geo.within(box) { visit($0, nil, nil) }
    case .words(let index):
      guard case .text(let text) = indexes.bodies[index], let words = query.words else { return }
      // Ranked results are wanted whole unless nothing else decides which of them stay.
      let isAll = choice.givesOrder && residual.isEmpty && query.filters.isEmpty && !query.shape.isPlaced
      for match in text.search(words, limit: isAll ? query.needed ?? .max : .max) where !visit(match.slot, nil, match.score) { return }
    }
  }

  /// The record as a candidate if it meets what the access path has not answered.
  private func match(_ slot: RecordSlot, _ distance: Double?, _ score: Double?) throws(RepositoryError) -> QueryCandidate<Item>? {
    guard let value = indexes.value(slot) else { return nil }
    for holds in tests where try !holds(value.item) { return nil }
    var candidate = QueryCandidate(slot: slot, value: value, distance: distance, score: score)
    if query.shape.isPlaced {
      guard try place(&candidate) else { return nil }
    }
    for filter in query.filters where !filter(value.item) { return nil }
    return candidate
  }

  /// Whether a record's place is where it is asked for; notes its distance.
  func place(_ candidate: inout QueryCandidate<Item>) throws(RepositoryError) -> Bool {
    for declaration in indexes.declarations {
      guard case .geo(let read) = declaration.kind else { continue }
      guard let read = read(candidate.item), let place = GeoCoordinate(latitude: read.latitude, longitude: read.longitude) else {
        return false
      }
      for box in query.shape.boxes where !box.contains(latitude: place.latitude, longitude: place.longitude) { return false }
      for (position, area) in query.shape.areas.enumerated() {
        guard let center = GeoCoordinate(latitude: area.latitude, longitude: area.longitude) else { return false }
        let isLast = position == query.shape.areas.count - 1
        let distance = (isLast ? candidate.distance : nil) ?? GreatCircle.distance(center, place)
        if let within = area.within, distance > within.meters { return false }
        if isLast { candidate.distance = distance }
      }
      return true
    }
    return false
  }
}
