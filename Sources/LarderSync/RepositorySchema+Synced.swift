public import Larder

extension RepositorySchema where Item.ID: Hashable & Codable & Sendable {
  /// Returns the schema of a synced collection, whose changes are queued for the server in the commit that makes them.
  ///
  /// ```swift
  /// let spots = try await store.repository(
  ///   Spot.schema.synced(in: "user/42", merge: .fields(counters: [\.visits], sets: [\.tags])))
  /// ```
  ///
  /// Open every repository of the collection with the synced schema. Writes of a repository without a synced schema are not sent. An edit
  /// keeps the JSON members of a record that the record's type does not declare. An app cannot read a record of a newer schema version, but
  /// can delete it.
  ///
  /// Each write of a record also writes one small record, the outbox entry. Until the server has accepted the edits, the outbox entry also
  /// holds the server's value to which these edits were made.
  /// - Parameters:
  ///   - scope: The scope of all records: 1 to 256 printable ASCII characters without blanks, quotes and backslashes.
  ///   - merge: The rules for merging records that were changed on this device and at the server.
  ///   - clock: The clock of the device, which may be wrong. The clock only decides which of two edits of the same member is newer.
  public func synced(
    in scope: String, merge: MergePolicy<Item> = .fields(), clock: any WallClock = SystemClock()
  ) -> RepositorySchema<Item> {
    synced(by: .one(scope), merge: merge, clock: clock)
  }

  /// Returns the schema of a synced collection, with a function that returns the scope of a record.
  ///
  /// A record stays in its scope. A save that would change the record's scope is refused with `.unsupported`. The ids of records must be
  /// unique over all scopes.
  public func synced(
    in scope: @escaping @Sendable (Item) -> String, merge: MergePolicy<Item> = .fields(), clock: any WallClock = SystemClock()
  ) -> RepositorySchema<Item> {
    synced(by: .function(scope), merge: merge, clock: clock)
  }

  private func synced(by scope: ScopeRule<Item>, merge: MergePolicy<Item>, clock: any WallClock) -> RepositorySchema<Item> {
    var schema = self
    // The trigger runs within each commit, so that a crash loses both the edit and its outbox entry or neither.
    schema.trigger = OutboxTrigger(scope: scope, policy: merge, clock: clock)
    return schema
  }
}
