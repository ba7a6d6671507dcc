public import Foundation

extension Repository {
  /// Deletes the record with the id of this one, whatever its stored value is by now; `false` when there was none.
  ///
  /// - Throws: as ``delete(_:)``.
  @concurrent @_disfavoredOverload @discardableResult
  public func delete(_ item: Item) async throws(RepositoryError) -> Bool { try await delete(item.id) }
}

extension LocalRepository {
  /// Deletes all records, in one commit: readers see all of them or none.
  ///
  /// Records that do not decode would go unseen, so a collection that has any is left as it is unless `discardingUndecodable`.
  ///
  /// Cost: linear, and a decode of every record that was not touched yet unless `discardingUndecodable`.
  /// - Parameter discardingUndecodable: Whether records that do not decode are deleted with the others: not by default.
  /// - Throws: `.decodingFailed` with the number of records that do not decode, and then nothing was deleted; otherwise as
  ///   ``replaceAll(with:)``.
  @concurrent public nonisolated func deleteAll(discardingUndecodable: Bool = false) async throws(RepositoryError) {
    try await replaceAll(with: EmptyCollection(), discardingUndecodable: discardingUndecodable)
  }

  /// Changes all records that meet the query, in one commit: all of them or none, with no other write between reading and writing.
  ///
  /// ```swift
  /// try await spots.update(where: Query().where(#Predicate { $0.country == "JP" })) { $0.rating += 1 }
  /// ```
  ///
  /// The closure runs on the store's executor, once for each record, and should be quick. It must not change the id. Every record that it
  /// is given is written, also one that it leaves as it was.
  ///
  /// Cost: its indexes are built first, if they were not; then the query, the closure and one commit run on the executor.
  /// - Returns: The number of records that were changed.
  /// - Throws: what the closure throws, and then nothing was written; `.invalidKey` when it changes an id; otherwise as
  ///   ``save(_:ifRevision:durability:)`` and ``fetch(_:)``.
  @concurrent @discardableResult
  public nonisolated func update(
    where query: Query<Item>, durability: Durability? = nil, _ body: @escaping @Sendable (inout Item) throws -> Void
  ) async throws -> Int {
    // Builds the indexes, which the transaction would otherwise have to do on the store's executor.
    _ = try await readyRun(query)
    return try await transaction(durability: durability) { transaction in try transaction.update(where: query, in: self, body) }
  }

  /// Changes all records for which the predicate holds, in one commit.
  ///
  /// - Returns: The number of records that were changed.
  /// - Throws: as ``update(where:durability:_:)``.
  @concurrent @_disfavoredOverload @discardableResult
  public nonisolated func update(
    where predicate: Predicate<Item>, durability: Durability? = nil, _ body: @escaping @Sendable (inout Item) throws -> Void
  ) async throws -> Int {
    try await update(where: Query().where(predicate), durability: durability, body)
  }
}

extension Transaction {
  /// Changes all records that meet the query, as the transaction sees them.
  ///
  /// The closure must not change the id.
  ///
  /// - Returns: The number of records that were changed.
  /// - Throws: what the closure throws; `.invalidKey` when it changes an id; otherwise as ``fetch(_:in:)`` and ``save(_:in:ifRevision:)``.
  @discardableResult
  public mutating func update<Item>(
    where query: Query<Item>, in repository: LocalRepository<Item>, _ body: (inout Item) throws -> Void
  ) throws -> Int {
    let found = try fetch(query, in: repository)
    for item in found { try update(item.id, in: repository, body) }
    return found.count
  }
}
