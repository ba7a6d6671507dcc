extension RepositorySnapshot {
  /// Returns the records that meet the query, in its order; at once, on the calling thread: for the body of a view.
  ///
  /// An index is used that had been built when the snapshot was taken: open with `StoreOptions.indexing` ``StoreOptions/Indexing/eager``,
  /// or call ``LocalRepository/fetch(_:)`` once before. Without it every record is looked at, and decoded at its first touch; an index of
  /// words is built for this call alone.
  /// - Throws: `.unsupported` when the query cannot be evaluated, with the reason; `.decodingFailed` for a ``Query/strict()`` one while a
  ///   record does not decode.
  public func fetch(_ query: Query<Item>) throws(RepositoryError) -> [Item] {
    try run(query).items()
  }

  /// Returns the first record that meets the query, or `nil` when none does.
  ///
  /// Cost: as ``fetch(_:)``.
  /// - Throws: as ``fetch(_:)``.
  public func first(_ query: Query<Item>) throws(RepositoryError) -> Item? {
    try fetch(query.limit(min(query.shape.maximum ?? 1, 1))).first
  }

  /// Returns how many records meet the query: as many as ``fetch(_:)`` would give.
  ///
  /// Cost: two searches where an ordered or unique index answers the whole query; for all records, a decode of those that were not touched
  /// yet, on the calling thread; otherwise as ``fetch(_:)``. ``RepositorySnapshot/count`` counts what is stored, for nothing.
  /// - Throws: as ``fetch(_:)``.
  public func count(_ query: Query<Item>) throws(RepositoryError) -> Int { try run(query).count() }

  private func run(_ query: Query<Item>) throws(RepositoryError) -> TypedQueryRun<Item> {
    try query.shape.check()
    let state = CollectionState(records: records, indexes: indexes)
    // Places and values can be looked at without an index, words cannot.
    let missing = indexes.missing(for: query.shape).filter { indexes.definitions[$0].kind == .fullText }
    return try TypedQueryRun(query, coder, state.building(missing))
  }
}
