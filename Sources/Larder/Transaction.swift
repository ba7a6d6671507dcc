/// The reads and writes of one commit, which the closure of `transaction` receives.
///
/// ```swift
/// // Both are stored, or neither
/// try await store.transaction { transaction in
///   try transaction.update(spotID, in: spots) { $0.visitCount += 1 }
///   try transaction.insert(Visit(spot: spotID, date: .now), in: visits)
/// }
/// ```
///
/// You get a transaction from ``Store/transaction(durability:_:)`` or ``LocalRepository/transaction(durability:_:)``. A transaction may use
/// every repository of the same store. The reads of a transaction include its own writes and everything that was committed before the
/// transaction. If the closure throws, nothing is written. A closure that writes nothing costs no sync.
///
/// The store's executor runs the synchronous closures of transactions one at a time, so no other write can happen between the reads and the
/// writes of a closure. A transaction cannot be copied or kept beyond the closure.
///
/// ## When to use another call
///
/// - Use ``LocalRepository/update(_:durability:_:)`` to change one record, and ``LocalRepository/save(contentsOf:durability:)`` to save
///   many records.
/// - Use ``Store/snapshot`` if you only read. A transaction waits for the writes before it, even if the transaction only reads.
///
/// ## Avoid
///
/// - Do not work long in the closure, because other writes wait for it. Reads in a transaction cost as much as the reads of a repository,
///   but records are not decoded in parallel. Fetch and compute the values that the closure needs before you call `transaction`.
/// - Do not expect `.uniqueViolation` inside the closure. Unique indexes are checked when the closure has returned, so two records may swap
///   their unique values within one transaction.
/// - Write `Larder.Transaction` in a file that also imports SwiftUI, which has a type of the same name.
///
/// ## Topics
///
/// ### Reading
///
/// - ``find(by:in:)``
/// - ``loadAll(in:)``
/// - ``fetch(_:in:)``
/// - ``first(_:in:)``
/// - ``count(_:in:)``
/// - ``count(in:)``
/// - ``revision``
///
/// ### Writing
///
/// - ``save(_:in:ifRevision:)``
/// - ``insert(_:in:)``
/// - ``update(_:in:_:)``
/// - ``delete(_:in:ifRevision:)``
/// - ``delete(where:in:)``
public struct Transaction: ~Copyable {
  private var pending: PendingState
  private let store: ObjectIdentifier

  init(_ pending: PendingState, of core: StoreCore) {
    self.pending = pending
    // The address of the store object is enough to identify the store, because the object lives until the closure has returned.
    store = ObjectIdentifier(core)
  }

  consuming func finish() -> PendingState { pending }

  /// Revision of all records that the transaction writes.
  public var revision: Revision { pending.revision }

  /// Returns the record with this id, including changes by this transaction, or `nil` if there is none.
  ///
  /// - Throws: `.decodingFailed`, `.migrationFailed` or `.newerSchema` for a stored record that cannot be read. `.unsupported` for a
  ///   repository of another store. See <doc:Errors>.
  public func find<Item>(by id: Item.ID, in repository: LocalRepository<Item>) throws(RepositoryError) -> Item? {
    try check(repository)
    return try pending.collections[repository.collection].records[repository.coder.keys.key(for: id)]?.value(repository.coder)
  }

  /// Returns all records that decode, including those that the transaction has written.
  ///
  /// The records are sorted by the bytes of their keys. Cost: linear, on the store's executor.
  /// - Throws: `.unsupported` for a repository of another store.
  public func loadAll<Item>(in repository: LocalRepository<Item>) throws(RepositoryError) -> [Item] {
    try snapshot(of: repository).allItems()
  }

  /// Returns the number of records that decode, including those that the transaction has written.
  ///
  /// The number equals the number of records that ``loadAll(in:)`` returns. Cost: the same as for ``LocalRepository/count(_:)``, on the
  /// store's executor.
  /// - Throws: `.unsupported` for a repository of another store.
  public func count<Item>(in repository: LocalRepository<Item>) throws(RepositoryError) -> Int {
    let records = try snapshot(of: repository).records
    return records.count - (try records.undecodable(repository.coder).count)
  }

  func snapshot<Item>(of repository: LocalRepository<Item>) throws(RepositoryError) -> RepositorySnapshot<Item> {
    try check(repository)
    // The snapshot of a transaction gets no indexes, because its callers load or count whole collections.
    return RepositorySnapshot(
      revision: pending.latest, collection: repository.schema.name, records: pending.collections[repository.collection].records,
      coder: repository.coder)
  }

  /// Returns the records that meet the query, in the query's order, including records that the transaction has written.
  ///
  /// Cost: the same as for ``LocalRepository/fetch(_:)``, on the store's executor. An index that is not built yet is built for this call
  /// and then dropped.
  /// - Throws: `.unsupported` for a query that cannot be evaluated, and for a repository of another store. `.decodingFailed` for a
  ///   ``Query/strict()`` query while a record does not decode.
  public func fetch<Item>(
    _ query: Query<Item>, in repository: LocalRepository<Item>
  ) throws(RepositoryError) -> [Item] {
    try run(query, in: repository).items()
  }

  /// Returns the first record that meets the query, including changes by this transaction, or `nil` if no record does.
  ///
  /// - Throws: the same errors as ``fetch(_:in:)``.
  public func first<Item>(
    _ query: Query<Item>, in repository: LocalRepository<Item>
  ) throws(RepositoryError) -> Item? {
    // A limit of 0 or less is passed on unchanged: with 0 the query finds no record, and a negative limit makes `run` throw.
    try run(query.limit(min(query.shape.maximum ?? 1, 1)), in: repository).items().first
  }

  /// Returns the number of records that meet the query, which is the number that ``fetch(_:in:)`` would return.
  ///
  /// - Throws: the same errors as ``fetch(_:in:)``.
  public func count<Item>(
    _ query: Query<Item>, in repository: LocalRepository<Item>
  ) throws(RepositoryError) -> Int {
    try run(query, in: repository).count()
  }

  /// Deletes all records that meet the query, including records that the transaction has written.
  ///
  /// - Returns: The number of records that were deleted.
  /// - Throws: `.newerSchema` if another process has stored a record of a newer schema version. The other errors are those of
  ///   ``fetch(_:in:)``.
  @discardableResult
  public mutating func delete<Item>(
    where query: Query<Item>, in repository: LocalRepository<Item>
  ) throws(RepositoryError) -> Int {
    let found = try run(query, in: repository).results()
    for candidate in found {
      _ = try pending.delete(candidate.slot.key, in: repository.collection, schemaVersion: repository.schema.version)
    }
    return found.count
  }

  private func run<Item>(
    _ query: Query<Item>, in repository: LocalRepository<Item>
  ) throws(RepositoryError) -> TypedQueryRun<Item> {
    try check(repository)
    try query.shape.check()
    let state = pending.collections[repository.collection]
    // An index that is built for a query in a transaction is dropped after the query, because the transaction may fail, and because a build
    // of the index on another thread must find the index's log of changes complete.
    return try TypedQueryRun(query, coder: repository.coder, over: state.building(state.indexes.missing(for: query.shape)))
  }

  /// Inserts the record, or replaces the stored record with the same id.
  ///
  /// Unique indexes are checked when the closure has returned. If two records have equal values in a unique index, the call of
  /// `transaction` throws `.uniqueViolation`.
  /// - Throws: `.revisionMismatch` if the record was written since the given revision. `.decodingFailed` for a type whose own encoding does
  ///   not decode. `.unsupported` for a repository of another store, and for a location that a `.geo` index cannot hold. If a migration
  ///   must copy the store first and the copy fails, the error of the copy. See <doc:Errors>.
  @discardableResult
  public mutating func save<Item>(
    _ item: Item, in repository: LocalRepository<Item>, ifRevision: Revision? = nil
  ) throws(RepositoryError) -> Revision {
    try put(item, in: repository, Expectation(ifRevision))
  }

  /// Inserts a record whose id is new.
  ///
  /// - Throws: `.alreadyExists` if there is a record with this id. The other errors are those of ``save(_:in:ifRevision:)``.
  @discardableResult
  public mutating func insert<Item>(_ item: Item, in repository: LocalRepository<Item>) throws(RepositoryError) -> Revision {
    try put(item, in: repository, .absent)
  }

  /// Changes a record in place, with a closure.
  ///
  /// The closure must not change the id of the record.
  ///
  /// - Returns: The record with the changes that the closure made.
  /// - Throws: `.notFound` if there is no such record. The error of the closure. `.invalidKey` if the id was changed. The other errors are
  ///   those of ``save(_:in:ifRevision:)``.
  @discardableResult
  public mutating func update<Item>(
    _ id: Item.ID, in repository: LocalRepository<Item>, _ body: (inout Item) throws -> Void
  ) throws -> Item {
    // The key is computed before the closure runs, because the closure may change the id.
    let key = try repository.coder.keys.key(for: id)
    guard var item = try find(by: id, in: repository) else {
      throw RepositoryError(.notFound, "expected a record with this id, found none", keyHash: key.hash)
    }
    try body(&item)
    guard try repository.coder.keys.key(for: item.id) == key else {
      throw RepositoryError(.invalidKey, "an update must not change the id; delete the record, and insert another", keyHash: key.hash)
    }
    // The write checks no revision, because no other write can happen between the transaction's read of the record and this write.
    try put(item, in: repository, .anything)
    return item
  }

  /// Deletes the record with this id, if there is one.
  ///
  /// - Returns: True if there was a record.
  /// - Throws: `.revisionMismatch` if the record was written since the given revision. `.invalidKey` for an id that cannot be a key.
  ///   `.newerSchema` if another process has stored a record of a newer schema version. `.unsupported` for a repository of another store.
  @discardableResult
  public mutating func delete<Item>(
    _ id: Item.ID, in repository: LocalRepository<Item>, ifRevision: Revision? = nil
  ) throws(RepositoryError) -> Bool {
    try check(repository)
    return try pending.delete(
      repository.coder.keys.key(for: id), in: repository.collection, schemaVersion: repository.schema.version,
      expecting: Expectation(ifRevision))
  }

  @discardableResult
  private mutating func put<Item>(
    _ item: Item, in repository: LocalRepository<Item>, _ expectation: Expectation
  ) throws(RepositoryError) -> Revision {
    try check(repository)
    // The encoded value is decoded again before the commit only if an index needs the decoded value.
    try pending.put(
      repository.coder.encode(item, decoding: pending.collections[repository.collection].indexes.needsValues(of: 1)),
      in: repository.collection,
      expecting: expectation)
    return pending.revision
  }

  private func check<Item>(_ repository: LocalRepository<Item>) throws(RepositoryError) {
    // A collection that was created after this group of writes began has no entry in the pending state, which holds the group's changes.
    guard ObjectIdentifier(repository.core) == store, repository.collection < pending.collections.count else {
      throw RepositoryError(.unsupported, "the repository belongs to another store than the transaction; use repositories of one store")
    }
  }
}

extension StoreCore {
  /// Runs the closure of a transaction as one write.
  ///
  /// - Returns: The value that the closure has returned, once its changes are committed. If the closure has thrown, the result is its
  ///   error, and nothing was written.
  /// - Throws: the same errors as ``submit(_:_:)``.
  func transaction<Output: Sendable, Failure: Error>(
    _ durability: Durability?, _ body: @escaping @Sendable (inout Transaction) throws(Failure) -> Output
  ) async throws(RepositoryError) -> Result<Output, Failure> {
    // `self` is unowned, because the waiting caller holds the store until the write has ended.
    try await result(durability, .unknown) { [unowned self] pending throws(Failure) in
      // The pending state is moved into the transaction. With a second owner, every write would copy the records that earlier writes have
      // staged.
      var transaction = Transaction(pending.moveOut(), of: self)
      do throws(Failure) {
        let output = try body(&transaction)
        pending = transaction.finish()
        return output
      } catch {
        // The pending state is handed back with the failed closure's writes, which the caller then rolls back to its savepoint.
        pending = transaction.finish()
        throw error
      }
    }
  }
}
