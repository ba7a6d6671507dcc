public import Foundation

extension LocalRepository {
  /// Inserts the record, or replaces the one with its id.
  ///
  /// Returns when the record is durable and visible. The value is encoded in the calling task, away from its actor. Later reads return the
  /// stored bytes, decoded, and not the value that was passed.
  /// - Parameters:
  ///   - item: The value.
  ///   - ifRevision: The revision that the record must have. Pass ``Revision/zero`` if there must be no such record, and `nil` for any.
  ///   - durability: The failures that the write survives. By default the option of the store.
  /// - Returns: The revision that the record has now.
  /// - Throws: `.revisionMismatch` if the record was written since, and `.uniqueViolation` if another record has its value in a unique
  ///   index. `.full` if there is no space. In these cases nothing was written, and the same holds for every other code but one: with
  ///   `.outcomeUnknown` the record may be there after the next opening. `.decodingFailed` is thrown for a type whose own encoding does not
  ///   decode. `.unsupported` is thrown for a place that a `.geo` index cannot hold, and in a store opened read-only. See <doc:Errors>.
  @concurrent @discardableResult
  public nonisolated func save(
    _ item: Item, ifRevision: Revision? = nil, durability: Durability? = nil
  ) async throws(RepositoryError) -> Revision {
    // Encoded here and not on the store's executor, so that writers encode on all cores, and a failure never reaches the queue.
    let record = try coder.encode(item, decoding: needsValues(of: 1))
    return try await core.submit(.put(record, in: collection, expecting: Expectation(ifRevision)), durability).revision
  }

  /// Inserts or replaces all these records in one batch, all of them or none.
  ///
  /// Of two records with one id the last one is kept.
  ///
  /// - Returns: The revision that all of them have now. If there are none, the newest revision of the store.
  /// - Throws: as ``save(_:ifRevision:durability:)`` without `.revisionMismatch`. An error of one record fails the batch.
  @concurrent @discardableResult
  public nonisolated func save(
    contentsOf items: some Sequence<Item> & Sendable, durability: Durability? = nil
  ) async throws(RepositoryError) -> Revision {
    // A sequence may allow only one pass, and encoding in parallel needs its count and its parts.
    let items = Array(items)
    let records = try await coder.encodeAll(items, decoding: needsValues(of: items.count))
    return try await core.submit(.putAll(records, in: collection), durability).revision
  }

  /// Inserts a record whose id is new.
  ///
  /// - Throws: `.alreadyExists` if there is a record with this id. Otherwise as ``save(_:ifRevision:durability:)`` without
  ///   `.revisionMismatch`.
  @concurrent @discardableResult
  public nonisolated func insert(_ item: Item, durability: Durability? = nil) async throws(RepositoryError) -> Revision {
    let record = try coder.encode(item, decoding: needsValues(of: 1))
    return try await core.submit(.put(record, in: collection, expecting: .absent), durability).revision
  }

  /// Changes a record in place, with no other write between reading it and writing it.
  ///
  /// The closure runs on the store's executor while other writes wait, so it should be quick. It must not change the id.
  /// - Returns: The record as the closure left it.
  /// - Throws: `.notFound` if there is no such record. The error of the closure, and then nothing was written. `.decodingFailed` or
  ///   `.migrationFailed` if the stored record cannot be read. Otherwise as ``save(_:ifRevision:durability:)``.
  @concurrent @discardableResult
  public nonisolated func update(
    _ id: Item.ID, durability: Durability? = nil, _ body: @escaping @Sendable (inout Item) throws -> Void
  ) async throws -> Item {
    try await transaction(durability: durability) { transaction in try transaction.update(id, in: self, body) }
  }

  /// Deletes the record with this id, if there is one.
  ///
  /// Pass `ifRevision:` to delete it only if it has that revision.
  /// - Returns: True if there was a record.
  /// - Throws: `.revisionMismatch` if the record was written since. `.invalidKey` for an id that cannot be a key. `.newerSchema` if another
  ///   process has stored a newer version. `.unsupported` in a store opened read-only. The errors of storage and cancellation as
  ///   ``save(_:ifRevision:durability:)``.
  @concurrent @discardableResult
  public nonisolated func delete(
    _ id: Item.ID, ifRevision: Revision? = nil, durability: Durability? = nil
  ) async throws(RepositoryError) -> Bool {
    let deletion = WriteOperation.delete(
      try coder.keys.key(for: id), in: collection, schemaVersion: schema.version, expecting: Expectation(ifRevision))
    return try await core.submit(deletion, durability).recordCount > 0
  }

  /// Replaces all records by these in one batch, so that readers see the old contents or the new.
  ///
  /// Records that do not decode as `Item` are missing in ``loadAll()``, and a replacement would delete them unseen. A collection that has
  /// any is therefore left as it is. ``RepositorySnapshot/undecodable`` lists them, and ``replaceAll(with:discardingUndecodable:)`` can
  /// delete them.
  ///
  /// Cost: linear in the old and the new records, and a decode of every record that was not read yet.
  /// - Parameter items: The new contents. Of two records with one id the last one is kept.
  /// - Throws: `.decodingFailed` with the number of records that do not decode, and then nothing was written. Otherwise as
  ///   ``save(_:ifRevision:durability:)``.
  @concurrent public nonisolated func replaceAll(with items: some Sequence<Item> & Sendable) async throws(RepositoryError) {
    try await replaceAll(with: items, discardingUndecodable: false)
  }

  /// Replaces all records by these in one batch, and deletes records that do not decode if you ask for it.
  ///
  /// Cost: linear in the old and the new records, and a decode of every record that was not read yet unless `discardingUndecodable`.
  /// - Parameters:
  ///   - items: The new contents. Of two records with one id the last one is kept.
  ///   - discardingUndecodable: True to delete records that do not decode, with the others. If `false`, nothing is written while there are
  ///     any.
  /// - Throws: `.decodingFailed` with the number of records that do not decode, and then nothing was written. Otherwise as
  ///   ``save(_:ifRevision:durability:)``.
  @concurrent public nonisolated func replaceAll(
    with items: some Sequence<Item> & Sendable, discardingUndecodable: Bool
  ) async throws(RepositoryError) {
    let items = Array(items)
    let records = try await coder.encodeAll(items, decoding: needsValues(of: items.count))
    // Decoded here on all cores. The check is made again on the executor, which then finds nearly all records decoded.
    if !discardingUndecodable { try await core.records(of: collection).decode(coder) }
    let coder = discardingUndecodable ? nil : coder
    try await core.submit(.replaceAll(records, in: collection, schemaVersion: schema.version, ifDecodableBy: coder))
  }

  /// Runs several reads and writes as one commit, all of them or none, with no other write between.
  ///
  /// The closure is synchronous and runs on the store's executor, where its reads include its own writes. It may use every repository of
  /// the same store.
  /// - Returns: The value that the closure returns, once its writes are durable.
  /// - Throws: the error of the closure, and then nothing was written. Otherwise as ``save(_:ifRevision:durability:)``.
  @concurrent @discardableResult
  public nonisolated func transaction<R: Sendable>(
    durability: Durability? = nil, _ body: @escaping @Sendable (inout Transaction) throws -> R
  ) async throws -> R {
    try await core.transaction(durability, body).get()
  }

  /// Runs a transaction whose closure throws only errors of storage, as ``transaction(durability:_:)`` does.
  @concurrent @discardableResult
  package nonisolated func write<R: Sendable>(
    durability: Durability? = nil, _ body: @escaping @Sendable (inout Transaction) throws(RepositoryError) -> R
  ) async throws(RepositoryError) -> R {
    try await core.transaction(durability, body).get()
  }

  /// True if indexes need the decoded values of `count` written records.
  ///
  /// The writing task then decodes them, off the store's executor.
  private nonisolated func needsValues(of count: Int) -> Bool { core.state.collections[collection].indexes.needsValues(of: count) }
}

extension Repository {
  /// Deletes the record that has the id of this item, whatever value is stored under it.
  ///
  /// - Returns: True if there was a record.
  /// - Throws: as ``delete(_:)``.
  @concurrent @_disfavoredOverload @discardableResult
  public func delete(_ item: Item) async throws(RepositoryError) -> Bool { try await delete(item.id) }
}

extension LocalRepository {
  /// Deletes all records in one commit, so that readers see all of them or none.
  ///
  /// Records that do not decode would be deleted unseen, so a collection that has any is left as it is unless `discardingUndecodable`.
  ///
  /// Cost: linear, and a decode of every record that was not read yet unless `discardingUndecodable`.
  /// - Parameter discardingUndecodable: True to delete records that do not decode, with the others. The default is `false`.
  /// - Throws: `.decodingFailed` with the number of records that do not decode, and then nothing was deleted. Otherwise as
  ///   ``replaceAll(with:)``.
  @concurrent public nonisolated func deleteAll(discardingUndecodable: Bool = false) async throws(RepositoryError) {
    try await replaceAll(with: EmptyCollection(), discardingUndecodable: discardingUndecodable)
  }

  /// Changes all records that meet the query in one commit, all of them or none, with no other write between reading and writing.
  ///
  /// ```swift
  /// try await spots.update(where: Query().where(#Predicate { $0.country == "JP" })) { $0.rating += 1 }
  /// ```
  ///
  /// The closure runs once for each record, on the store's executor while other writes wait, so it should be quick. It must not change the
  /// id. Every record that the closure receives is written, even if the closure leaves it as it was.
  ///
  /// Cost: builds the missing indexes of the query first. Then the query, the closure and one commit run on the executor.
  /// - Returns: The number of records that were changed.
  /// - Throws: the error of the closure, and then nothing was written. `.invalidKey` if the closure changes an id. Otherwise as
  ///   ``save(_:ifRevision:durability:)`` and ``fetch(_:)``.
  @concurrent @discardableResult
  public nonisolated func update(
    where query: Query<Item>, durability: Durability? = nil, _ body: @escaping @Sendable (inout Item) throws -> Void
  ) async throws -> Int {
    // Builds the missing indexes here. The transaction would build them on the store's executor, while all writes wait.
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
  /// Changes all records that meet the query, including records that the transaction has written.
  ///
  /// The closure must not change the id.
  ///
  /// - Returns: The number of records that were changed.
  /// - Throws: the error of the closure. `.invalidKey` if it changes an id. Otherwise as ``fetch(_:in:)`` and ``save(_:in:ifRevision:)``.
  @discardableResult
  public mutating func update<Item>(
    where query: Query<Item>, in repository: LocalRepository<Item>, _ body: (inout Item) throws -> Void
  ) throws -> Int {
    // All records are found before the first one changes. A change could otherwise bring a record into the result once more.
    let found = try fetch(query, in: repository)
    for item in found { try update(item.id, in: repository, body) }
    return found.count
  }
}
