/// Records to be made durable together, by one call of ``StorageBackend/commit(_:)``.
public struct WriteBatch: Sendable {
  /// The records and tombstones in the order of their commits; an address may occur more than once, and the last one holds.
  public let records: [StoredRecord]
  /// The numbers of the commits in this batch: it starts one above the store's newest commit, and ends at its new newest.
  public let commits: ClosedRange<UInt64>
  /// The kind of failure that the batch must survive.
  public let durability: Durability

  /// Makes a batch.
  public init(records: [StoredRecord], commits: ClosedRange<UInt64>, durability: Durability = .durable) {
    self.records = records
    self.commits = commits
    self.durability = durability
  }
}
