public import Foundation

/// The calls that a view model needs of a repository: reading, querying, saving and deleting values of one type.
///
/// ``LocalRepository`` conforms to this protocol. If a view model takes the protocol, a test can pass a test double to it:
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
  /// Returns the records that meet the query, in the query's order.
  func fetch(_ query: Query<Item>) async throws(RepositoryError) -> [Item]
  /// Returns the first record that meets the query, or `nil` if none does.
  func first(_ query: Query<Item>) async throws(RepositoryError) -> Item?
  /// Returns the number of records that meet the query.
  func count(_ query: Query<Item>) async throws(RepositoryError) -> Int
  /// Returns true if there is a record with this id.
  ///
  /// The default implementation returns true only for a record that can be read.
  func exists(_ id: Item.ID) async throws(RepositoryError) -> Bool
  /// Inserts the record, or replaces the stored record with the same id, and returns its revision once it is stored.
  @discardableResult func save(_ item: Item) async throws(RepositoryError) -> Revision
  /// Deletes the record with this id, and returns true if there was such a record.
  @discardableResult func delete(_ id: Item.ID) async throws(RepositoryError) -> Bool
}

extension Repository {
  /// Returns the number of records.
  public func count() async throws(RepositoryError) -> Int { try await count(Query()) }
}

// `save` and `delete` are `@concurrent` because of a defect of Swift 6.3.1. In Swift 6.3.1, a function that runs on the caller's actor and
// calls a function off that actor does not return to the actor when it forwards an error of the called function.
extension LocalRepository: Repository {
  /// Inserts the record, or replaces the stored record with the same id.
  @concurrent @discardableResult public nonisolated func save(_ item: Item) async throws(RepositoryError) -> Revision {
    // `save` is called with all its arguments, because the shorter call `save(item)` would call the same function again, without end.
    try await save(item, ifRevision: nil, durability: nil)
  }

  /// Deletes the record with this id, if there is one.
  @concurrent @discardableResult public nonisolated func delete(_ id: Item.ID) async throws(RepositoryError) -> Bool {
    // `delete` is called with all its arguments, because the shorter call `delete(id)` would call the same function again, without end.
    try await delete(id, ifRevision: nil, durability: nil)
  }
}

// The overloads that take a `Predicate` are disfavored, so that a reference without arguments, such as `let read = repository.fetch`, means
// the overload that takes a `Query`.
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
  /// - Throws: the same errors as ``fetch(_:)``.
  @_disfavoredOverload
  public nonisolated(nonsending) func fetch(where predicate: Predicate<Item>) async throws(RepositoryError) -> [Item] {
    try await fetch(Query().where(predicate))
  }

  /// Returns the first record, by id, for which the predicate holds, or `nil` if it holds for none.
  ///
  /// - Throws: the same errors as ``fetch(_:)``.
  @_disfavoredOverload
  public nonisolated(nonsending) func first(where predicate: Predicate<Item>) async throws(RepositoryError) -> Item? {
    try await first(Query().where(predicate))
  }

  /// Returns the number of records for which the predicate holds.
  ///
  /// Cost: the same as for ``count(_:)``.
  /// - Throws: the same errors as ``fetch(_:)``.
  @_disfavoredOverload
  public nonisolated(nonsending) func count(where predicate: Predicate<Item>) async throws(RepositoryError) -> Int {
    try await count(Query().where(predicate))
  }

  /// Deletes all records for which the predicate holds, in one commit.
  ///
  /// - Returns: The number of records that were deleted.
  /// - Throws: the same errors as ``delete(where:)-(Query<Item>)``.
  @concurrent @discardableResult
  public nonisolated func delete(where predicate: Predicate<Item>) async throws(RepositoryError) -> Int {
    try await delete(where: Query().where(predicate))
  }
}

/// The calls that a view model with live results needs: those of `Repository`, and sequences of query results and of changes.
///
/// ``LocalRepository`` conforms to this protocol, and a test can define a test double that conforms too. ``LiveQuery`` follows the results
/// of any type that conforms:
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

  /// Returns the results of a query: first the current result, then the newest result each time it differs from the last one.
  func results(of query: Query<Item>) -> Results

  /// Returns the changes that are committed from now on, or after a revision, in the order of commits.
  func changes(since revision: Revision?) -> Changes
}

extension LocalRepository: ObservableRepository {}
