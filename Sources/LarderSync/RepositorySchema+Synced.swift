public import Larder

extension RepositorySchema where Item.ID: Hashable & Codable & Sendable {
  /// Returns the schema of a collection that is synced: whose changes are noted for the server in the commit that makes them.
  ///
  /// ```swift
  /// let spots = try await store.repository(
  ///   Spot.schema.synced(in: "user/42", merge: .fields(counters: [\.visits], sets: [\.tags])))
  /// ```
  ///
  /// Every repository of the collection must be opened with it, or its writes are not sent. Members that the type does not know survive an
  /// edit; a record of a newer schema version can be read by newer apps only, and be deleted.
  ///
  /// Cost: one small record more with each write; until the server has taken the edits, also the value that they were made to.
  /// - Parameters:
  ///   - scope: The scope that all records are in: 1 to 256 printable ASCII characters without blanks, quotes and backslashes.
  ///   - merge: The rules for records that were changed here and at the server.
  ///   - clock: The clock of the device, which may be wrong; it decides only between two edits of one member.
  public func synced(
    in scope: String, merge: MergePolicy<Item> = .fields(), clock: any WallClock = SystemClock()
  ) -> RepositorySchema<Item> {
    synced(.one(scope), merge, clock)
  }

  /// Returns the schema of a collection that is synced, with a function that says in which scope a record is.
  ///
  /// A record stays in its scope: a save that would change it is refused with `.unsupported`. Ids must be unique over all scopes.
  public func synced(
    in scope: @escaping @Sendable (Item) -> String, merge: MergePolicy<Item> = .fields(), clock: any WallClock = SystemClock()
  ) -> RepositorySchema<Item> {
    synced(.function(scope), merge, clock)
  }

  private func synced(_ scope: ScopeRule<Item>, _ merge: MergePolicy<Item>, _ clock: any WallClock) -> RepositorySchema<Item> {
    var schema = self
    schema.trigger = OutboxTrigger(scope: scope, policy: merge, clock: clock)
    return schema
  }
}
