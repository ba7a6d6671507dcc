// For stores of this package that keep their index in a repository: LarderBlobs works on the repository's executor, beside its commits.

extension LocalRepository {
  /// The executor of the store.
  package nonisolated var executor: StoreExecutor { core.executor }

  /// Returns when the store takes writes.
  ///
  /// - Throws: `.poisoned` after a failed sync, `.closed`.
  package nonisolated func checkWritable() throws(RepositoryError) { try core.state.checkWritable() }

  /// Gives up a repository that was just opened, and leaves its files as they are.
  package nonisolated func abandon() async { await core.abandon() }

  /// Returns the collection and the key of a record.
  ///
  /// - Throws: `.invalidKey`.
  package nonisolated func address(of id: Item.ID) throws(RepositoryError) -> RecordAddress {
    RecordAddress(collection: schema.name, key: try coder.keys.key(for: id))
  }
}
