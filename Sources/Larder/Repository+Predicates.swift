public import Foundation

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
