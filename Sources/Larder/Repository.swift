public import Foundation

/// A collection of values that can be read, queried, saved and deleted: as much of a repository as a view model needs.
///
/// ``LocalRepository`` conforms, and so can a double of a test:
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

  /// Returns the record with this id, or `nil` when there is none.
  func find(by id: Item.ID) async throws(RepositoryError) -> Item?
  /// Returns all records that can be read.
  func loadAll() async throws(RepositoryError) -> [Item]
  /// Returns the records that meet the query, in its order.
  func fetch(_ query: Query<Item>) async throws(RepositoryError) -> [Item]
  /// Returns the first record that meets the query, or `nil` when none does.
  func first(_ query: Query<Item>) async throws(RepositoryError) -> Item?
  /// Returns how many records meet the query.
  func count(_ query: Query<Item>) async throws(RepositoryError) -> Int
  /// Returns whether there is a record with this id: unless the type offers its own way, one that can be read.
  func exists(_ id: Item.ID) async throws(RepositoryError) -> Bool
  /// Inserts the record, or replaces the one with its id; returns its revision when it is stored.
  @discardableResult func save(_ item: Item) async throws(RepositoryError) -> Revision
  /// Deletes the record with this id, and returns whether there was one.
  @discardableResult func delete(_ id: Item.ID) async throws(RepositoryError) -> Bool
}

extension Repository {
  /// Returns how many records there are.
  public func count() async throws(RepositoryError) -> Int { try await count(Query()) }
}

// These are `@concurrent`, because Swift 6.3.1 does not return to the caller's actor when a function that stays on it forwards an error
// of one that does not.
extension LocalRepository: Repository {
  /// Inserts the record, or replaces the one with its id.
  @concurrent @discardableResult public nonisolated func save(_ item: Item) async throws(RepositoryError) -> Revision {
    try await save(item, ifRevision: nil, durability: nil)
  }

  /// Deletes the record with this id, if there is one.
  @concurrent @discardableResult public nonisolated func delete(_ id: Item.ID) async throws(RepositoryError) -> Bool {
    try await delete(id, ifRevision: nil, durability: nil)
  }
}

// References without arguments, such as `let read = repository.fetch`, mean the calls that take a query.
extension Repository {
  /// Returns the records for which the predicate holds, by id.
  @_disfavoredOverload
  public func fetch(where predicate: Predicate<Item>) async throws(RepositoryError) -> [Item] {
    try await fetch(Query().where(predicate))
  }

  /// Returns the first record by id for which the predicate holds, or `nil` when it holds for none.
  @_disfavoredOverload
  public func first(where predicate: Predicate<Item>) async throws(RepositoryError) -> Item? {
    try await first(Query().where(predicate))
  }

  /// Returns how many records the predicate holds for.
  @_disfavoredOverload
  public func count(where predicate: Predicate<Item>) async throws(RepositoryError) -> Int {
    try await count(Query().where(predicate))
  }
}

extension LocalRepository {
  /// Returns the records for which the predicate holds, by id.
  ///
  /// - Throws: as ``fetch(_:)``.
  @_disfavoredOverload
  public nonisolated(nonsending) func fetch(where predicate: Predicate<Item>) async throws(RepositoryError) -> [Item] {
    try await fetch(Query().where(predicate))
  }

  /// Returns the first record by id for which the predicate holds, or `nil` when it holds for none.
  ///
  /// - Throws: as ``fetch(_:)``.
  @_disfavoredOverload
  public nonisolated(nonsending) func first(where predicate: Predicate<Item>) async throws(RepositoryError) -> Item? {
    try await first(Query().where(predicate))
  }

  /// Returns how many records the predicate holds for.
  ///
  /// Cost: as ``count(_:)``.
  /// - Throws: as ``fetch(_:)``.
  @_disfavoredOverload
  public nonisolated(nonsending) func count(where predicate: Predicate<Item>) async throws(RepositoryError) -> Int {
    try await count(Query().where(predicate))
  }

  /// Deletes all records for which the predicate holds, in one commit.
  ///
  /// - Returns: How many there were.
  /// - Throws: as ``delete(where:)-(Query<Item>)``.
  @concurrent @discardableResult
  public nonisolated func delete(where predicate: Predicate<Item>) async throws(RepositoryError) -> Int {
    try await delete(where: Query().where(predicate))
  }
}

/// A repository whose contents can also be followed: what a view model with live results needs.
///
/// `LocalRepository` conforms, and so can a test's own. ``LiveQuery`` follows any of them:
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
/// `LarderTesting` has `ScriptedSequence`, which gives the results that a test tells it to.
public protocol ObservableRepository<Item>: Repository {
  /// The results of a query over time; its iterators throw `.unsupported` for a query that cannot be answered.
  associatedtype Results: AsyncSequence<[Item], RepositoryError> & Sendable
  /// The committed changes over time.
  associatedtype Changes: AsyncSequence<ChangeSet<Item>, RepositoryError> & Sendable

  /// Returns the results of a query: the current ones first, then the newest ones whenever they differ.
  func results(of query: Query<Item>) -> Results

  /// Returns what is committed from now on, or after a revision, in the order of commits.
  func changes(since revision: Revision?) -> Changes
}

extension LocalRepository: ObservableRepository {}
