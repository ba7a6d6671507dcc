extension LocalRepository {
  /// Returns the changes that are committed to this repository from now on, or from a revision on: change set by change
  /// set, in the order of commits.
  ///
  /// ```swift
  /// for try await set in spots.changes() {
  ///   for change in set.changes { print(change.kind, change.new?.name ?? "") }
  /// }
  /// ```
  ///
  /// Recording starts with this call, not with the first `next`. Read the ``snapshot`` afterwards and you miss nothing.
  ///
  /// A write returns when its records are durable and can be read; its observers are told right after, so when `save`
  /// returns, a set for it may not be there yet. ``RepositoryChanges/revision`` says up to which commit readers have
  /// been told.
  ///
  /// With a revision, the first set has everything that has changed since: each record that was saved (``ChangeSet/Change/Kind/upserted``,
  /// without the old value) and each deletion. To begin with everything, load it from a snapshot and resume from the snapshot's revision.
  /// Deletions are kept up to ``StoreOptions/Limits-swift.struct/tombstones``. If `revision` is before the oldest one kept, or after the
  /// store's newest commit, the first `next` throws `.unsupported`: load everything again.
  ///
  /// A reader that keeps up gets a set for every commit. For a slow one, changes of the same record merge: it sees the
  /// value before the first and after the last of them, a record that was inserted and deleted meanwhile not at all,
  /// and loses nothing but intermediate values. So the buffer holds at most one change per record. A change costs a
  /// writer about a microsecond for each reader, and a decode of the value in the writer's own task while there is a
  /// reader.
  ///
  /// The sequence ends when the store is closed, after the buffered sets were delivered, and when the reading task is
  /// cancelled. For a store that is closed already it delivers the changes since the revision, and ends. It does not
  /// keep the store open.
  public nonisolated func changes(since revision: Revision? = nil) -> RepositoryChanges<Item> {
    RepositoryChanges(core, collection, coder, since: revision)
  }
}

extension LocalRepository {
  /// Returns the results of a query: the current ones at once, then the newest ones whenever they differ.
  ///
  /// ```swift
  /// for try await best in spots.results(of: Query().sorted(by: \.rating, .reverse).limit(20)) { show(best) }
  /// ```
  ///
  /// Results differ when another record, another order, or another revision of a record is in them. A slow reader gets
  /// the newest result only.
  ///
  /// The query is not run again for each change. A changed record is tested against it, which costs a writer about a
  /// microsecond, and a change that matters is merged into the results away from the writer and from the reader's
  /// actor. For a query with a limit, up to four times as many results are kept as offset and limit together, and it is
  /// run again when too many have gone. A query in the order of its rank (`matching` without `sorted`) is run again when
  /// a record that matches, or did, has changed; a shift of ranks alone gives no new result.
  ///
  /// The sequence ends when the store is closed, and when the reading task is cancelled. It does not keep the store open.
  public nonisolated func results(of query: Query<Item>) -> QueryResults<Item> { QueryResults(core, collection, coder, query) }
}
