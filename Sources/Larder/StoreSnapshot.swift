/// The records of all repositories of a store at one commit: an immutable value that answers at once.
///
/// Several queries over several repositories agree with each other, and no write waits for them:
///
/// ```swift
/// let now = store.snapshot
/// let spot = try now.find(by: id, in: spots)
/// let visits = try now.fetch(Query().where(#Predicate { $0.spot == id }), in: visits)
/// ```
///
/// Every call runs on the calling thread, and uses the indexes that had been built when the snapshot was taken. Taking one copies a few
/// pointers. It stays as it is whatever is written later, also after the store was closed, and keeps the memory of its records alive. For
/// one repository alone, ``LocalRepository/snapshot`` is the same.
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
  /// The newest commit of the store when the snapshot was taken.
  public let revision: Revision
  private let state: StoreState
  private let store: StoreIdentity

  init(_ state: StoreState, of store: StoreCore) {
    revision = Revision(state.commit)
    self.state = state
    self.store = store.identity
  }

  /// Returns the records of one repository at this commit.
  ///
  /// A repository that was made after the snapshot was taken, with a new name, is empty in it.
  ///
  /// - Throws: `.unsupported` for a repository of another store.
  public func snapshot<Item>(of repository: LocalRepository<Item>) throws(RepositoryError) -> RepositorySnapshot<Item> {
    guard repository.core.identity === store else {
      throw RepositoryError(.unsupported, "expected a repository of the store that the snapshot is of, found one of another store")
    }
    let collections = state.collections
    let collection = repository.collection < collections.count ? collections[repository.collection] : CollectionState()
    // Where the repository was opened after the snapshot was taken, its declarations are known and none of its indexes is built.
    let indexes =
      collection.indexes.areDeclared ? collection.indexes : IndexSet(repository.schema.indexes, repository.coder)
    return RepositorySnapshot(
      revision: revision, collection: repository.schema.name, records: collection.records, coder: repository.coder,
      indexes: indexes)
  }

  /// Returns the record with this id, or `nil` when there is none.
  ///
  /// Cost: as ``RepositorySnapshot/find(by:)``.
  /// - Throws: as ``RepositorySnapshot/find(by:)``; `.unsupported` for a repository of another store.
  public func find<Item>(by id: Item.ID, in repository: LocalRepository<Item>) throws(RepositoryError) -> Item? {
    try snapshot(of: repository).find(by: id)
  }

  /// Returns all records that decode, in the order of their keys' bytes.
  ///
  /// Cost: as ``RepositorySnapshot/loadAll()``.
  /// - Throws: `.unsupported` for a repository of another store.
  public func loadAll<Item>(in repository: LocalRepository<Item>) throws(RepositoryError) -> [Item] {
    try snapshot(of: repository).loadAll()
  }

  /// Returns the records that meet the query, in its order.
  ///
  /// Cost: as ``RepositorySnapshot/fetch(_:)``.
  /// - Throws: as ``RepositorySnapshot/fetch(_:)``; `.unsupported` for a repository of another store.
  public func fetch<Item>(_ query: Query<Item>, in repository: LocalRepository<Item>) throws(RepositoryError) -> [Item] {
    try snapshot(of: repository).fetch(query)
  }

  /// Returns the first record that meets the query, or `nil` when none does.
  ///
  /// Cost: as ``RepositorySnapshot/fetch(_:)``.
  /// - Throws: as ``fetch(_:in:)``.
  public func first<Item>(_ query: Query<Item>, in repository: LocalRepository<Item>) throws(RepositoryError) -> Item? {
    try snapshot(of: repository).first(query)
  }

  /// Returns the number of records that meet the query: as many as ``fetch(_:in:)`` would give.
  ///
  /// Cost: as ``RepositorySnapshot/count(_:)``.
  /// - Throws: as ``fetch(_:in:)``.
  public func count<Item>(_ query: Query<Item> = .init(), in repository: LocalRepository<Item>) throws(RepositoryError) -> Int {
    try snapshot(of: repository).count(query)
  }
}

extension Store {
  /// The records of all repositories at the newest commit, as an immutable value.
  ///
  /// Cost: a copy of some pointers. It goes on answering after ``close()``, with the last state.
  public var snapshot: StoreSnapshot { StoreSnapshot(core.state, of: core) }
}
