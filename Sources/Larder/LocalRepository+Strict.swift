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
