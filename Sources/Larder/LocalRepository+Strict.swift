extension LocalRepository {
  /// All records, in the order of their keys' bytes; with `strict`, only if all of them decode.
  ///
  /// For who moves or replaces a store: without `strict` this is ``loadAll()``, which leaves out what does not decode.
  /// - Throws: `.decodingFailed` with the number of records that do not decode; `.closed`.
  public nonisolated(nonsending) func loadAll(strict: Bool) async throws(RepositoryError) -> [Item] {
    guard strict else { return try await loadAll() }
    let records = try queue.records(of: collection)
    let items = await ParallelDecoding.items(records, coder)
    if items.count < records.count { try records.checkDecodable(coder) }
    return items
  }

  /// The records that meet the query, in its order; with `strict`, only if every record of the collection decodes.
  ///
  /// Whether a record that does not decode would have met the query cannot be told. Cost: with `strict`, a decode of every record that was not
  /// touched yet, and a look at each.
  /// - Throws: `.decodingFailed` with the number of records that do not decode; otherwise as ``fetch(_:)``.
  public nonisolated(nonsending) func fetch(_ query: Query<Item> = .init(), strict: Bool) async throws(RepositoryError) -> [Item] {
    guard strict else { return try await fetch(query) }
    return try await Self.strictResults(of: readyRun(PreparedQuery(query)))
  }

  @concurrent private nonisolated static func strictResults(of run: QueryRun<Item>) async throws(RepositoryError) -> [Item] {
    await ParallelDecoding.touch(run.records, run.indexes.coder)
    try run.records.checkDecodable(run.indexes.coder)
    return try run.results().map { $0.item }
  }
}

extension RepositorySnapshot {
  /// All records, in the order of their keys' bytes; with `strict`, only if all of them decode.
  ///
  /// - Throws: `.decodingFailed` with the number of records that do not decode, which ``undecodable`` lists.
  public func loadAll(strict: Bool) throws(RepositoryError) -> [Item] {
    let items = loadAll()
    if strict, items.count < count { try records.checkDecodable(coder) }
    return items
  }
}

extension Transaction {
  /// All records as the transaction sees them, in the order of their keys' bytes; with `strict`, only if all of them decode.
  ///
  /// - Throws: `.decodingFailed` with the number of records that do not decode; otherwise as ``loadAll(in:)``.
  public func loadAll<Item>(in repository: LocalRepository<Item>, strict: Bool) throws(RepositoryError) -> [Item] {
    try snapshot(of: repository).loadAll(strict: strict)
  }
}

extension QueryShape {
  /// Whether every record meets the query, so that only its offset and limit bound the result.
  var asksForAll: Bool { conditions.isEmpty && failure == nil && filterCount == 0 && areas.isEmpty && boxes.isEmpty && words == nil }
}
