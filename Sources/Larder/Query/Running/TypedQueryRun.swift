internal import Foundation

/// Runs a ``QueryRun`` for a record type: tests the conditions that the plan leaves open, sorts, and copies the results.
struct TypedQueryRun<Item: Codable & Identifiable & Sendable>: Sendable where Item.ID: Hashable & Codable & Sendable {
  let query: Query<Item>
  let coder: RecordCoder<Item>
  let run: QueryRun

  /// Plans a query over a collection at one commit.
  ///
  /// - Throws: The errors of the initializer of ``QueryRun``. For a strict query, also `.decodingFailed` if a record does not decode.
  init(_ query: Query<Item>, coder: RecordCoder<Item>, over state: CollectionState) throws(RepositoryError) {
    (self.query, self.coder) = (query, coder)
    if query.shape.isStrict {
      // The query is checked before the records are decoded, so that no record is decoded for a query that is refused.
      try query.shape.check()
      try state.records.checkDecodable(coder)
    }
    run = try QueryRun(query.shape, state)
  }

  private init(replanning other: Self) throws(RepositoryError) {
    (query, coder, run) = (other.query, other.coder, try QueryRun(replanning: other.run))
  }

  /// Runs the query, and runs it again without an index in the storage that turns out not to fit the records.
  private func replanning<Output>(_ body: (Self) throws(RepositoryError) -> Output) throws(RepositoryError) -> Output {
    if !run.indexes.holdsStubs { return try body(self) }
    var (attempt, attempts) = (self, 1)
    while true {
      do throws(RepositoryError) { return try body(attempt) } catch {
        guard error.code == .corrupted, run.isRefuted, attempts <= run.indexes.definitions.count else { throw error }
        attempt = try Self(replanning: self)
        attempts += 1
      }
    }
  }

  /// Total order of the query's results.
  var order: ResultOrder<Item> { ResultOrder(columns: query.order, keys: coder.keys.order) }

  /// True if the query reads so few records that it may run on the caller's actor.
  var isSmall: Bool { run.bound <= ConcurrentMap.partSize }

  /// Returns the values of the records that meet the query, in the query's order.
  ///
  /// - Throws: `.unsupported` if a predicate cannot be evaluated for a record.
  func items() throws(RepositoryError) -> [Item] {
    try replanning { (run) throws(RepositoryError) in try run.itemsNow() }
  }

  private func itemsNow() throws(RepositoryError) -> [Item] {
    guard let slots = try run.slotsFromIndex() else { return try results().map { $0.item } }
    // The values are copied directly into the array's memory, because `append` would move each value once more and look up its type
    // metadata.
    var failure: RepositoryError?
    let items = [Item](unsafeUninitializedCapacity: slots.count) { buffer, count in
      guard let start = buffer.baseAddress else { return }
      do throws(RepositoryError) {
        for slot in slots {
          try slot.copyValue(coder, to: start + count)
          // The count is increased after each copy, so that if an error ends the loop, exactly the copied values are released.
          count += 1
        }
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return items
  }

  /// Returns the results in the query's order, after the offset or after a cursor, up to the query's limit.
  ///
  /// - Throws: The errors of ``items()``.
  func results(after cursor: PageCursor? = nil) throws(RepositoryError) -> [QueryCandidate<Item>] {
    var examined = 0
    return try results(after: cursor, examined: &examined)
  }

  /// Returns the results as ``results(after:)`` does, and adds the number of records that were read to `examined`.
  func results(after cursor: PageCursor?, examined: inout Int) throws(RepositoryError) -> [QueryCandidate<Item>] {
    var count = 0
    let results = try replanning { (run) throws(RepositoryError) in
      count = 0
      return try run.resultsNow(after: cursor, examined: &count)
    }
    examined += count
    return results
  }

  private func resultsNow(after cursor: PageCursor?, examined: inout Int) throws(RepositoryError) -> [QueryCandidate<Item>] {
    let order = order
    // A page begins at its cursor, so its offset cannot be skipped by ranks (positions), which count from the start of the index.
    let (stretches, skipped) = cursor == nil ? run.skippedByRank : (nil, query.shape.skipped)
    var collector = ResultCollector(order: order, needed: query.shape.needed(behind: skipped), arrivesInOrder: run.givesOrder)
    let start = cursor.map { RecordKey($0.key) }
    var isBehind = false
    try forEachMatch(after: cursor, stretches, unless: { collector.excludes($0) }, examined: &examined) {
      (candidate) throws(RepositoryError) -> Bool in
      if let cursor, let start, !isBehind {
        if !cursor.isBefore(candidate, in: order, start: start) { return true }
        isBehind = run.givesOrder  // if candidates come in the query's order, all later ones are after the cursor, too
      }
      return collector.add(candidate)
    }
    return collector.finish(skipping: skipped)
  }

  /// Returns the number of results of the query, after its offset and limit.
  ///
  /// - Throws: The errors of ``items()``.
  func count() throws(RepositoryError) -> Int {
    try replanning { (run) throws(RepositoryError) in try run.countNow() }
  }

  private func countNow() throws(RepositoryError) -> Int {
    var all = 0
    if let known = run.knownCount {
      all = known
    } else if let counted = try run.storedCount() {
      all = counted
    } else if run.isExact, case .scan = run.choice.access {
      // Records that do not decode are in no result, so they are not counted.
      all = run.records.count - (try run.records.undecodable(coder).count)
    } else {
      var examined = 0
      try forEachMatch(examined: &examined) { (_) throws(RepositoryError) -> Bool in
        all += 1
        return true
      }
    }
    return min(max(all - query.shape.skipped, 0), query.shape.maximum ?? .max)
  }

  /// Passes the records that meet the query to the body, in the order of the access path, until the body returns `false`.
  ///
  /// - Parameter isOut: Returns true if a matching record need not be passed to the body. `isOut` is called only if no test can reject a
  ///   record or throw.
  private func forEachMatch(
    after cursor: PageCursor? = nil, _ stretches: [IndexWalk.OrderedRange]? = nil,
    unless isOut: (RecordSlot) -> Bool = { _ in false }, examined: inout Int,
    _ body: (QueryCandidate<Item>) throws(RepositoryError) -> Bool
  ) throws(RepositoryError) {
    let matcher = RecordMatcher(query, coder: coder, definitions: run.indexes.definitions, planned: run.choice)
    // A record may be left out before its tests only if no test could throw for it. A skipped test would hide an error of the predicate.
    let mayLeaveOut = matcher.letsAllThrough && !run.givesOrder
    var failure: RepositoryError?
    var count = 0
    // The closure that `walk` calls stores the error instead of throwing it, so that `walk` need not be generic over the error type.
    try run.walk(after: cursor, stretches: stretches) { slot, distance, score in
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
  /// Returns the positions of the indexes that a query can use and that are declared but not built.
  func missing(for shape: QueryShape, alsoUsing keyPath: AnyKeyPath? = nil) -> [Int] {
    definitions.indices.filter { index in
      let definition = definitions[index]
      // An automatic index is built after a scan, in the background, and no query waits for it.
      if isBuilt(index) || definition.automatic != nil { return false }
      if let keyPath, definition.kind == .ordered, definition.columns.first?.keyPath.isSame(as: keyPath) == true { return true }
      return QueryPlanner.canUse(definition, for: shape)
    }
  }
}

extension CollectionState {
  /// Returns a copy of the state in which the missing indexes are built.
  ///
  /// The copy with the built indexes is not published, so other readers do not get it.
  /// - Throws: The errors of ``IndexSet/built(_:over:)``.
  func building(_ missing: [Int]) throws(RepositoryError) -> CollectionState {
    var state = self
    try state.indexes.build(missing, from: records)
    return state
  }
}

extension TypedQueryRun {
  /// Returns the results as matches, each with its distance, its score and the source of its text extract.
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
  /// - Throws: The errors of ``items()``.
  func grouped<Value: Hashable & IndexableValue>(
    by keyPath: any KeyPath<Item, Value> & Sendable
  ) throws(RepositoryError) -> [Value: Int] {
    try replanning { (run) throws(RepositoryError) in try run.groupedNow(by: keyPath) }
  }

  private func groupedNow<Value: Hashable & IndexableValue>(
    by keyPath: any KeyPath<Item, Value> & Sendable
  ) throws(RepositoryError) -> [Value: Int] {
    var counts: [Value: Int] = [:]
    let index = groupingIndex(keyPath, Value.self)
    if let index, let entries = run.indexes.storedEntries(index) {
      try entries.forEachGroup { (entry, count) throws(RepositoryError) in
        if let value = coder.valueIfReadable(try entries.record(of: entry, among: run.records, run.indexes.definitions[index])) {
          counts[value.item[keyPath: keyPath], default: 0] += count
        }
      }
      return counts
    }
    if let index, let tree = run.indexes.tree(index) {
      var start = 0
      while start < tree.count {
        let entry = tree.entry(at: start)
        let end = tree.end(of: [entry.values[0]])
        if let value = coder.valueIfReadable(try run.records.resolved(entry.slot)) {
          counts[value.item[keyPath: keyPath], default: 0] += end - start
        }
        // The position in the index advances by at least one entry, so that the loop ends in every case.
        start = max(end, start + 1)
      }
      return counts
    }
    let values = try results().map { $0.item[keyPath: keyPath] }
    // An enumeration may give a value another index value than that of its raw value, and then equal index values do not mean equal values.
    // `note` detects a value whose index value differs from that of its raw value. If `note` detects one, the values themselves are counted
    // and not their index values.
    if let rawValues = RawIndexValues.of(Value.self) {
      for value in values { rawValues.note(value, value.indexValue) }
    }
    guard Value.standsForOneValue else {
      for value in values { counts[value, default: 0] += 1 }
      return counts
    }
    // The values are grouped by their index values, where NaN equals NaN, because compared as values, each NaN would form a group of its
    // own.
    var groups: [IndexValue: (value: Value, count: Int)] = [:]
    for value in values { groups[value.indexValue, default: (value, 0)].count += 1 }
    for group in groups.values { counts[group.value] = group.count }
    return counts
  }

  /// Returns the position of an index whose first column is the property, from which `grouped` can count, or `nil` if none can be used.
  func groupingIndex<Value: IndexableValue>(_ keyPath: AnyKeyPath, _ type: Value.Type) -> Int? {
    guard case .scan = run.choice.access, run.isExact, query.shape.maximum == nil, query.shape.skipped == 0 else { return nil }
    // An automatic index does not check the index values of enumerations, which decide below whether equal ones mean equal values.
    let index = run.indexes.definitions.indices.prefix(run.indexes.declaredCount).first { index in
      let isFirst = run.indexes.definitions[index].columns.first?.keyPath.isSame(as: keyPath) ?? false
      // The values of an index in the storage were not compared with their raw values in this process.
      let isStored = RawIndexValues.of(Value.self) == nil && run.indexes.storedEntries(index) != nil
      return isFirst && (isStored || run.indexes.tree(index) != nil)
    }
    // Reading an index applies its pending changes, whose values may show that equal index values do not mean equal values.
    // `standsForOneValue`, which is true if equal index values mean equal values, is therefore read after the index.
    return Value.standsForOneValue ? index : nil
  }

  /// Returns the plan of the query, with the number of records that were read if the query is small enough to be run.
  ///
  /// - Throws: The errors of ``items()``.
  func explained() throws(RepositoryError) -> QueryPlan {
    // A query that may read many records is not run, because `explain` must stay cheap.
    guard run.choice.bound <= 10_000 else { return run.plan(examined: nil) }
    var examined = 0
    _ = try results(after: nil, examined: &examined)
    return run.plan(examined: examined)
  }
}

extension TypedQueryRun {
  /// Index that would give the order of the query, or `nil` if the query does not call for one.
  var automaticIndex: IndexDefinition? {
    guard run.wantsAutomaticIndex, let isReversed = query.order.first?.isReversed, let queries = run.indexes.automaticQueries else {
      return nil
    }
    var columns: [IndexColumn<Item>] = []
    for column in query.order {
      // A computed property may return another value later for the same record, and no commit would tell the index.
      guard let value = column.value, MemoryLayout<Item>.offset(of: column.keyPath as PartialKeyPath<Item>) != nil else { return nil }
      // The first column ascends, so that queries in the reverse order read the same index.
      columns.append(IndexColumn(keyPath: column.keyPath, isDescending: column.isReversed != isReversed, value: value))
    }
    return IndexDefinition(RepositoryIndex(kind: .ordered(isUnique: false), columns: columns), coder, automatic: AutomaticIndex(queries))
  }
}

extension RecordSlot {
  /// Copies the value of the record into uninitialized memory, after decoding the record if needed.
  ///
  /// - Throws: The errors of ``decoded(_:)``.
  func copyValue<Item>(_ coder: RecordCoder<Item>, to memory: UnsafeMutablePointer<Item>) throws(RepositoryError) {
    // The slot (the record's object in memory) keeps the value alive during the copy, so the value is read without a retain.
    if let value = unretainedValue, value._withUnsafeGuaranteedRef({ coder.copy($0, to: memory) }) { return }
    try decoded(coder).copy(to: memory)
  }
}

extension RecordCoder {
  /// Copies a decoded value into uninitialized memory.
  ///
  /// - Returns: False, with nothing copied, if a repository of another type has decoded the value.
  func copy(_ value: any DecodedRecord, to memory: UnsafeMutablePointer<Item>) -> Bool {
    guard let value = typed(value) else { return false }
    value.copy(to: memory)
    return true
  }
}

extension DecodedValue {
  /// Copies the value into uninitialized memory.
  ///
  /// `copy(to:)` is not inlined, because in the caller the type metadata look-up would take longer than the copy.
  @inline(never) func copy(to memory: UnsafeMutablePointer<Item>) { memory.initialize(to: item) }
}
