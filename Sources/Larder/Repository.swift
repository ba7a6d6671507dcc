/// What a view model needs of a repository: reading, querying, saving, deleting.
///
/// `LocalRepository` conforms, and so can a test's own.
public protocol Repository<Item>: Sendable {
  /// The values it keeps.
  associatedtype Item: Codable & Identifiable & Sendable where Item.ID: Hashable & Codable & Sendable

  /// The record with this id, or `nil` when there is none.
  func find(by id: Item.ID) async throws(RepositoryError) -> Item?
  /// All records that can be read.
  func loadAll() async throws(RepositoryError) -> [Item]
  /// The records that meet the query, in its order.
  func fetch(_ query: Query<Item>) async throws(RepositoryError) -> [Item]
  /// The first record that meets the query, or `nil` when none does.
  func first(_ query: Query<Item>) async throws(RepositoryError) -> Item?
  /// Returns how many records meet the query.
  func count(_ query: Query<Item>) async throws(RepositoryError) -> Int
  /// Inserts the record, or replaces the one with its id; returns when it is stored.
  @discardableResult func save(_ item: Item) async throws(RepositoryError) -> Revision
  /// Deletes the record with this id; `false` when there was none.
  @discardableResult func delete(_ id: Item.ID) async throws(RepositoryError) -> Bool
}

extension Repository {
  /// Returns how many records there are.
  public func count() async throws(RepositoryError) -> Int { try await count(Query()) }
}

// These are `@concurrent`, because Swift 6.3.1 forgets to come back to the caller's actor when a function that stays on it forwards an error of one
// that does not.
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
