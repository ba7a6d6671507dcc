extension LocalRepository {
  /// Inserts the record, or replaces the one with its id.
  ///
  /// Returns when the record is durable and visible. The value is encoded in the caller's own task, away from its actor; what later reads
  /// return is what was stored, decoded.
  /// - Parameters:
  ///   - item: The value.
  ///   - ifRevision: If given, the write goes through only if the record is at this revision; ``Revision/zero`` stands for "there is none".
  ///   - durability: What the write survives; the store's option unless given.
  /// - Returns: The revision that the record has now.
  /// - Throws: `.revisionMismatch`, `.invalidKey`, `.encodingFailed`, `.decodingFailed` for a type whose own encoding does not decode,
  ///   `.tooLarge`, `.cancelled`, `.full` or `.inputOutput` (nothing was written), `.outcomeUnknown`, `.poisoned`, `.closed`,
  ///   `.unsupported` in a store opened read-only, and for a place that a `.geo` index cannot hold.
  @concurrent @discardableResult
  public nonisolated func save(
    _ item: Item, ifRevision: Revision? = nil, durability: Durability? = nil
  ) async throws(RepositoryError) -> Revision {
    try await put(item, Expectation(ifRevision), durability)
  }

  /// Inserts or replaces all these records in one batch: all of them or none.
  ///
  /// Of two with one id the last one holds.
  ///
  /// - Returns: The revision that all of them have now; the newest one of the store when there are none.
  /// - Throws: as ``save(_:ifRevision:durability:)``; an error of one record fails the batch.
  @concurrent @discardableResult
  public nonisolated func save(
    contentsOf items: some Sequence<Item> & Sendable, durability: Durability? = nil
  ) async throws(RepositoryError) -> Revision {
    let records = try await ParallelEncoding.records(Array(items), coder, decoding: core.needsValues(of: collection))
    return try await core.submit(.putAll(records, in: collection), durability).revision
  }

  /// Inserts a record whose id is new.
  ///
  /// - Throws: `.alreadyExists`, otherwise as ``save(_:ifRevision:durability:)``.
  @concurrent @discardableResult
  public nonisolated func insert(_ item: Item, durability: Durability? = nil) async throws(RepositoryError) -> Revision {
    try await put(item, .absent, durability)
  }

  /// Changes a record in place: reads, calls the closure and writes with no other write between.
  ///
  /// The closure runs on the store's executor and should be quick. It must not change the id.
  /// - Returns: The record as the closure left it.
  /// - Throws: `.notFound`; what the closure throws, and then nothing was written; `.decodingFailed` when the stored record cannot be read;
  ///   otherwise as ``save(_:ifRevision:durability:)``.
  @concurrent @discardableResult
  public nonisolated func update(
    _ id: Item.ID, durability: Durability? = nil, _ body: @escaping @Sendable (inout Item) throws -> Void
  ) async throws -> Item {
    try await transaction(durability: durability) { transaction in try transaction.update(id, in: self, body) }
  }

  /// Deletes the record with this id, if there is one.
  ///
  /// With `ifRevision` it is deleted only if it is at that revision.
  /// - Returns: Whether there was one.
  /// - Throws: `.revisionMismatch`, `.invalidKey`, and the errors of storage and cancellation as ``save(_:ifRevision:durability:)``.
  @concurrent @discardableResult
  public nonisolated func delete(
    _ id: Item.ID, ifRevision: Revision? = nil, durability: Durability? = nil
  ) async throws(RepositoryError) -> Bool {
    let deletion = WriteOperation.delete(
      try coder.keys.key(for: id), in: collection, schemaVersion: schema.version, expecting: Expectation(ifRevision))
    return try await core.submit(deletion, durability).recordCount > 0
  }

  /// Puts these records in the place of all that are there, in one batch: readers see the old contents or the new.
  ///
  /// Records that do not decode as `Item` would be deleted unseen: what ``loadAll()`` gives does not hold them. So a collection that has any
  /// is left as it is; ``replaceAll(with:discardingUndecodable:)`` can be told that they may go. ``RepositorySnapshot/undecodable`` lists them.
  ///
  /// Cost: linear in both, and a decode of every record that was not touched yet.
  /// - Parameter items: The new contents; of two with one id the last one holds.
  /// - Throws: `.decodingFailed` with the number of records that do not decode, and then nothing was written; otherwise as
  ///   ``save(_:ifRevision:durability:)``.
  @concurrent public nonisolated func replaceAll(with items: some Sequence<Item> & Sendable) async throws(RepositoryError) {
    try await replaceAll(with: items, discardingUndecodable: false)
  }

  /// Puts these records in the place of all that are there, as ``replaceAll(with:)`` does, and says what becomes of records that do not
  /// decode.
  ///
  /// Cost: linear in both, and a decode of every record that was not touched yet unless `discardingUndecodable`.
  /// - Parameters:
  ///   - items: The new contents; of two with one id the last one holds.
  ///   - discardingUndecodable: Whether records that do not decode are deleted with the others; if not, nothing is written while there are any.
  /// - Throws: `.decodingFailed` with the number of records that do not decode, and then nothing was written; otherwise as
  ///   ``save(_:ifRevision:durability:)``.
  @concurrent public nonisolated func replaceAll(
    with items: some Sequence<Item> & Sendable, discardingUndecodable: Bool
  ) async throws(RepositoryError) {
    let records = try await ParallelEncoding.records(Array(items), coder, decoding: core.needsValues(of: collection))
    // Away from the executor, which then finds almost everything decoded.
    if !discardingUndecodable { await ParallelDecoding.touch(try core.records(of: collection), coder) }
    let coder = discardingUndecodable ? nil : coder
    try await core.submit(.replaceAll(records, in: collection, schemaVersion: schema.version, ifDecodableBy: coder))
  }

  /// Runs several reads and writes as one: all of them or none, with no other write between.
  ///
  /// The closure is synchronous and runs on the store's executor; it sees its own writes. It may use every repository of the same store.
  /// - Returns: What the closure returns, once its writes are durable.
  /// - Throws: what the closure throws, and then nothing was written; otherwise as ``save(_:ifRevision:durability:)``.
  @concurrent @discardableResult
  public nonisolated func transaction<R: Sendable>(
    durability: Durability? = nil, _ body: @escaping @Sendable (inout Transaction) throws -> R
  ) async throws -> R {
    try await core.transaction(durability, body).get()
  }

  /// Runs a transaction whose closure fails with errors of storage alone, as ``transaction(durability:_:)`` does.
  @concurrent @discardableResult
  package nonisolated func write<R: Sendable>(
    durability: Durability? = nil, _ body: @escaping @Sendable (inout Transaction) throws(RepositoryError) -> R
  ) async throws(RepositoryError) -> R {
    try await core.transaction(durability, body).get()
  }

  private nonisolated func put(
    _ item: Item, _ expectation: Expectation, _ durability: Durability?
  ) async throws(RepositoryError) -> Revision {
    let record = try coder.encode(item, decoding: core.needsValues(of: collection))
    return try await core.submit(.put(record, in: collection, expecting: expectation), durability).revision
  }
}
