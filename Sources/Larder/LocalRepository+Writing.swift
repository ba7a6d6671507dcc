public import Foundation

extension LocalRepository {
  /// Inserts the record, or replaces the one with its id.
  ///
  /// Returns when the record is durable and visible. The value is encoded in the caller's own task, away from its
  /// actor; later reads return what was stored, decoded.
  /// - Parameters:
  ///   - item: The value.
  ///   - ifRevision: The revision that the record must be at; ``Revision/zero`` stands for "there is none". Any, unless given.
  ///   - durability: The failures that the write survives; the store's option unless given.
  /// - Returns: The revision that the record has now.
  /// - Throws: `.revisionMismatch`, `.uniqueViolation`, `.invalidKey`, `.encodingFailed`, `.decodingFailed` for a type
  ///   whose own encoding does not decode, `.tooLarge`, `.cancelled`, `.newerSchema` where another process has stored a
  ///   newer version, `.unsupported` in a store opened read-only, and for a place that a `.geo` index cannot hold. Of
  ///   storage: `.full`, `.inputOutput`, `.dataMissing` when the files were removed or replaced, `.locked` when another
  ///   process holds them; and `.protectedDataUnavailable` or `.corrupted` where the copy before a migration failed.
  ///   Nothing was written in all these cases, nor with `.poisoned` and `.closed`. With `.outcomeUnknown` the record
  ///   may be there after the next opening.
  @concurrent @discardableResult
  public nonisolated func save(
    _ item: Item, ifRevision: Revision? = nil, durability: Durability? = nil
  ) async throws(RepositoryError) -> Revision {
    let record = try coder.encode(item, decoding: needsValues(of: 1))
    return try await core.submit(.put(record, in: collection, expecting: Expectation(ifRevision)), durability).revision
  }

  /// Inserts or replaces all these records in one batch: all of them or none.
  ///
  /// Of two with one id the last one holds.
  ///
  /// - Returns: The revision that all of them have now; the newest one of the store when there are none.
  /// - Throws: as ``save(_:ifRevision:durability:)`` without `.revisionMismatch`; an error of one record fails the batch.
  @concurrent @discardableResult
  public nonisolated func save(
    contentsOf items: some Sequence<Item> & Sendable, durability: Durability? = nil
  ) async throws(RepositoryError) -> Revision {
    let items = Array(items)
    let records = try await coder.encodeAll(items, decoding: needsValues(of: items.count))
    return try await core.submit(.putAll(records, in: collection), durability).revision
  }

  /// Inserts a record whose id is new.
  ///
  /// - Throws: `.alreadyExists`; otherwise as ``save(_:ifRevision:durability:)`` without `.revisionMismatch`.
  @concurrent @discardableResult
  public nonisolated func insert(_ item: Item, durability: Durability? = nil) async throws(RepositoryError) -> Revision {
    let record = try coder.encode(item, decoding: needsValues(of: 1))
    return try await core.submit(.put(record, in: collection, expecting: .absent), durability).revision
  }

  /// Changes a record in place: reads, calls the closure and writes with no other write between.
  ///
  /// The closure runs on the store's executor and should be quick. It must not change the id.
  /// - Returns: The record as the closure left it.
  /// - Throws: `.notFound`; what the closure throws, and then nothing was written; `.decodingFailed` or
  ///   `.migrationFailed` when the stored record cannot be read; otherwise as ``save(_:ifRevision:durability:)``.
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
  /// - Throws: `.revisionMismatch`, `.invalidKey`, `.newerSchema`, `.unsupported` in a store opened read-only, and the
  ///   errors of storage and cancellation as ``save(_:ifRevision:durability:)``.
  @concurrent @discardableResult
  public nonisolated func delete(
    _ id: Item.ID, ifRevision: Revision? = nil, durability: Durability? = nil
  ) async throws(RepositoryError) -> Bool {
    let deletion = WriteOperation.delete(
      try coder.keys.key(for: id), in: collection, schemaVersion: schema.version, expecting: Expectation(ifRevision))
    return try await core.submit(deletion, durability).recordCount > 0
  }

  /// Replaces all records by these, in one batch: readers see the old contents or the new.
  ///
  /// Records that do not decode as `Item` would be deleted unseen, since ``loadAll()`` leaves them out. So a collection
  /// that has any is left as it is; ``RepositorySnapshot/undecodable`` lists them, and
  /// ``replaceAll(with:discardingUndecodable:)`` deletes them if it is told to.
  ///
  /// Cost: linear in both, and a decode of every record that was not touched yet.
  /// - Parameter items: The new contents; of two with one id the last one holds.
  /// - Throws: `.decodingFailed` with the number of records that do not decode, and then nothing was written; otherwise as
  ///   ``save(_:ifRevision:durability:)``.
  @concurrent public nonisolated func replaceAll(with items: some Sequence<Item> & Sendable) async throws(RepositoryError) {
    try await replaceAll(with: items, discardingUndecodable: false)
  }

  /// Replaces all records by these, as ``replaceAll(with:)`` does, with a choice about records that do not decode.
  ///
  /// Cost: linear in both, and a decode of every record that was not touched yet unless `discardingUndecodable`.
  /// - Parameters:
  ///   - items: The new contents; of two with one id the last one holds.
  ///   - discardingUndecodable: Whether records that do not decode are deleted with the others. If not, nothing is
  ///     written while there are any.
  /// - Throws: `.decodingFailed` with the number of records that do not decode, and then nothing was written; otherwise as
  ///   ``save(_:ifRevision:durability:)``.
  @concurrent public nonisolated func replaceAll(
    with items: some Sequence<Item> & Sendable, discardingUndecodable: Bool
  ) async throws(RepositoryError) {
    let items = Array(items)
    let records = try await coder.encodeAll(items, decoding: needsValues(of: items.count))
    // Away from the executor, which then finds almost everything decoded.
    if !discardingUndecodable { try await core.records(of: collection).decode(coder) }
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

  /// Whether so many written values will be asked for at once, by an index, so that their writer decodes them; an observer does so itself.
  private nonisolated func needsValues(of count: Int) -> Bool { core.state.collections[collection].indexes.needsValues(of: count) }
}

extension Repository {
  /// Deletes the record with the id of this one, whatever its stored value is by now; `false` when there was none.
  ///
  /// - Throws: as ``delete(_:)``.
  @concurrent @_disfavoredOverload @discardableResult
  public func delete(_ item: Item) async throws(RepositoryError) -> Bool { try await delete(item.id) }
}

extension LocalRepository {
  /// Deletes all records, in one commit: readers see all of them or none.
  ///
  /// Records that do not decode would go unseen, so a collection that has any is left as it is unless `discardingUndecodable`.
  ///
  /// Cost: linear, and a decode of every record that was not touched yet unless `discardingUndecodable`.
  /// - Parameter discardingUndecodable: Whether records that do not decode are deleted with the others: not by default.
  /// - Throws: `.decodingFailed` with the number of records that do not decode, and then nothing was deleted; otherwise as
  ///   ``replaceAll(with:)``.
  @concurrent public nonisolated func deleteAll(discardingUndecodable: Bool = false) async throws(RepositoryError) {
    try await replaceAll(with: EmptyCollection(), discardingUndecodable: discardingUndecodable)
  }

  /// Changes all records that meet the query, in one commit: all of them or none, with no other write between reading and writing.
  ///
  /// ```swift
  /// try await spots.update(where: Query().where(#Predicate { $0.country == "JP" })) { $0.rating += 1 }
  /// ```
  ///
  /// The closure runs on the store's executor, once for each record, and should be quick. It must not change the id. Every record that it
  /// is given is written, also one that it leaves as it was.
  ///
  /// Cost: its indexes are built first, if they were not; then the query, the closure and one commit run on the executor.
  /// - Returns: The number of records that were changed.
  /// - Throws: what the closure throws, and then nothing was written; `.invalidKey` when it changes an id; otherwise as
  ///   ``save(_:ifRevision:durability:)`` and ``fetch(_:)``.
  @concurrent @discardableResult
  public nonisolated func update(
    where query: Query<Item>, durability: Durability? = nil, _ body: @escaping @Sendable (inout Item) throws -> Void
  ) async throws -> Int {
    // Builds the indexes, which the transaction would otherwise have to do on the store's executor.
    _ = try await readyRun(query)
    return try await transaction(durability: durability) { transaction in try transaction.update(where: query, in: self, body) }
  }

  /// Changes all records for which the predicate holds, in one commit.
  ///
  /// - Returns: The number of records that were changed.
  /// - Throws: as ``update(where:durability:_:)``.
  @concurrent @_disfavoredOverload @discardableResult
  public nonisolated func update(
    where predicate: Predicate<Item>, durability: Durability? = nil, _ body: @escaping @Sendable (inout Item) throws -> Void
  ) async throws -> Int {
    try await update(where: Query().where(predicate), durability: durability, body)
  }
}

extension Transaction {
  /// Changes all records that meet the query, as the transaction sees them.
  ///
  /// The closure must not change the id.
  ///
  /// - Returns: The number of records that were changed.
  /// - Throws: what the closure throws; `.invalidKey` when it changes an id; otherwise as ``fetch(_:in:)`` and ``save(_:in:ifRevision:)``.
  @discardableResult
  public mutating func update<Item>(
    where query: Query<Item>, in repository: LocalRepository<Item>, _ body: (inout Item) throws -> Void
  ) throws -> Int {
    let found = try fetch(query, in: repository)
    for item in found { try update(item.id, in: repository, body) }
    return found.count
  }
}
