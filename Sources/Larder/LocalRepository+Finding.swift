public import Foundation

extension Repository {
  /// Returns whether there is a record with this id that can be read.
  ///
  /// - Throws: as ``find(by:)``.
  public func exists(_ id: Item.ID) async throws(RepositoryError) -> Bool { try await find(by: id) != nil }

  /// Returns whether any record meets the query.
  ///
  /// - Throws: as ``first(_:)``.
  public func exists(where query: Query<Item>) async throws(RepositoryError) -> Bool { try await first(query) != nil }

  /// Returns whether the predicate holds for any record.
  ///
  /// - Throws: as ``first(_:)``.
  @_disfavoredOverload
  public func exists(where predicate: Predicate<Item>) async throws(RepositoryError) -> Bool {
    try await exists(where: Query().where(predicate))
  }

  /// Returns the first record by id whose property has this value, or `nil` when none has.
  ///
  /// ```swift
  /// let beach = try await beaches.find(by: \.slug, "jogashima")
  /// ```
  ///
  /// Cost: one search in an index that begins with the property, such as `.unique(\.slug)`; otherwise a look at each record until one is
  /// found, after a decode of all that were not touched yet, on every core.
  /// - Throws: as ``first(_:)``.
  public func find<Value: Equatable & Sendable>(
    by keyPath: any KeyPath<Item, Value> & Sendable, _ value: Value
  ) async throws(RepositoryError) -> Item? {
    try await first(Query().where(keyPath, .equal, value))
  }
}

extension LocalRepository {
  /// Returns whether a record with this id is stored, one that does not decode included.
  ///
  /// Never leaves the caller's actor, never waits and decodes nothing. Cost: about a dictionary's.
  /// - Throws: `.invalidKey` for an id that cannot be a key, `.closed`.
  public nonisolated(nonsending) func exists(_ id: Item.ID) async throws(RepositoryError) -> Bool {
    try core.records(of: collection)[coder.keys.key(for: id)] != nil
  }
}
