/// Reads and writes that are committed together, all or none; given to the closure of `transaction`.
///
/// ```swift
/// try await store.transaction { transaction in
///   try transaction.update(spotID, in: spots) { $0.visitCount += 1 }
///   try transaction.insert(Visit(spot: spotID, date: .now), in: visits)
/// }
/// ```
///
/// It sees its own writes, and everything that was written before it. It cannot be kept beyond the closure. The closure
/// runs on the store's executor, one at a time, so it should be quick: reads cost what they cost a repository, without
/// its parallel decoding, and other writes wait. If it throws, nothing of it is written.
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
    store = ObjectIdentifier(core)
  }

  consuming func finish() -> PendingState { pending }

  /// The revision that everything written here will have.
  public var revision: Revision { pending.revision }

  /// Returns the record with this id as the transaction sees it, or `nil` when there is none.
  ///
  /// - Throws: `.decodingFailed`, `.migrationFailed`, `.tooLarge`, `.newerSchema` for a record that cannot be read;
  ///   `.invalidKey`; `.unsupported` for a repository of another store.
  public func find<Item>(by id: Item.ID, in repository: LocalRepository<Item>) throws(RepositoryError) -> Item? {
    try check(repository)
    return try pending.collections[repository.collection].records[repository.coder.keys.key(for: id)]?.value(repository.coder)
  }

  /// Returns all records that decode, in the order of their keys' bytes, as the transaction sees them.
  ///
  /// Cost: linear, on the store's executor.
  /// - Throws: `.unsupported` for a repository of another store.
  public func loadAll<Item>(in repository: LocalRepository<Item>) throws(RepositoryError) -> [Item] {
    try snapshot(of: repository).loadAll()
  }

  /// Returns how many records decode, as the transaction sees it: as many as ``loadAll(in:)`` gives.
  ///
  /// Cost: as ``LocalRepository/count(_:)``, on the store's executor.
  /// - Throws: `.unsupported` for a repository of another store.
  public func count<Item>(in repository: LocalRepository<Item>) throws(RepositoryError) -> Int {
    let records = try snapshot(of: repository).records
    return records.count - records.undecodable(repository.coder).count
  }

  func snapshot<Item>(of repository: LocalRepository<Item>) throws(RepositoryError) -> RepositorySnapshot<Item> {
    try check(repository)
    return RepositorySnapshot(
      revision: pending.latest, collection: repository.schema.name, records: pending.collections[repository.collection].records,
      coder: repository.coder)
  }

  /// Returns the records that meet the query, in its order, as the transaction sees them.
  ///
  /// Cost: as ``LocalRepository/fetch(_:)``, on the store's executor; an index that no query has needed yet is made here, for this once.
  /// - Throws: `.unsupported` for a query that cannot be evaluated, or for a repository of another store; `.decodingFailed` for a
  ///   ``Query/strict()`` one while a record does not decode.
  public func fetch<Item>(
    _ query: Query<Item>, in repository: LocalRepository<Item>
  ) throws(RepositoryError) -> [Item] {
    try run(query, in: repository).items()
  }

  /// Returns the first record that meets the query, as the transaction sees it, or `nil` when none does.
  ///
  /// - Throws: as ``fetch(_:in:)``.
  public func first<Item>(
    _ query: Query<Item>, in repository: LocalRepository<Item>
  ) throws(RepositoryError) -> Item? {
    try run(query.limit(min(query.shape.maximum ?? 1, 1)), in: repository).items().first
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
  /// - Throws: `.newerSchema`; otherwise as ``fetch(_:in:)``.
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
    // Not kept: the batch may fail, and a build that is under way elsewhere must find its log.
    return try TypedQueryRun(query, repository.coder, state.building(state.indexes.missing(for: query.shape)))
  }

  /// Inserts the record, or replaces the one with its id.
  ///
  /// Uniqueness is checked when the closure has returned: the transaction itself then throws `.uniqueViolation`.
  /// - Throws: `.revisionMismatch`, `.invalidKey`, `.encodingFailed`, `.decodingFailed`, `.tooLarge`, `.newerSchema`;
  ///   what prevented the copy before a migration; `.unsupported` for a repository of another store, and for a place
  ///   that a `.geo` index cannot hold.
  @discardableResult
  public mutating func save<Item>(
    _ item: Item, in repository: LocalRepository<Item>, ifRevision: Revision? = nil
  ) throws(RepositoryError) -> Revision {
    try put(item, in: repository, Expectation(ifRevision))
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
      throw RepositoryError(.notFound, "expected a record with this id, found none", keyHash: key.hash)
    }
    try body(&item)
    guard try repository.coder.keys.key(for: item.id) == key else {
      throw RepositoryError(.invalidKey, "an update must not change the id; delete the record, and insert another", keyHash: key.hash)
    }
    try put(item, in: repository, .anything)
    return item
  }

  /// Deletes the record with this id, if there is one.
  ///
  /// - Returns: Whether there was one.
  /// - Throws: `.revisionMismatch`, `.invalidKey`, `.newerSchema`; `.unsupported` for a repository of another store.
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
    try pending.put(
      repository.coder.encode(item, decoding: pending.collections[repository.collection].indexes.needsValues(of: 1)),
      in: repository.collection,
      expecting: expectation)
    return pending.revision
  }

  private func check<Item>(_ repository: LocalRepository<Item>) throws(RepositoryError) {
    guard ObjectIdentifier(repository.core) == store, repository.collection < pending.collections.count else {
      throw RepositoryError(.unsupported, "the repository belongs to another store than the transaction; use repositories of one store")
    }
  }
}

extension StoreCore {
  /// Runs the closure of a transaction as one write.
  /// - Returns: What the closure returned, once its changes are committed, or threw; and then nothing was written.
  /// - Throws: as ``submit(_:_:)``.
  func transaction<Output: Sendable, Failure: Error>(
    _ durability: Durability?, _ body: @escaping @Sendable (inout Transaction) throws(Failure) -> Output
  ) async throws(RepositoryError) -> Result<Output, Failure> {
    try await result(durability, .unknown) { [unowned self] pending throws(Failure) in
      var transaction = Transaction(pending.moveOut(), of: self)
      do throws(Failure) {
        let output = try body(&transaction)
        pending = transaction.finish()
        return output
      } catch {
        pending = transaction.finish()
        throw error
      }
    }
  }
}
