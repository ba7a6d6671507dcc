public import Foundation

extension LocalRepository {
  /// Inserts the record, or replaces the stored record with the same id.
  ///
  /// `save` returns when the record has the requested durability and reads return it. The value is encoded in the calling task, off the
  /// caller's actor. Later reads return a value that was decoded from the stored bytes, and not the value that was passed.
  /// - Parameters:
  ///   - item: The value to store.
  ///   - ifRevision: The revision that the stored record must have. Pass ``Revision/zero`` if there must be no record with this id, and
  ///     `nil` to accept any revision.
  ///   - durability: The kinds of failure after which the record is still stored. By default, the durability in the store's options
  ///     applies.
  /// - Returns: The revision of the record after the save.
  /// - Throws: `.revisionMismatch` if the record was written since the revision `ifRevision`, and `.uniqueViolation` if another record has
  ///   the same value in a unique index. `.full` if there is no space. A save that throws has written nothing, with one exception: after
  ///   `.outcomeUnknown`, the record may be in the store after the next opening. `.decodingFailed` is thrown for a type whose own encoding
  ///   does not decode. `.unsupported` is thrown for a place that a `.geo` index cannot hold, and in a store opened read-only. See
  ///   <doc:Errors>.
  @concurrent @discardableResult
  public nonisolated func save(
    _ item: Item, ifRevision: Revision? = nil, durability: Durability? = nil
  ) async throws(RepositoryError) -> Revision {
    // The value is encoded in the calling task and not on the store's executor, so that several writers encode on all cores, and a value
    // that fails to encode is never queued for a commit.
    let record = try coder.encode(item, decoding: needsValues(of: 1))
    return try await core.submit(.put(record, in: collection, expecting: Expectation(ifRevision)), durability).revision
  }

  /// Inserts or replaces the given records in one commit: either all of them are stored or none.
  ///
  /// Of two records with the same id, the last one is kept.
  ///
  /// - Returns: The revision that all of the records have after the save. For an empty sequence, the newest revision of the store is
  ///   returned.
  /// - Throws: The errors of ``save(_:ifRevision:durability:)`` except `.revisionMismatch`. If one record cannot be saved, none is.
  @concurrent @discardableResult
  public nonisolated func save(
    contentsOf items: some Sequence<Item> & Sendable, durability: Durability? = nil
  ) async throws(RepositoryError) -> Revision {
    // The sequence is copied to an array, because a sequence may allow only one pass, and encoding in parallel needs the number of values
    // and slices of them.
    let items = Array(items)
    let records = try await coder.encodeAll(items, decoding: needsValues(of: items.count))
    return try await core.submit(.putAll(records, in: collection), durability).revision
  }

  /// Inserts a record whose id is new.
  ///
  /// - Throws: `.alreadyExists` if there is a record with this id. The other errors are those of ``save(_:ifRevision:durability:)``, except
  ///   `.revisionMismatch`.
  @concurrent @discardableResult
  public nonisolated func insert(_ item: Item, durability: Durability? = nil) async throws(RepositoryError) -> Revision {
    let record = try coder.encode(item, decoding: needsValues(of: 1))
    return try await core.submit(.put(record, in: collection, expecting: .absent), durability).revision
  }

  /// Changes a stored record with a closure, with no other write between reading the record and writing it.
  ///
  /// The closure of `update` runs on the store's executor while other writes wait, so the closure should be quick and must not change the
  /// id.
  /// - Returns: The record after the change by the closure.
  /// - Throws: `.notFound` if there is no record with this id. The error of the closure, in which case nothing was written.
  ///   `.decodingFailed` or `.migrationFailed` if the stored record cannot be read. The other errors are those of
  ///   ``save(_:ifRevision:durability:)``.
  @concurrent @discardableResult
  public nonisolated func update(
    _ id: Item.ID, durability: Durability? = nil, _ body: @escaping @Sendable (inout Item) throws -> Void
  ) async throws -> Item {
    try await transaction(durability: durability) { transaction in try transaction.update(id, in: self, body) }
  }

  /// Deletes the record with this id, if there is one.
  ///
  /// Pass `ifRevision:` to delete the record only if the stored record has that revision.
  /// - Returns: True if a record with this id was deleted.
  /// - Throws: `.revisionMismatch` if the record was written since the revision `ifRevision`. `.invalidKey` for an id that cannot be a key.
  ///   `.newerSchema` if another process has stored a record of a newer schema version. `.unsupported` in a store opened read-only. The
  ///   errors of storage and cancellation that ``save(_:ifRevision:durability:)`` throws.
  @concurrent @discardableResult
  public nonisolated func delete(
    _ id: Item.ID, ifRevision: Revision? = nil, durability: Durability? = nil
  ) async throws(RepositoryError) -> Bool {
    let deletion = WriteOperation.delete(
      try coder.keys.key(for: id), in: collection, schemaVersion: schema.version, expecting: Expectation(ifRevision))
    return try await core.submit(deletion, durability).recordCount > 0
  }

  /// Replaces all records of the collection by `items` in one commit, so that readers see either the old contents or the new.
  ///
  /// Records that do not decode as `Item` are missing in ``loadAll()``, and a replacement would delete them unseen. A collection with
  /// records that do not decode is therefore left as it is. ``RepositorySnapshot/undecodable`` lists the records that do not decode, and
  /// ``replaceAll(with:discardingUndecodable:)`` can delete them.
  ///
  /// Cost: linear in the old and the new records, and a decode of every record that was not read yet.
  /// - Parameter items: The records of the collection after the replacement. Of two records with the same id, the last one is kept.
  /// - Throws: `.decodingFailed` with the number of records that do not decode, in which case nothing was written. The other errors are
  ///   those of ``save(_:ifRevision:durability:)``.
  @concurrent public nonisolated func replaceAll(with items: some Sequence<Item> & Sendable) async throws(RepositoryError) {
    try await replaceAll(with: items, discardingUndecodable: false)
  }

  /// Replaces all records by `items` in one commit, including the records that do not decode if `discardingUndecodable` is true.
  ///
  /// Cost: linear in the old and the new records, and a decode of every record that was not read yet, unless `discardingUndecodable` is
  /// true.
  /// - Parameters:
  ///   - items: The records of the collection after the replacement. Of two records with the same id, the last one is kept.
  ///   - discardingUndecodable: True to also delete the records that do not decode. If `false`, nothing is written while the collection has
  ///     records that do not decode.
  /// - Throws: `.decodingFailed` with the number of records that do not decode, in which case nothing was written. The other errors are
  ///   those of ``save(_:ifRevision:durability:)``.
  @concurrent public nonisolated func replaceAll(
    with items: some Sequence<Item> & Sendable, discardingUndecodable: Bool
  ) async throws(RepositoryError) {
    let items = Array(items)
    let records = try await coder.encodeAll(items, decoding: needsValues(of: items.count))
    // The stored records are decoded on all cores before the commit. The executor checks again whether all records decode, which is quick,
    // because nearly all of them are decoded by then.
    if !discardingUndecodable { try await core.records(of: collection).decode(coder) }
    let coder = discardingUndecodable ? nil : coder
    try await core.submit(.replaceAll(records, in: collection, schemaVersion: schema.version, ifDecodableBy: coder))
  }

  /// Runs several reads and writes as one commit: all writes are stored or none, and no other write comes between them.
  ///
  /// The closure of a transaction is synchronous and runs on the store's executor, and its reads include its own writes. The closure may
  /// read and write every repository of the same store.
  /// - Returns: The value that the closure returns, once its writes are durable.
  /// - Throws: the error of the closure, in which case nothing was written. The other errors are those of
  ///   ``save(_:ifRevision:durability:)``.
  @concurrent @discardableResult
  public nonisolated func transaction<R: Sendable>(
    durability: Durability? = nil, _ body: @escaping @Sendable (inout Transaction) throws -> R
  ) async throws -> R {
    try await core.transaction(durability, body).get()
  }

  /// Runs a transaction as ``transaction(durability:_:)`` does, with a closure that throws only a `RepositoryError`.
  @concurrent @discardableResult
  package nonisolated func write<R: Sendable>(
    durability: Durability? = nil, _ body: @escaping @Sendable (inout Transaction) throws(RepositoryError) -> R
  ) async throws(RepositoryError) -> R {
    try await core.transaction(durability, body).get()
  }

  /// True if indexes need the decoded values of `count` written records.
  ///
  /// If `needsValues(of:)` returns true, the calling task decodes the written values, so that the store's executor need not.
  private nonisolated func needsValues(of count: Int) -> Bool { core.state.collections[collection].indexes.needsValues(of: count) }
}

extension Repository {
  /// Deletes the record that has the id of this item, even if the stored value differs from the item.
  ///
  /// - Returns: True if a record with this id was deleted.
  /// - Throws: The errors of ``delete(_:)``.
  @concurrent @_disfavoredOverload @discardableResult
  public func delete(_ item: Item) async throws(RepositoryError) -> Bool { try await delete(item.id) }
}

extension LocalRepository {
  /// Deletes all records in one commit, so that readers see all of them or none.
  ///
  /// A record that does not decode is in no result of a fetch, so the app could not check the record's value before its deletion. A
  /// collection with records that do not decode is left as it is, unless `discardingUndecodable` is true.
  ///
  /// Cost: linear, and a decode of every record that was not read yet, unless `discardingUndecodable` is true.
  /// - Parameter discardingUndecodable: True to also delete the records that do not decode. The default of `discardingUndecodable` is
  ///   `false`.
  /// - Throws: `.decodingFailed` with the number of records that do not decode, in which case nothing was deleted. The other errors are
  ///   those of ``replaceAll(with:)``.
  @concurrent public nonisolated func deleteAll(discardingUndecodable: Bool = false) async throws(RepositoryError) {
    try await replaceAll(with: EmptyCollection(), discardingUndecodable: discardingUndecodable)
  }

  /// Changes all records that meet the query in one commit, all of them or none, with no other write between reading and writing.
  ///
  /// ```swift
  /// try await spots.update(where: Query().where(#Predicate { $0.country == "JP" })) { $0.rating += 1 }
  /// ```
  ///
  /// The closure of `update` runs once for each record, on the store's executor while other writes wait, so the closure should be quick and
  /// must not change the id. Every record that the closure receives is written, even if the closure does not change the record.
  ///
  /// Cost: builds the missing indexes of the query first. The query, the closure and one commit run on the store's executor.
  /// - Returns: The number of records that the closure received, all of which were written.
  /// - Throws: the error of the closure, in which case nothing was written. `.invalidKey` if the closure changes an id. The other errors
  ///   are those of ``save(_:ifRevision:durability:)`` and ``fetch(_:)``.
  @concurrent @discardableResult
  public nonisolated func update(
    where query: Query<Item>, durability: Durability? = nil, _ body: @escaping @Sendable (inout Item) throws -> Void
  ) async throws -> Int {
    // Missing indexes are built before the transaction, because the transaction would build them on the store's executor, while all writes
    // wait.
    _ = try await readyRun(query)
    return try await transaction(durability: durability) { transaction in try transaction.update(where: query, in: self, body) }
  }

  /// Changes all records for which the predicate holds, in one commit.
  ///
  /// - Returns: The number of records that the closure received, all of which were written.
  /// - Throws: The errors of ``update(where:durability:_:)``.
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
  /// The closure must not change the id of a record.
  ///
  /// - Returns: The number of records that the closure received, all of which were written.
  /// - Throws: The error of the closure. `.invalidKey` if the closure changes an id. The other errors are those of ``fetch(_:in:)`` and
  ///   ``save(_:in:ifRevision:)``.
  @discardableResult
  public mutating func update<Item>(
    where query: Query<Item>, in repository: LocalRepository<Item>, _ body: (inout Item) throws -> Void
  ) throws -> Int {
    // All records are found before the first one is changed. If the query ran during the changes, a changed record could occur in the
    // result once more.
    let found = try fetch(query, in: repository)
    for item in found { try update(item.id, in: repository, body) }
    return found.count
  }
}
