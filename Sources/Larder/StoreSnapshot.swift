/// An immutable value with the records of all repositories of a store at one commit, which is read without `await`.
///
/// Queries of several repositories read the same commit, and no write waits for these queries:
///
/// ```swift
/// let now = store.snapshot
/// let spot = try now.find(by: id, in: spots)
/// let visits = try now.fetch(Query().where(#Predicate { $0.spot == id }), in: visits)
/// ```
///
/// Every read of a snapshot runs on the calling thread, and uses the indexes that had been built when the snapshot was taken. Taking a
/// snapshot copies a few pointers. Later writes do not change a snapshot, and a snapshot still returns its records after the store was
/// closed. A snapshot keeps its records in memory. If you read one repository only, use ``LocalRepository/snapshot``.
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
///
/// ### The commit and its parts
///
/// - ``revision``
/// - ``snapshot(of:)``
public struct StoreSnapshot: Sendable {
  /// Newest commit of the store at the time the snapshot was taken.
  public let revision: Revision
  private let state: StoreState
  private let store: StoreIdentity

  init(_ state: StoreState, of store: StoreCore) {
    revision = Revision(state.commit)
    self.state = state
    self.store = store.identity
  }

  /// Returns a snapshot of one repository at the commit of this store snapshot.
  ///
  /// The returned snapshot is empty if the repository's collection was created after the store's snapshot was taken.
  ///
  /// - Throws: `.unsupported` for a repository of another store.
  public func snapshot<Item>(of repository: LocalRepository<Item>) throws(RepositoryError) -> RepositorySnapshot<Item> {
    // Stores are compared by an identity object and not by address, because a new store may get the address of one that was freed.
    guard repository.core.identity === store else {
      throw RepositoryError(.unsupported, "expected a repository of the store that the snapshot is of, found one of another store")
    }
    let collections = state.collections
    // A collection that was created after the snapshot was taken has a position beyond the snapshot's collections, and is empty in the
    // snapshot.
    let collection = repository.collection < collections.count ? collections[repository.collection] : CollectionState()
    // If the repository was opened after the snapshot was taken, the snapshot declares the repository's indexes, and none of them is built.
    let indexes =
      collection.indexes.areDeclared
      ? collection.indexes : IndexSet(repository.schema.indexes, repository.coder).holdingStubs(collection.records.isPaged)
    return RepositorySnapshot(
      revision: revision, collection: repository.schema.name, records: collection.records, coder: repository.coder,
      indexes: indexes)
  }

  /// Returns the record with this id, or `nil` if there is none.
  ///
  /// Cost: the same as for ``RepositorySnapshot/find(by:)``.
  /// - Throws: the same errors as ``RepositorySnapshot/find(by:)``, and `.unsupported` for a repository of another store.
  public func find<Item>(by id: Item.ID, in repository: LocalRepository<Item>) throws(RepositoryError) -> Item? {
    try snapshot(of: repository).find(by: id)
  }

  /// Returns all records that decode, sorted by the bytes of their keys.
  ///
  /// Cost: the same as for ``RepositorySnapshot/loadAll()``.
  /// - Throws: `.unsupported` for a repository of another store.
  public func loadAll<Item>(in repository: LocalRepository<Item>) throws(RepositoryError) -> [Item] {
    try snapshot(of: repository).allItems()
  }

  /// Returns the records that meet the query, in the query's order.
  ///
  /// Cost: the same as for ``RepositorySnapshot/fetch(_:)``.
  /// - Throws: the same errors as ``RepositorySnapshot/fetch(_:)``, and `.unsupported` for a repository of another store.
  public func fetch<Item>(_ query: Query<Item>, in repository: LocalRepository<Item>) throws(RepositoryError) -> [Item] {
    try snapshot(of: repository).fetch(query)
  }

  /// Returns the first record that meets the query, or `nil` if none does.
  ///
  /// Cost: the same as for ``RepositorySnapshot/fetch(_:)``.
  /// - Throws: the same errors as ``fetch(_:in:)``.
  public func first<Item>(_ query: Query<Item>, in repository: LocalRepository<Item>) throws(RepositoryError) -> Item? {
    try snapshot(of: repository).first(query)
  }

  /// Returns the number of records that meet the query, which is the number that ``fetch(_:in:)`` would return.
  ///
  /// Cost: the same as for ``RepositorySnapshot/count(_:)``.
  /// - Throws: the same errors as ``fetch(_:in:)``.
  public func count<Item>(_ query: Query<Item> = .init(), in repository: LocalRepository<Item>) throws(RepositoryError) -> Int {
    try snapshot(of: repository).count(query)
  }
}

extension Store {
  /// An immutable value with the records of all repositories at the newest commit.
  ///
  /// Cost: a copy of a few pointers. The snapshot still returns its records after ``close()``.
  public var snapshot: StoreSnapshot { StoreSnapshot(core.state, of: core) }
}
