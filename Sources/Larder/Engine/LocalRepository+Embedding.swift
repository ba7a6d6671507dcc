// For stores of this package that keep their index in a repository: LarderBlobs works on the repository's executor, beside its commits.

extension LocalRepository {
  /// The executor of the store.
  package nonisolated var executor: StoreExecutor { queue.executor }

  /// Returns when the store takes writes.
  ///
  /// - Throws: `.poisoned` after a failed sync, `.closed`.
  package nonisolated func checkWritable() throws(RepositoryError) { try queue.state.checkWritable() }

  /// Gives up a repository that was just opened, and leaves its files as they are.
  package nonisolated func abandon() async { await queue.abandon() }
}
