/// Reads and writes that are committed together, all or none; given to the closure of `transaction`.
///
/// It sees its own writes, and the writes of the batch that were staged before it. It cannot be kept beyond the closure.
public struct Transaction: ~Copyable {
  private var batch: StagedBatch
  private let store: ObjectIdentifier

  init(_ batch: StagedBatch, store: CommitQueue) {
    self.batch = batch
    self.store = ObjectIdentifier(store)
  }

  consuming func finish() -> StagedBatch { batch }

  /// The revision that everything written here will have.
  public var revision: Revision { batch.revision }

  /// The record with this id as the transaction sees it, or `nil` when there is none.
  ///
  /// - Throws: `.decodingFailed`, `.tooLarge`, `.invalidKey`; `.unsupported` for a repository of another store.
  public func find<Item>(by id: Item.ID, in repository: LocalRepository<Item>) throws(RepositoryError) -> Item? {
    try check(repository)
    return try batch.collections[repository.collection].records[repository.coder.keys.key(for: id)]?.value(repository.coder)
  }

  /// All records that decode, in the order of their keys' bytes, as the transaction sees them.
  ///
  /// - Throws: `.unsupported` for a repository of another store. Cost: linear, on the store's executor.
  public func loadAll<Item>(in repository: LocalRepository<Item>) throws(RepositoryError) -> [Item] {
    try snapshot(of: repository).loadAll()
  }

  /// Returns how many records decode, as the transaction sees it: as many as ``loadAll(in:)`` gives.
  ///
  /// - Throws: `.unsupported` for a repository of another store. Cost: as ``LocalRepository/count(_:)``, on the store's executor.
  public func count<Item>(in repository: LocalRepository<Item>) throws(RepositoryError) -> Int {
    let records = try snapshot(of: repository).records
    return records.count - records.undecodable(repository.coder).count
  }

  func snapshot<Item>(of repository: LocalRepository<Item>) throws(RepositoryError) -> RepositorySnapshot<Item> {
    try check(repository)
    return RepositorySnapshot(
      revision: batch.latest, collection: repository.schema.name, records: batch.collections[repository.collection].records,
      coder: repository.coder)
  }

  /// The records that meet the query, in its order, as the transaction sees them.
  ///
  /// Cost: as ``LocalRepository/fetch(_:)``, on the store's executor; an index that no query has needed yet is made here, for this once.
  /// - Throws: `.unsupported` for a query that cannot be evaluated, or for a repository of another store; `.decodingFailed` for a
  ///   ``Query/strict()`` one while a record does not decode.
  public func fetch<Item>(
    _ query: Query<Item>, in repository: LocalRepository<Item>
  ) throws(RepositoryError) -> [Item] {
    try run(query, in: repository).items()
  }

  /// The first record that meets the query, as the transaction sees them, or `nil` when none does.
  ///
  /// - Throws: as ``fetch(_:in:)``.
  public func first<Item>(
    _ query: Query<Item>, in repository: LocalRepository<Item>
  ) throws(RepositoryError) -> Item? {
    try run(query.limit(min(query.maximum ?? 1, 1)), in: repository).items().first
  }

  /// Returns how many records meet the query, as the transaction sees them: as many as ``fetch(_:in:)`` would give.
  ///
  /// - Throws: as ``fetch(_:in:)``.
  public func count<Item>(
    _ query: Query<Item>, in repository: LocalRepository<Item>
  ) throws(RepositoryError) -> Int {
    try run(query, in: repository).count()
  }

  /// Deletes all records that meet the query.
  ///
  /// - Returns: How many there were.
  /// - Throws: as ``fetch(_:in:)``.
  @discardableResult
  public mutating func delete<Item>(
    where query: Query<Item>, in repository: LocalRepository<Item>
  ) throws(RepositoryError) -> Int {
    let found = try run(query, in: repository).results()
    for candidate in found {
      _ = try batch.delete(candidate.slot.key, in: repository.collection, schemaVersion: repository.schema.version)
    }
    return found.count
  }

  private func run<Item>(
    _ query: Query<Item>, in repository: LocalRepository<Item>
  ) throws(RepositoryError) -> TypedQueryRun<Item> {
    try check(repository)
    let state = batch.collections[repository.collection]
    // Kept by nobody: the batch may fail, and a build that is under way elsewhere must find its log.
    return try TypedQueryRun(query, repository.coder, state.building(state.indexes.missing(for: query.shape)))
  }

  /// Inserts the record, or replaces the one with its id.
  ///
  /// - Throws: `.revisionMismatch`, `.invalidKey`, `.encodingFailed`, `.tooLarge`; `.unsupported` for a repository of another store.
  @discardableResult
  public mutating func save<Item>(
    _ item: Item, in repository: LocalRepository<Item>, ifRevision: Revision? = nil
  ) throws(RepositoryError) -> Revision {
    try put(item, in: repository, ifRevision.map(Expectation.revision) ?? .anything)
  }

  /// Inserts a record whose id is new.
  ///
  /// - Throws: `.alreadyExists`, otherwise as ``save(_:in:ifRevision:)``.
  @discardableResult
  public mutating func insert<Item>(_ item: Item, in repository: LocalRepository<Item>) throws(RepositoryError) -> Revision {
    try put(item, in: repository, .absent)
  }

  /// Changes a record in place.
  ///
  /// The closure must not change the id.
  ///
  /// - Returns: The record as the closure left it.
  /// - Throws: `.notFound`; what the closure throws; `.invalidKey` when the id was changed; otherwise as ``save(_:in:ifRevision:)``.
  @discardableResult
  public mutating func update<Item>(
    _ id: Item.ID, in repository: LocalRepository<Item>, _ body: (inout Item) throws -> Void
  ) throws -> Item {
    let key = try repository.coder.keys.key(for: id)
    guard var item = try find(by: id, in: repository) else {
      throw RepositoryError(.notFound, "there is no record with this id", keyHash: key.hash)
    }
    try body(&item)
    guard try repository.coder.keys.key(for: item.id) == key else {
      throw RepositoryError(.invalidKey, "an update must not change the id", keyHash: key.hash)
    }
    try put(item, in: repository, .anything)
    return item
  }

  /// Deletes the record with this id, if there is one.
  ///
  /// - Returns: Whether there was one.
  /// - Throws: `.revisionMismatch`, `.invalidKey`; `.unsupported` for a repository of another store.
  @discardableResult
  public mutating func delete<Item>(
    _ id: Item.ID, in repository: LocalRepository<Item>, ifRevision: Revision? = nil
  ) throws(RepositoryError) -> Bool {
    try check(repository)
    return try batch.delete(
      repository.coder.keys.key(for: id), in: repository.collection, schemaVersion: repository.schema.version,
      expecting: ifRevision.map(Expectation.revision) ?? .anything)
  }

  @discardableResult
  private mutating func put<Item>(
    _ item: Item, in repository: LocalRepository<Item>, _ expectation: Expectation
  ) throws(RepositoryError) -> Revision {
    try check(repository)
    try batch.upsert(
      repository.coder.encode(item, decoding: batch.collections[repository.collection].indexes.needsValues), in: repository.collection,
      expecting: expectation)
    return batch.revision
  }

  private func check<Item>(_ repository: LocalRepository<Item>) throws(RepositoryError) {
    guard ObjectIdentifier(repository.queue) == store, repository.collection < batch.collections.count else {
      throw RepositoryError(.unsupported, "the repository belongs to another store than the transaction")
    }
  }
}

extension CommitQueue {
  /// Queues a closure of the caller's as one write.
  func transaction<R: Sendable>(
    _ durability: Durability?, _ body: @escaping @Sendable (inout Transaction) throws -> R
  ) async throws -> R {
    try await write(durability) { [unowned self] batch in
      var transaction = Transaction(batch.take(), store: self)
      do {
        let result = try body(&transaction)
        batch = transaction.finish()
        return result
      } catch {
        batch = transaction.finish()  // the queue takes back what the closure wrote
        throw error
      }
    }
  }
}
