internal import Dispatch
public import Foundation

extension LocalRepository {
  /// Returns the records that meet the query, in the query's order.
  ///
  /// The query reads one committed state. The first query that needs an index waits until the index is built, and later queries never wait
  /// for the index. A query that can examine many records runs off the caller's actor. Records that do not decode are in no result, and a
  /// ``Query/strict()`` query throws while the collection has records that do not decode.
  ///
  /// Cost: some microseconds and a copy of each result if an index answers the query. If an index answers only a part of the query, each
  /// record that the index yields is tested, and decoded if it was not read yet. Without a usable index, all records are tested.
  /// - Throws: `.unsupported` if the query cannot be evaluated, with the reason (a needed index is not declared, a predicate overflows, a
  ///   limit is negative). `.decodingFailed` for a ``Query/strict()`` query while a record does not decode. `.closed` after the store was
  ///   closed.
  public nonisolated(nonsending) func fetch(_ query: Query<Item> = .init()) async throws(RepositoryError) -> [Item] {
    try await answer(query) { (run) throws(RepositoryError) in try run.items() }
  }

  /// Returns the first record that meets the query, or `nil` if none does.
  ///
  /// - Throws: The errors of ``fetch(_:)``.
  public nonisolated(nonsending) func first(_ query: Query<Item>) async throws(RepositoryError) -> Item? {
    // A limit of 0 or less is passed to `fetch` unchanged, because `fetch` returns no record for a limit of 0 and refuses a negative limit.
    try await fetch(query.limit(Swift.min(query.shape.maximum ?? 1, 1))).first
  }

  /// Returns the number of records that meet the query, which is the number that ``fetch(_:)`` would return.
  ///
  /// Cost: two searches if an ordered or unique index answers the whole query. With ``Residency/onDisk(cache:)``, an index reads the keys
  /// of its range, about 50 ns each. A count of all records decodes the records that were not read yet, because a record that does not
  /// decode is not counted. A count of all records examines each record the first time, and later only the records written since.
  /// ``RepositorySnapshot/count`` returns the number of stored records at no cost.
  /// - Throws: The errors of ``fetch(_:)``.
  public nonisolated(nonsending) func count(_ query: Query<Item> = .init()) async throws(RepositoryError) -> Int {
    let shape = query.shape
    // `RecordMap` keeps a list of the records that are not known to decode, so a second count examines only those records.
    if shape.asksForAll {
      try shape.check()
      let all = try await readingRecords { records throws(RepositoryError) in
        records.count - (try await records.undecodableCount(coder))
      }
      return Swift.min(Swift.max(all - shape.skipped, 0), shape.maximum ?? .max)
    }
    return try await answer(query, isQuick: { $0.run.knownCount != nil }, keepsOrder: false) { (run) throws(RepositoryError) in
      try run.count()
    }
  }

  /// Returns the records that meet the query, each with its distance, its rank and its highlighted text.
  ///
  /// - Throws: The errors of ``fetch(_:)``.
  public nonisolated(nonsending) func matches(_ query: Query<Item>) async throws(RepositoryError) -> [Match<Item>] {
    try await answer(query) { (run) throws(RepositoryError) in run.matches(try run.results()) }
  }

  /// Returns one page of the records that meet the query, from the beginning or after a cursor.
  ///
  /// Do not set a limit or an offset on a query that is read in pages. Cost: if an ordered index yields the query's order and answers all
  /// its conditions, a page costs the reading of about `limit` records, at any distance from the first page.
  /// - Parameters:
  ///   - query: The query to read in pages. Pass the same query, in the same order, for every page.
  ///   - cursor: The cursor that the previous page returned as `next`, or `nil` for the first page.
  ///   - limit: The number of records of a page, at least 1.
  /// - Throws: `.unsupported` for a query in the order of text ranks, which change with every write, or of values that no index can hold.
  ///   `.unsupported` also if the cursor is from a query in another order. The other errors are those of ``fetch(_:)``.
  public nonisolated(nonsending) func page(
    _ query: Query<Item>, after cursor: PageCursor? = nil, limit: Int
  ) async throws(RepositoryError) -> Page<Item> {
    // `Int.max` is refused too, so that `limit + 1` cannot overflow.
    guard query.shape.maximum == nil, query.shape.skipped == 0, limit >= 1, limit < Int.max else {
      throw RepositoryError(
        .unsupported, "expected a page limit of at least 1, and a query without limit and offset; found page limit \(limit)")
    }
    // The query fetches one record more than the page shows, because that record shows whether there is a next page.
    return try await answer(query.limit(limit + 1)) { (run) throws(RepositoryError) -> Page<Item> in
      try PageCursor.check(cursor, run.query)
      let results = try run.results(after: cursor)
      let shown = results.prefix(limit)
      var next: PageCursor?
      if results.count > limit, let last = shown.last { next = try PageCursor(last, after: cursor, run.query) }
      return Page(matches: run.matches(Array(shown)), next: next)
    }
  }

  /// Returns the number of records for each value of a property, among the records that meet the query.
  ///
  /// All NaN values count as one value. Cost: a few searches, and on disk the read of one record, for each different value if an index
  /// begins with the property and the query asks for all records. Otherwise, the cost of `grouped(by:_:)` is the cost of ``fetch(_:)``.
  /// - Throws: The errors of ``fetch(_:)``.
  public nonisolated(nonsending) func grouped<Value: Hashable & IndexableValue>(
    by keyPath: any KeyPath<Item, Value> & Sendable, _ query: Query<Item> = .init()
  ) async throws(RepositoryError) -> [Value: Int] {
    try await answer(query, alsoUsing: keyPath, isQuick: { !$0.run.records.isPaged && $0.groupingIndex(keyPath, Value.self) != nil }) {
      (run) throws(RepositoryError) in
      try run.grouped(by: keyPath)
    }
  }

  /// Returns the plan for the query: its index, the conditions checked record by record, and the number of records examined.
  ///
  /// Use the plan as a diagnostic. `explain` builds missing indexes only for its own use, and does not add them to the repository.
  /// `explain` also runs the query to count the examined records, unless the query may read more than 10,000 records. The plan of a query
  /// that cannot be answered has the reason in `QueryPlan.refusal`.
  public nonisolated func explain(_ query: Query<Item>) -> QueryPlan {
    do throws(RepositoryError) {
      try query.shape.check()
      // The indexes are built for a copy of the collection's state, so that a diagnostic adds no index that later writes would have to
      // update.
      let state = core.state.collections[collection]
      return try TypedQueryRun(query, coder: coder, over: try state.building(state.indexes.missing(for: query.shape))).explained()
    } catch {
      return QueryPlan(refusal: error)
    }
  }

  /// Removes the automatic indexes of this collection, and frees their memory.
  ///
  /// Call it from the app's memory warning. In a `.shared` store, the call waits while a commit waits for another process. Later queries
  /// that sort many records without an index build automatic indexes again. See ``StoreOptions/buildsAutomaticIndexes``.
  public nonisolated func removeAutomaticIndexes() async { await core.indexBuilder.removeAutomatic(of: collection, in: core) }

  /// Deletes all records that meet the query, in one commit.
  ///
  /// - Returns: The number of records that were deleted.
  /// - Throws: The errors of ``fetch(_:)``, and the errors of storage and cancellation that ``save(_:ifRevision:durability:)`` throws.
  @concurrent @discardableResult
  public nonisolated func delete(where query: Query<Item>) async throws(RepositoryError) -> Int {
    // Missing indexes are built before the transaction, because the transaction would build them on the store's executor, while all writes
    // wait.
    _ = try await readyRun(query)
    return try await write { transaction throws(RepositoryError) in try transaction.delete(where: query, in: self) }
  }

  // MARK: Running

  /// Runs a query after building its indexes: on the caller's actor if the query examines few records, otherwise off that actor.
  private nonisolated(nonsending) func answer<Output: Sendable>(
    _ query: Query<Item>, alsoUsing keyPath: (any AnyKeyPath & Sendable)? = nil, isQuick: (TypedQueryRun<Item>) -> Bool = { _ in false },
    keepsOrder: Bool = true, _ body: @escaping @Sendable (TypedQueryRun<Item>) throws(RepositoryError) -> Output
  ) async throws(RepositoryError) -> Output {
    let removals = core.indexBuilder.removalCount
    let run = try await readyRun(query, alsoUsing: keyPath)
    var (attempts, newest) = (1, run)
    let output: Output
    while true {
      do throws(RepositoryError) {
        // A run over records in the storage may wait for the disk, for which the main thread must not wait.
        if newest.isSmall || isQuick(newest), !(newest.run.records.isPaged && isOnMainThread) { return try body(newest) }
        output = try await Self.answerElsewhere(newest, body)
        break
      } catch {
        // A read beside many writes may outlive the base that it reads.
        guard error.code == .superseded, attempts < 3 else { throw error }
        attempts += 1
        newest = try await readyRun(query, alsoUsing: keyPath)
      }
    }
    if keepsOrder { run.keepOrder(of: collection, after: removals, in: core) }
    return output
  }

  /// Plans a query at the newest commit, after building the indexes that the query needs.
  nonisolated(nonsending) func readyRun(
    _ query: Query<Item>, alsoUsing keyPath: (any AnyKeyPath & Sendable)? = nil
  ) async throws(RepositoryError) -> TypedQueryRun<Item> {
    try await TypedQueryRun.ready(query, coder, alsoUsing: keyPath, of: collection, in: core) { () throws(RepositoryError) in
      try core.collectionState(collection)
    }
  }

  /// Reads the newest records, and begins anew if the backend has given up their base meanwhile.
  ///
  /// A long read beside many writes may outlive the base that it reads.
  nonisolated(nonsending) func readingRecords<Output>(
    _ body: (RecordMap) async throws(RepositoryError) -> Output
  ) async throws(RepositoryError) -> Output {
    for _ in 1..<3 {
      do throws(RepositoryError) { return try await body(core.records(of: collection)) } catch {
        guard error.code == .superseded else { throw error }
      }
    }
    return try await body(core.records(of: collection))
  }

  @concurrent private nonisolated static func answerElsewhere<Output: Sendable>(
    _ run: TypedQueryRun<Item>, _ body: @escaping @Sendable (TypedQueryRun<Item>) throws(RepositoryError) -> Output
  ) async throws(RepositoryError) -> Output {
    // Reading many records from the storage would block a thread of the cooperative pool.
    guard !run.run.records.isPaged else {
      return try await DispatchQueue.global(qos: .userInitiated).run { () throws(RepositoryError) in try body(run) }
    }
    // A full scan reads every record. The records are decoded on all cores before `body` runs, because `body` would decode them one by one.
    if case .scan = run.run.choice.access, !run.run.endsEarly { try await run.run.records.decode(run.coder) }
    return try body(run)
  }
}

extension Repository {
  /// Returns true if `find(by:)` returns a record for this id.
  ///
  /// - Throws: The errors of ``find(by:)``.
  public func exists(_ id: Item.ID) async throws(RepositoryError) -> Bool { try await find(by: id) != nil }

  /// Returns true if any record meets the query.
  ///
  /// - Throws: The errors of ``first(_:)``.
  public func exists(where query: Query<Item>) async throws(RepositoryError) -> Bool { try await first(query) != nil }

  /// Returns true if the predicate holds for any record.
  ///
  /// - Throws: The errors of ``first(_:)``.
  @_disfavoredOverload
  public func exists(where predicate: Predicate<Item>) async throws(RepositoryError) -> Bool {
    try await exists(where: Query().where(predicate))
  }

  /// Returns the first record, in the order of ids, whose property has this value, or `nil` if no record has it.
  ///
  /// ```swift
  /// let beach = try await beaches.find(by: \.slug, "jogashima")
  /// ```
  ///
  /// Cost: one search in an index that begins with the property, such as `.unique(\.slug)`. Without an index on the property, the records
  /// that were not read yet are decoded on all cores, and then records are tested one by one until one is found.
  /// - Throws: The errors of ``first(_:)``.
  public func find<Value: Equatable & Sendable>(
    by keyPath: any KeyPath<Item, Value> & Sendable, _ value: Value
  ) async throws(RepositoryError) -> Item? {
    try await first(Query().where(keyPath, .equal, value))
  }
}

extension LocalRepository {
  /// Returns true if a record with this id is stored, even if it does not decode.
  ///
  /// With the records in memory, `exists(_:)` never leaves the caller's actor and never waits. `exists(_:)` decodes nothing. Cost: about
  /// that of a dictionary look-up. A record that stays in the storage is read as by ``find(by:)``.
  /// - Throws: `.invalidKey` for an id that cannot be a key. `.closed` after the store was closed.
  public nonisolated(nonsending) func exists(_ id: Item.ID) async throws(RepositoryError) -> Bool {
    let (records, key) = (try core.records(of: collection), try coder.keys.key(for: id))
    do throws(RepositoryError) {
      if records.mustRead(key), isOnMainThread { return try await Self.has(key, in: records) }
      return try records[key] != nil
    } catch {
      // The newest state has another base, if the backend has given up the base meanwhile.
      guard error.code == .superseded else { throw error }
      return try await Self.has(key, in: try core.records(of: collection))
    }
  }

  /// Reads a record from the storage away from the main thread, and returns whether there is one.
  @concurrent private nonisolated static func has(_ key: RecordKey, in records: RecordMap) async throws(RepositoryError) -> Bool {
    try records[key] != nil
  }
}

// The functions with `strict:` are disfavored overloads, so that a reference without arguments, such as `let read = repository.loadAll`,
// means the protocol's function without `strict:`.
extension LocalRepository {
  /// Returns all records, sorted by the bytes of their keys, and with `strict: true` throws if one of them does not decode.
  ///
  /// Use `strict: true` to move or replace a store, because ``loadAll()`` leaves out records that do not decode.
  /// - Throws: `.decodingFailed` with the number of records that do not decode. `.closed` after the store was closed.
  @_disfavoredOverload
  public nonisolated(nonsending) func loadAll(strict: Bool) async throws(RepositoryError) -> [Item] {
    guard strict else { return try await loadAll() }
    return try await readingRecords { records throws(RepositoryError) in
      let items = try await records.items(coder)
      // Usually every record has decoded, so the two counts are equal, and no record is examined a second time.
      if items.count < records.count { try await Self.checkDecodable(records, coder) }
      return items
    }
  }

  /// Throws `.decodingFailed` if a record does not decode, and reads the records away from the main thread.
  @concurrent private nonisolated static func checkDecodable(
    _ records: RecordMap, _ coder: RecordCoder<Item>
  ) async throws(RepositoryError) {
    try records.checkDecodable(coder)
  }

  /// Returns the records that meet the query, and with `strict: true` throws if a record of the collection does not decode.
  ///
  /// - Throws: `.decodingFailed` with the number of records that do not decode. The other errors are those of ``fetch(_:)``.
  @available(*, deprecated, message: "Use fetch(_:) with query.strict().")
  @_disfavoredOverload
  public nonisolated(nonsending) func fetch(_ query: Query<Item> = .init(), strict: Bool) async throws(RepositoryError) -> [Item] {
    try await fetch(strict ? query.strict() : query)
  }
}

extension RepositorySnapshot {
  /// Returns all records, sorted by the bytes of their keys, and with `strict: true` throws if one of them does not decode.
  ///
  /// - Throws: `.decodingFailed` with the number of records that do not decode, which ``undecodable`` lists.
  @_disfavoredOverload
  public func loadAll(strict: Bool) throws(RepositoryError) -> [Item] {
    let items = try allItems()
    if strict, items.count < count { try records.checkDecodable(coder) }
    return items
  }
}

extension Transaction {
  /// Returns all records with the transaction's own writes, and with `strict: true` throws if one of them does not decode.
  ///
  /// The returned records are sorted by the bytes of their keys.
  /// - Throws: `.decodingFailed` with the number of records that do not decode. The other errors are those of ``loadAll(in:)``.
  public func loadAll<Item>(in repository: LocalRepository<Item>, strict: Bool) throws(RepositoryError) -> [Item] {
    try snapshot(of: repository).loadAll(strict: strict)
  }
}

/// True on the main thread and on a thread that serves the main queue, both of which must not wait for a read of the storage.
///
/// An asynchronous main function on Linux ends the main thread, and other threads serve the main queue, on which the main actor runs.
/// Apple's Foundation refuses `Thread.isMainThread` in an `async` function, which may change its thread at an `await`. Each caller of this
/// property uses the value before its next `await`.
var isOnMainThread: Bool { Thread.isMainThread || DispatchQueue.getSpecific(key: mainQueueKey) != nil }

/// Key under which only the main queue has a value.
private let mainQueueKey: DispatchSpecificKey<Bool> = {
  let key = DispatchSpecificKey<Bool>()
  DispatchQueue.main.setSpecific(key: key, value: true)
  return key
}()

extension QueryShape {
  /// True if every record meets the query, so that only the query's offset and limit bound the result.
  var asksForAll: Bool {
    conditions.isEmpty && failure == nil && filterCount == 0 && areas.isEmpty && boxes.isEmpty && words == nil && !isStrict
  }
}

extension TypedQueryRun {
  /// Builds the indexes that a query can use and that are not built yet, and returns the planned query.
  ///
  /// - Parameters:
  ///   - keyPath: A property whose index is built besides the indexes that the query uses.
  ///   - state: Closure that returns the newest state of the collection. The closure `state` is called again after each build of indexes.
  /// - Throws: as ``init(_:coder:over:)``, or the error of `state`.
  nonisolated(nonsending) static func ready(
    _ query: Query<Item>, _ coder: RecordCoder<Item>, alsoUsing keyPath: (any AnyKeyPath & Sendable)? = nil, of collection: Int,
    in core: StoreCore, _ state: () throws(RepositoryError) -> CollectionState
  ) async throws(RepositoryError) -> Self {
    try query.shape.check()
    var attempts = 1
    while true {
      let state = try state()
      let missing = state.indexes.missing(for: query.shape, alsoUsing: keyPath)
      do throws(RepositoryError) {
        guard missing.isEmpty else {
          try await core.indexBuilder.build(missing, of: collection, in: core)
          continue
        }
        // Planning reads an index in the storage, for which the main thread must not wait.
        if state.indexes.holdsStubs, isOnMainThread { return try await planned(query, coder, over: state) }
        // A strict query decodes every record of the collection. `undecodableCount` decodes many records on other threads, so that the
        // caller's actor is not blocked.
        if query.shape.isStrict { _ = try await state.records.undecodableCount(coder) }
        return try Self(query, coder: coder, over: state)
      } catch {
        // A build that takes long beside many writes may outlive the base that it reads.
        guard error.code == .superseded, attempts < 3 else { throw error }
        attempts += 1
      }
    }
  }

  @concurrent private static func planned(
    _ query: Query<Item>, _ coder: RecordCoder<Item>, over state: CollectionState
  ) async throws(RepositoryError) -> Self {
    if query.shape.isStrict { _ = try await state.records.undecodableCount(coder) }
    return try Self(query, coder: coder, over: state)
  }

  /// Builds an automatic index in the background, if the query has sorted many records without an index.
  ///
  /// Call it after the query has its results, so that the build takes no processor time from the query.
  /// - Parameter removals: ``IndexBuilder/removalCount`` when the query began.
  func keepOrder(of collection: Int, after removals: UInt64, in core: StoreCore) {
    guard core.options.buildsAutomaticIndexes, let index = automaticIndex else { return }
    core.indexBuilder.buildAutomatic(index, of: collection, after: removals, in: core)
  }
}
