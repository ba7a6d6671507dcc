internal import Foundation

extension LocalRepository {
  /// The records that meet the query, in its order.
  ///
  /// Sees one committed state. The first query that needs an index waits until it is built; later ones never wait. What can look at many
  /// records runs away from the caller's actor.
  /// - Throws: `.unsupported` when the query cannot be evaluated (a needed index is not declared, a predicate overflows, a negative limit),
  ///   with the reason; `.decodingFailed` for a ``Query/strict()`` one while a record does not decode; `.closed`.
  public nonisolated(nonsending) func fetch(_ query: Query<Item> = .init()) async throws(RepositoryError) -> [Item] {
    try query.shape.check()
    if let answer = try DirectAnswer(query.shape, try core.collectionState(collection)) {
      return answer.bound <= ParallelDecoding.chunk ? try answer.items(coder) : try await Self.itemsElsewhere(answer, coder)
    }
    return try await answer(query) { (run) throws(RepositoryError) in try run.results().map { $0.item } }
  }

  /// The first record that meets the query, or `nil` when none does.
  ///
  /// - Throws: as ``fetch(_:)``.
  public nonisolated(nonsending) func first(_ query: Query<Item>) async throws(RepositoryError) -> Item? {
    try await fetch(query.limit(Swift.min(query.maximum ?? 1, 1))).first
  }

  /// Returns how many records meet the query: as many as ``fetch(_:)`` would give.
  ///
  /// Cost: two searches where an index answers the whole query. For all records, a decode of those that were not touched yet, since one that
  /// does not decode is not counted, and a look at each of them the first time; later, at what was written since.
  /// ``RepositorySnapshot/count`` counts what is stored, for nothing.
  /// - Throws: as ``fetch(_:)``.
  public nonisolated(nonsending) func count(_ query: Query<Item> = .init()) async throws(RepositoryError) -> Int {
    let shape = query.shape
    if shape.asksForAll {
      try shape.check()
      let records = try core.records(of: collection)
      let all = records.count - (await ParallelDecoding.undecodableCount(records, coder))
      return Swift.min(Swift.max(all - shape.skipped, 0), shape.maximum ?? .max)
    }
    return try await answer(query, isQuick: { $0.isCounted }) { (run) throws(RepositoryError) in try run.count() }
  }

  /// The records that meet the query, with what the query has found out about each: distance, rank, highlighted text.
  ///
  /// - Throws: as ``fetch(_:)``.
  public nonisolated(nonsending) func matches(_ query: Query<Item>) async throws(RepositoryError) -> [Match<Item>] {
    try await answer(query) { (run) throws(RepositoryError) in run.matches(try run.results()) }
  }

  /// Some records that meet the query, from the beginning or behind a cursor.
  ///
  /// The query's own limit and offset must not be set. Cost: where an ordered index fits, as for `limit` records, however far on.
  /// - Parameters:
  ///   - query: What is asked; every page must ask the same, in the same order.
  ///   - cursor: Where the page before this one ended; `nil` for the first page.
  ///   - limit: How many records a page has, at least 1.
  /// - Throws: `.unsupported` for a query without a lasting order, or with another one than the cursor's; otherwise as ``fetch(_:)``.
  public nonisolated(nonsending) func page(
    _ query: Query<Item>, after cursor: PageCursor? = nil, limit: Int
  ) async throws(RepositoryError) -> Page<Item> {
    guard query.maximum == nil, query.skipped == 0, limit >= 1, limit < Int.max else {
      throw RepositoryError(.unsupported, "a page has a limit of its own, from 1; the query must have none, and no offset")
    }
    return try await answer(query.limit(limit + 1)) { (run) throws(RepositoryError) -> Page<Item> in
      try PageCursor.check(cursor, run.query)
      let found = try run.results(after: cursor)
      let shown = found.prefix(limit)
      var next: PageCursor?
      if found.count > limit, let last = shown.last { next = try PageCursor(last, run.query) }
      return Page(matches: run.matches(Array(shown)), next: next)
    }
  }

  /// Returns how many of the records that meet the query have each value of a property; all NaN count as one value.
  ///
  /// Cost: a few searches for each different value where an index begins with the property and the query asks for all; otherwise as
  /// ``fetch(_:)``.
  /// - Throws: as ``fetch(_:)``.
  public nonisolated(nonsending) func grouped<Value: Hashable & IndexableValue>(
    by keyPath: any KeyPath<Item, Value> & Sendable, _ query: Query<Item> = .init()
  ) async throws(RepositoryError) -> [Value: Int] {
    try await answer(query, alsoUses: keyPath, isQuick: { $0.isGroupedByIndex(keyPath, Value.self) }) { (run) throws(RepositoryError) in
      try run.grouped(by: keyPath)
    }
  }

  /// Returns how the query would be answered now: which index, what is checked record by record, and how many records that concerns.
  ///
  /// A diagnostic: it makes an index for itself that no query has needed yet, and runs the query to count, unless it would look at more
  /// than 10,000 records. A query that cannot be answered has a plan that says why.
  public nonisolated func explain(_ query: Query<Item>) -> QueryPlan {
    do throws(RepositoryError) {
      let prepared = try PreparedQuery(query)
      let state = core.state.collections[collection]
      guard var indexes = state.indexes as? IndexSet<Item> else { throw RepositoryError(.closed) }
      for index in QueryPlanner.usable(prepared.shape, indexes.shapes) { indexes.build(index, from: state.records) }
      return try QueryRun(prepared, records: state.records, indexes: indexes).explained()
    } catch {
      return QueryPlan(refusal: error)
    }
  }

  /// Deletes all records that meet the query, in one commit.
  ///
  /// - Returns: How many there were.
  /// - Throws: as ``fetch(_:)``, and the errors of storage and cancellation as ``save(_:ifRevision:durability:)``.
  @concurrent @discardableResult
  public nonisolated func delete(where query: Query<Item>) async throws(RepositoryError) -> Int {
    // Sees to the indexes, which the transaction would otherwise have to make on the store's executor.
    _ = try await readyRun(PreparedQuery(query))
    return try await write { transaction throws(RepositoryError) in try transaction.delete(where: query, in: self) }
  }

  // MARK: Running

  /// Prepares a query, sees to its indexes, and runs it: here when it is small, away from the caller's actor when it is not.
  private nonisolated(nonsending) func answer<Output: Sendable>(
    _ query: Query<Item>, alsoUses keyPath: (any AnyKeyPath & Sendable)? = nil, isQuick: (QueryRun<Item>) -> Bool = { _ in false },
    _ body: @escaping @Sendable (QueryRun<Item>) throws(RepositoryError) -> Output
  ) async throws(RepositoryError) -> Output {
    let prepared = try PreparedQuery(query)
    let run = try await readyRun(prepared, alsoUses: keyPath)
    if run.choice.bound <= ParallelDecoding.chunk || isQuick(run) { return try body(run) }
    return try await Self.runElsewhere(run, body)
  }

  nonisolated(nonsending) func readyRun(
    _ query: PreparedQuery<Item>, alsoUses keyPath: (any AnyKeyPath & Sendable)? = nil
  ) async throws(RepositoryError) -> QueryRun<Item> {
    while true {
      let state = try core.collectionState(collection)
      guard let indexes = state.indexes as? IndexSet<Item> else {
        throw RepositoryError(.unsupported, "the collection has no indexes of this type")
      }
      var needed = QueryPlanner.usable(query.shape, indexes.shapes)
      if let keyPath {
        needed += indexes.declarations.indices.filter { index in
          if case .ordered = indexes.declarations[index].kind {
            indexes.declarations[index].columns.first?.keyPath == keyPath
          } else {
            false
          }
        }
      }
      let missing = needed.filter { !indexes.isBuilt($0) }
      if missing.isEmpty {
        // What a strict query has to decode first is decoded away from the caller's actor.
        if query.shape.isStrict { _ = await ParallelDecoding.undecodableCount(state.records, coder) }
        return try QueryRun(query, records: state.records, indexes: indexes)
      }
      for index in missing { await core.buildIndex(index, of: collection, Item.self) }
    }
  }

  @concurrent private nonisolated static func itemsElsewhere(
    _ answer: DirectAnswer, _ coder: RecordCoder<Item>
  ) async throws(RepositoryError) -> [Item] { try answer.items(coder) }

  @concurrent private nonisolated static func runElsewhere<Output: Sendable>(
    _ run: QueryRun<Item>, _ body: @escaping @Sendable (QueryRun<Item>) throws(RepositoryError) -> Output
  ) async throws(RepositoryError) -> Output {
    if case .scan = run.choice.access { await ParallelDecoding.touch(run.records, run.indexes.coder) }
    return try body(run)
  }
}
