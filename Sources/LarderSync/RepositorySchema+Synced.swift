public import Larder

extension RepositorySchema where Item.ID: Hashable & Codable & Sendable {
  /// Returns the schema of a synced collection, whose changes are queued for the server in the commit that makes them.
  ///
  /// ```swift
  /// let spots = try await store.repository(
  ///   Spot.schema.synced(in: "user/42", merge: .fields(counters: [\.visits], sets: [\.tags])))
  /// ```
  ///
  /// Open every repository of the collection with this schema. Writes of a repository without it are not sent. Members that the type does
  /// not know survive an edit. Only newer apps can read a record of a newer schema version, and this one can delete it.
  ///
  /// Cost: one more small record with each write. Until the server has accepted the edits, it also holds their base value.
  /// - Parameters:
  ///   - scope: The scope of all records: 1 to 256 printable ASCII characters without blanks, quotes and backslashes.
  ///   - merge: The rules for records that were changed here and at the server.
  ///   - clock: The clock of the device, which may be wrong. It only decides between two edits of one member.
  public func synced(
    in scope: String, merge: MergePolicy<Item> = .fields(), clock: any WallClock = SystemClock()
  ) -> RepositorySchema<Item> {
    synced(.one(scope), merge, clock)
  }

  /// Returns the schema of a synced collection, with a function that returns the scope of a record.
  ///
  /// A record stays in its scope. A save that would change it is refused with `.unsupported`. Ids must be unique over all scopes.
  public func synced(
    in scope: @escaping @Sendable (Item) -> String, merge: MergePolicy<Item> = .fields(), clock: any WallClock = SystemClock()
  ) -> RepositorySchema<Item> {
    synced(.function(scope), merge, clock)
  }

  private func synced(_ scope: ScopeRule<Item>, _ merge: MergePolicy<Item>, _ clock: any WallClock) -> RepositorySchema<Item> {
    var schema = self
    // The trigger runs within each commit, so that a crash loses both the edit and its entry or neither.
    schema.trigger = OutboxTrigger(scope: scope, policy: merge, clock: clock)
    return schema
  }
}
