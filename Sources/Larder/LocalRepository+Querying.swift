public import Foundation

extension LocalRepository {
  /// Returns the records that meet the query, in its order.
  ///
  /// Sees one committed state. The first query that needs an index waits until it is built; later ones never wait. A query that can look
  /// at many records runs away from the caller's actor. Records that do not decode are in no result, unless the query is
  /// ``Query/strict()``.
  ///
  /// Cost: some microseconds and a copy of each result where an index answers the query; otherwise a test of each record that the best
  /// index leads to, and a decode of those that were not touched yet.
  /// - Throws: `.unsupported` when the query cannot be evaluated (a needed index is not declared, a predicate overflows, a negative limit),
  ///   with the reason; `.decodingFailed` for a ``Query/strict()`` one while a record does not decode; `.closed`.
  public nonisolated(nonsending) func fetch(_ query: Query<Item> = .init()) async throws(RepositoryError) -> [Item] {
    try await answer(query) { (run) throws(RepositoryError) in try run.items() }
  }

  /// Returns the first record that meets the query, or `nil` when none does.
  ///
  /// - Throws: as ``fetch(_:)``.
  public nonisolated(nonsending) func first(_ query: Query<Item>) async throws(RepositoryError) -> Item? {
    try await fetch(query.limit(Swift.min(query.shape.maximum ?? 1, 1))).first
  }

  /// Returns how many records meet the query: as many as ``fetch(_:)`` would give.
  ///
  /// Cost: two searches where an ordered or unique index answers the whole query. For all records, a decode of those that were not touched
  /// yet, since one that does not decode is not counted, and a look at each of them the first time; later, at what was written since.
  /// ``RepositorySnapshot/count`` counts what is stored, for nothing.
  /// - Throws: as ``fetch(_:)``.
  public nonisolated(nonsending) func count(_ query: Query<Item> = .init()) async throws(RepositoryError) -> Int {
    let shape = query.shape
    if shape.asksForAll {
      try shape.check()
      let records = try core.records(of: collection)
      let all = records.count - (await records.undecodableCount(coder))
      return Swift.min(Swift.max(all - shape.skipped, 0), shape.maximum ?? .max)
    }
    return try await answer(query, isQuick: { $0.run.knownCount != nil }) { (run) throws(RepositoryError) in try run.count() }
  }

  /// Returns the records that meet the query, with what the query has found out about each: distance, rank, highlighted text.
  ///
  /// - Throws: as ``fetch(_:)``.
  public nonisolated(nonsending) func matches(_ query: Query<Item>) async throws(RepositoryError) -> [Match<Item>] {
    try await answer(query) { (run) throws(RepositoryError) in run.matches(try run.results()) }
  }

  /// Returns some records that meet the query, from the beginning or behind a cursor.
  ///
  /// The query's own limit and offset must not be set. Cost: where an ordered index fits, as for `limit` records, however far on.
  /// - Parameters:
  ///   - query: The query; the same one, in the same order, for every page.
  ///   - cursor: The end of the page before this one; `nil` for the first page.
  ///   - limit: The number of records of a page, at least 1.
  /// - Throws: `.unsupported` for a query without a lasting order, or with another one than the cursor's; otherwise as ``fetch(_:)``.
  public nonisolated(nonsending) func page(
    _ query: Query<Item>, after cursor: PageCursor? = nil, limit: Int
  ) async throws(RepositoryError) -> Page<Item> {
    guard query.shape.maximum == nil, query.shape.skipped == 0, limit >= 1, limit < Int.max else {
      throw RepositoryError(
        .unsupported, "expected a page limit of at least 1, and a query without limit and offset; found page limit \(limit)")
    }
    return try await answer(query.limit(limit + 1)) { (run) throws(RepositoryError) -> Page<Item> in
      try PageCursor.check(cursor, run.query)
      let results = try run.results(after: cursor)
      let shown = results.prefix(limit)
      var next: PageCursor?
      if results.count > limit, let last = shown.last { next = try PageCursor(last, after: cursor, run.query) }
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
    try await answer(query, alsoUsing: keyPath, isQuick: { $0.groupingIndex(keyPath, Value.self) != nil }) {
      (run) throws(RepositoryError) in
      try run.grouped(by: keyPath)
    }
  }

  /// Returns how the query would be answered now: which index, what is checked record by record, and how many records that concerns.
  ///
  /// A diagnostic: it builds an index for itself that no query has needed yet, and runs the query to count, unless it would look at more
  /// than 10,000 records. A query that cannot be answered has a plan that says why.
  public nonisolated func explain(_ query: Query<Item>) -> QueryPlan {
    do throws(RepositoryError) {
      try query.shape.check()
      let state = core.state.collections[collection]
      return try TypedQueryRun(query, coder, state.building(state.indexes.missing(for: query.shape))).explained()
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
    // Builds the indexes, which the transaction would otherwise have to do on the store's executor.
    _ = try await readyRun(query)
    return try await write { transaction throws(RepositoryError) in try transaction.delete(where: query, in: self) }
  }

  // MARK: Running

  /// Runs a query once its indexes are built: here when it is small, away from the caller's actor when it is not.
  private nonisolated(nonsending) func answer<Output: Sendable>(
    _ query: Query<Item>, alsoUsing keyPath: (any AnyKeyPath & Sendable)? = nil, isQuick: (TypedQueryRun<Item>) -> Bool = { _ in false },
    _ body: @escaping @Sendable (TypedQueryRun<Item>) throws(RepositoryError) -> Output
  ) async throws(RepositoryError) -> Output {
    let run = try await readyRun(query, alsoUsing: keyPath)
    return run.isSmall || isQuick(run) ? try body(run) : try await Self.answerElsewhere(run, body)
  }

  /// Plans a query at the newest commit, once its indexes are built.
  nonisolated(nonsending) func readyRun(
    _ query: Query<Item>, alsoUsing keyPath: (any AnyKeyPath & Sendable)? = nil
  ) async throws(RepositoryError) -> TypedQueryRun<Item> {
    try await TypedQueryRun.ready(query, coder, alsoUsing: keyPath, of: collection, in: core) { () throws(RepositoryError) in
      try core.collectionState(collection)
    }
  }

  @concurrent private nonisolated static func answerElsewhere<Output: Sendable>(
    _ run: TypedQueryRun<Item>, _ body: @escaping @Sendable (TypedQueryRun<Item>) throws(RepositoryError) -> Output
  ) async throws(RepositoryError) -> Output {
    if case .scan = run.run.choice.access, !run.run.endsEarly { await run.run.records.decode(run.coder) }
    return try body(run)
  }
}

extension Repository {
  /// Returns whether there is a record with this id that can be read.
  ///
  /// - Throws: as ``find(by:)``.
  public func exists(_ id: Item.ID) async throws(RepositoryError) -> Bool { try await find(by: id) != nil }

  /// Returns whether any record meets the query.
  ///
  /// - Throws: as ``first(_:)``.
  public func exists(where query: Query<Item>) async throws(RepositoryError) -> Bool { try await first(query) != nil }

  /// Returns whether the predicate holds for any record.
  ///
  /// - Throws: as ``first(_:)``.
  @_disfavoredOverload
  public func exists(where predicate: Predicate<Item>) async throws(RepositoryError) -> Bool {
    try await exists(where: Query().where(predicate))
  }

  /// Returns the first record by id whose property has this value, or `nil` when none has.
  ///
  /// ```swift
  /// let beach = try await beaches.find(by: \.slug, "jogashima")
  /// ```
  ///
  /// Cost: one search in an index that begins with the property, such as `.unique(\.slug)`; otherwise a look at each record until one is
  /// found, after a decode of all that were not touched yet, on every core.
  /// - Throws: as ``first(_:)``.
  public func find<Value: Equatable & Sendable>(
    by keyPath: any KeyPath<Item, Value> & Sendable, _ value: Value
  ) async throws(RepositoryError) -> Item? {
    try await first(Query().where(keyPath, .equal, value))
  }
}

extension LocalRepository {
  /// Returns whether a record with this id is stored, one that does not decode included.
  ///
  /// Never leaves the caller's actor, never waits and decodes nothing. Cost: about a dictionary's.
  /// - Throws: `.invalidKey` for an id that cannot be a key, `.closed`.
  public nonisolated(nonsending) func exists(_ id: Item.ID) async throws(RepositoryError) -> Bool {
    try core.records(of: collection)[coder.keys.key(for: id)] != nil
  }
}

// Disfavored, so that references without arguments, such as `let read = repository.loadAll`, mean the calls without `strict:`, which are
// those of the protocol.
extension LocalRepository {
  /// Returns all records, in the order of their keys' bytes; with `strict`, only if all of them decode.
  ///
  /// For moving or replacing a store: ``loadAll()`` leaves out records that do not decode.
  /// - Throws: `.decodingFailed` with the number of records that do not decode; `.closed`.
  @_disfavoredOverload
  public nonisolated(nonsending) func loadAll(strict: Bool) async throws(RepositoryError) -> [Item] {
    guard strict else { return try await loadAll() }
    let records = try core.records(of: collection)
    let items = await records.items(coder)
    if items.count < records.count { try records.checkDecodable(coder) }
    return items
  }

  /// Returns the records that meet the query, in its order; with `strict`, only if every record of the collection decodes.
  ///
  /// Short for ``fetch(_:)`` of ``Query/strict()``.
  /// - Throws: `.decodingFailed` with the number of records that do not decode; otherwise as ``fetch(_:)``.
  @_disfavoredOverload
  public nonisolated(nonsending) func fetch(_ query: Query<Item> = .init(), strict: Bool) async throws(RepositoryError) -> [Item] {
    try await fetch(strict ? query.strict() : query)
  }
}

extension RepositorySnapshot {
  /// Returns all records, in the order of their keys' bytes; with `strict`, only if all of them decode.
  ///
  /// - Throws: `.decodingFailed` with the number of records that do not decode, which ``undecodable`` lists.
  @_disfavoredOverload
  public func loadAll(strict: Bool) throws(RepositoryError) -> [Item] {
    let items = loadAll()
    if strict, items.count < count { try records.checkDecodable(coder) }
    return items
  }
}

extension Transaction {
  /// Returns all records as the transaction sees them, in the order of their keys' bytes; with `strict`, only if all of them decode.
  ///
  /// - Throws: `.decodingFailed` with the number of records that do not decode; otherwise as ``loadAll(in:)``.
  public func loadAll<Item>(in repository: LocalRepository<Item>, strict: Bool) throws(RepositoryError) -> [Item] {
    try snapshot(of: repository).loadAll(strict: strict)
  }
}

extension QueryShape {
  /// Whether every record meets the query, so that only its offset and limit bound the result.
  var asksForAll: Bool {
    conditions.isEmpty && failure == nil && filterCount == 0 && areas.isEmpty && boxes.isEmpty && words == nil && !isStrict
  }
}
