extension LocalRepository {
  /// Returns the changes that are committed to this repository from now on, or since a revision, as change sets in the order of commits.
  ///
  /// ```swift
  /// for try await set in spots.changes() {
  ///   for change in set.changes { print(change.kind, change.new?.name ?? "") }
  /// }
  /// ```
  ///
  /// The sequence records changes from the call of `changes(since:)` on, and not only from the first `next`. If you read the ``snapshot``
  /// after that call, the sequence delivers every change that the snapshot lacks.
  ///
  /// A write returns when its records are durable and can be read. Observers receive the write's changes right after that, so a change set
  /// may arrive after `save` has returned. ``RepositoryChanges/revision`` is the newest commit that was handed to readers.
  ///
  /// Pass a revision to resume a sequence of changes after that revision. The first change set of a resumed sequence has everything that
  /// has changed since that revision: each record that was saved (``ChangeSet/Change/Kind/upserted``, without the old value) and each
  /// deletion. To begin with all records, load the records from a snapshot and resume from the snapshot's revision. The store keeps at most
  /// ``StoreOptions/Limits-swift.struct/tombstones`` deletions for resuming. If `revision` is before the newest deletion that was dropped,
  /// or after the store's newest commit, the first `next` throws `.unsupported`. After `.unsupported`, load all records again.
  ///
  /// A reader that keeps up gets a change set for every commit that changes the collection. For a slow reader, several changes of one
  /// record are merged into one change. A merged change has the value before the first of its changes and the value after the last one. A
  /// change set leaves out a record that was inserted and deleted before the reader took the set. A slow reader loses only intermediate
  /// values, so the buffer holds at most one change per record.
  ///
  /// Cost: about a microsecond of a writer's time for each change and reader. The value of a changed record is decoded when
  /// ``ChangeSet/Change/new`` or ``ChangeSet/Change/old`` is first read.
  ///
  /// The sequence ends when the store is closed, after the buffered sets were delivered, and when the reading task is cancelled. In a store
  /// that is closed already, the sequence delivers the changes since the given revision and ends. A sequence of changes does not keep the
  /// store open.
  public nonisolated func changes(since revision: Revision? = nil) -> RepositoryChanges<Item> {
    RepositoryChanges(core, collection: collection, coder: coder, since: revision)
  }
}

extension LocalRepository {
  /// Returns the results of a query as a sequence: the current result first, then each later result that differs.
  ///
  /// ```swift
  /// for try await best in spots.results(of: Query().sorted(by: \.rating, .reverse).limit(20)) { show(best) }
  /// ```
  ///
  /// A result differs from the one before it if it has another record, another order, or another revision of a record. A slow reader of the
  /// results gets only the newest result.
  ///
  /// The query does not run again for each change. Testing a changed record against the query costs a writer about a microsecond. A change
  /// that affects the result is merged into the result off the writer's task and the reader's actor. For a query with a limit, the sequence
  /// of results keeps up to four times as many records as the sum of offset and limit, and a few more. The sequence runs the query again
  /// when too few of these records remain.
  ///
  /// A query in the order of its rank (`matching` without `sorted`) runs again when a record that matches, or that matched before, has
  /// changed. A change that only shifts the ranks of the matching records gives no new result.
  ///
  /// The sequence of results ends when the store is closed, and when the reading task is cancelled. The sequence does not keep the store
  /// open.
  public nonisolated func results(of query: Query<Item>) -> QueryResults<Item> {
    QueryResults(core, collection: collection, coder: coder, query: query)
  }
}
