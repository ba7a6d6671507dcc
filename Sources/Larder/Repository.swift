public import Foundation

/// The calls that a view model needs of a repository: reading, querying, saving and deleting values of one type.
///
/// ``LocalRepository`` conforms. Let a view model take the protocol, and a test can pass a double:
///
/// ```swift
/// @MainActor @Observable final class SpotList {
///   private let spots: any Repository<Spot>
///   private(set) var best: [Spot] = []
///
///   init(_ spots: any Repository<Spot>) { self.spots = spots }
///
///   func load() async throws { best = try await spots.fetch(Query().sorted(by: \.rating, .reverse).limit(10)) }
/// }
/// ```
///
/// ## Topics
///
/// ### Reading
///
/// - ``find(by:)``
/// - ``exists(_:)``
/// - ``loadAll()``
/// - ``fetch(_:)``
/// - ``first(_:)``
/// - ``count(_:)``
///
/// ### Writing
///
/// - ``save(_:)``
/// - ``delete(_:)``
public protocol Repository<Item>: Sendable {
  /// The type of the values.
  associatedtype Item: Codable & Identifiable & Sendable where Item.ID: Hashable & Codable & Sendable

  /// Returns the record with this id, or `nil` if there is none.
  func find(by id: Item.ID) async throws(RepositoryError) -> Item?
  /// Returns all records that can be read.
  func loadAll() async throws(RepositoryError) -> [Item]
  /// Returns the records that meet the query, in its order.
  func fetch(_ query: Query<Item>) async throws(RepositoryError) -> [Item]
  /// Returns the first record that meets the query, or `nil` if none does.
  func first(_ query: Query<Item>) async throws(RepositoryError) -> Item?
  /// Returns the number of records that meet the query.
  func count(_ query: Query<Item>) async throws(RepositoryError) -> Int
  /// Returns true if there is a record with this id.
  ///
  /// The default implementation returns true only for a record that can be read.
  func exists(_ id: Item.ID) async throws(RepositoryError) -> Bool
  /// Inserts the record, or replaces the one with its id, and returns its revision when it is stored.
  @discardableResult func save(_ item: Item) async throws(RepositoryError) -> Revision
  /// Deletes the record with this id, and returns true if there was one.
  @discardableResult func delete(_ id: Item.ID) async throws(RepositoryError) -> Bool
}

extension Repository {
  /// Returns the number of records.
  public func count() async throws(RepositoryError) -> Int { try await count(Query()) }
}

// `save` and `delete` are `@concurrent` because of a defect of Swift 6.3.1. With this version, a function that runs on the caller's actor
// and calls a function off that actor does not return to the actor when it forwards an error of the called function.
extension LocalRepository: Repository {
  /// Inserts the record, or replaces the one with its id.
  @concurrent @discardableResult public nonisolated func save(_ item: Item) async throws(RepositoryError) -> Revision {
    // `save` is called with all its arguments, because `save(item)` would call this function again.
    try await save(item, ifRevision: nil, durability: nil)
  }

  /// Deletes the record with this id, if there is one.
  @concurrent @discardableResult public nonisolated func delete(_ id: Item.ID) async throws(RepositoryError) -> Bool {
    // `delete` is called with all its arguments, because `delete(id)` would call this function again.
    try await delete(id, ifRevision: nil, durability: nil)
  }
}

// These calls are disfavored, so that a reference without arguments, such as `let read = repository.fetch`, means the overload that takes a
// query.
extension Repository {
  /// Returns the records for which the predicate holds, sorted by id.
  @_disfavoredOverload
  public func fetch(where predicate: Predicate<Item>) async throws(RepositoryError) -> [Item] {
    try await fetch(Query().where(predicate))
  }

  /// Returns the first record, by id, for which the predicate holds, or `nil` if it holds for none.
  @_disfavoredOverload
  public func first(where predicate: Predicate<Item>) async throws(RepositoryError) -> Item? {
    try await first(Query().where(predicate))
  }

  /// Returns the number of records for which the predicate holds.
  @_disfavoredOverload
  public func count(where predicate: Predicate<Item>) async throws(RepositoryError) -> Int {
    try await count(Query().where(predicate))
  }
}

extension LocalRepository {
  /// Returns the records for which the predicate holds, sorted by id.
  ///
  /// - Throws: as ``fetch(_:)``.
  @_disfavoredOverload
  public nonisolated(nonsending) func fetch(where predicate: Predicate<Item>) async throws(RepositoryError) -> [Item] {
    try await fetch(Query().where(predicate))
  }

  /// Returns the first record, by id, for which the predicate holds, or `nil` if it holds for none.
  ///
  /// - Throws: as ``fetch(_:)``.
  @_disfavoredOverload
  public nonisolated(nonsending) func first(where predicate: Predicate<Item>) async throws(RepositoryError) -> Item? {
    try await first(Query().where(predicate))
  }

  /// Returns the number of records for which the predicate holds.
  ///
  /// Cost: as ``count(_:)``.
  /// - Throws: as ``fetch(_:)``.
  @_disfavoredOverload
  public nonisolated(nonsending) func count(where predicate: Predicate<Item>) async throws(RepositoryError) -> Int {
    try await count(Query().where(predicate))
  }

  /// Deletes all records for which the predicate holds, in one commit.
  ///
  /// - Returns: The number of records that were deleted.
  /// - Throws: as ``delete(where:)-(Query<Item>)``.
  @concurrent @discardableResult
  public nonisolated func delete(where predicate: Predicate<Item>) async throws(RepositoryError) -> Int {
    try await delete(where: Query().where(predicate))
  }
}

/// The calls that a view model with live results needs: those of a repository, and sequences of its results and changes.
///
/// ``LocalRepository`` conforms, and a test can define a double that conforms too. ``LiveQuery`` follows the results of any type that
/// conforms:
///
/// ```swift
/// @MainActor final class BestSpots {
///   let best: LiveQuery<Spot>
///   init(_ spots: some ObservableRepository<Spot>) {
///     best = LiveQuery(spots, Query().sorted(by: \.rating, .reverse).limit(20))
///   }
/// }
/// ```
///
/// For tests, `LarderTesting` has `ScriptedSequence`, which returns results that the test sends to it.
public protocol ObservableRepository<Item>: Repository {
  /// The sequence of a query's results over time, whose iterators throw `.unsupported` if the query cannot be answered.
  associatedtype Results: AsyncSequence<[Item], RepositoryError> & Sendable
  /// The sequence of the committed changes over time.
  associatedtype Changes: AsyncSequence<ChangeSet<Item>, RepositoryError> & Sendable

  /// Returns the results of a query: the current result first, then the newest result whenever it differs.
  func results(of query: Query<Item>) -> Results

  /// Returns the changes that are committed from now on, or after a revision, in the order of commits.
  func changes(since revision: Revision?) -> Changes
}

extension LocalRepository: ObservableRepository {}
