extension LocalRepository {
  /// Returns the changes that are committed to this repository from now on, or after a revision, as change sets in the order of commits.
  ///
  /// ```swift
  /// for try await set in spots.changes() {
  ///   for change in set.changes { print(change.kind, change.new?.name ?? "") }
  /// }
  /// ```
  ///
  /// Recording starts with this call and not with the first `next`. If you read the ``snapshot`` after the call, the sequence delivers
  /// every change that the snapshot lacks.
  ///
  /// A write returns when its records are durable and can be read. Observers receive the write's changes right after its records can be
  /// read, so a set may arrive after `save` has returned. ``RepositoryChanges/revision`` is the newest commit that was handed to readers.
  ///
  /// Pass a revision to resume. The first set of a resumed sequence has everything that has changed since that revision: each record that
  /// was saved (``ChangeSet/Change/Kind/upserted``, without the old value) and each deletion. To begin with everything, load the records
  /// from a snapshot and resume from the snapshot's revision. Deletions are kept up to ``StoreOptions/Limits-swift.struct/tombstones``. If
  /// `revision` is before the newest deletion that was dropped, or after the store's newest commit, the first `next` throws `.unsupported`:
  /// load everything again.
  ///
  /// A reader that keeps up gets a set for every commit. For a slow reader, changes of one record merge. The merged change has the value
  /// before the first of these changes and the value after the last one. A record that was inserted and deleted before the reader took the
  /// set is left out. Only intermediate values are lost, so the buffer holds at most one change per record.
  ///
  /// Cost: about a microsecond of a writer's time for each change and reader. A value is decoded when ``ChangeSet/Change/new`` or
  /// ``ChangeSet/Change/old`` is first read.
  ///
  /// The sequence ends when the store is closed, after the buffered sets were delivered, and when the reading task is cancelled. In a store
  /// that is closed already, the sequence delivers the changes since the revision and ends. The sequence does not keep the store open.
  public nonisolated func changes(since revision: Revision? = nil) -> RepositoryChanges<Item> {
    RepositoryChanges(core, collection: collection, coder: coder, since: revision)
  }
}

extension LocalRepository {
  /// Returns the results of a query: the current result first, then the newest result whenever it differs.
  ///
  /// ```swift
  /// for try await best in spots.results(of: Query().sorted(by: \.rating, .reverse).limit(20)) { show(best) }
  /// ```
  ///
  /// A result differs if it has another record, another order, or another revision of a record. A slow reader gets only the newest result.
  ///
  /// The query does not run again for each change. A changed record is tested against the query, which costs a writer about a microsecond.
  /// A change that affects the result is merged into it away from the writer and from the reader's actor. For a query with a limit, the
  /// sequence keeps up to four times as many results as the sum of offset and limit, and runs the query again when too few of these results
  /// remain.
  ///
  /// A query in the order of its rank (`matching` without `sorted`) runs again when a record that matches, or that matched before, has
  /// changed. A change that only shifts the ranks of the matching records gives no new result.
  ///
  /// The sequence ends when the store is closed, and when the reading task is cancelled. The sequence does not keep the store open.
  public nonisolated func results(of query: Query<Item>) -> QueryResults<Item> {
    QueryResults(core, collection: collection, coder: coder, query: query)
  }
}
