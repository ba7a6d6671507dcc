/// The commits of other processes to a store since a revision: all that it takes to catch up with them.
public struct ForeignCommits: Sendable {
  /// The store's newest commit, which what is here leads to.
  public let commit: Revision
  /// The records and tombstones of later revisions than the one asked about: each address once, as it is now, in any order.
  public let records: [StoredRecord]
  /// The addresses of all records, if tombstones after the revision asked about may have been forgotten: a record that is not among them
  /// was deleted.
  ///
  /// `nil` when ``records`` has a tombstone for every deletion.
  public let addresses: Set<RecordAddress>?

  /// Describes what was committed.
  public init(commit: Revision, records: [StoredRecord], addresses: Set<RecordAddress>? = nil) {
    self.commit = commit
    self.records = records
    self.addresses = addresses
  }
}
