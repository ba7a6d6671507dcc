internal import Dispatch
internal import Synchronization

/// Builds the indexes of a store and applies later changes to them, while commits go on.
///
/// An index is built when a query first uses it. Before its first use, an index exists only as a declaration in its collection.
final class IndexBuilder: Sendable {
  /// Tasks that build an index or have built it, by the collection and position of the index.
  ///
  /// A finished task stays in `builds`, so that a later query finds the task and does not build the index again.
  private let builds = Mutex<[Address: Task<Void, Never>]>([:])
  /// True while changes in index logs wait to be applied to the indexes, or are being applied.
  ///
  /// `isSettling` is read and set only on the store's executor.
  private let isSettling = Atomic(false)
  /// Pause in seconds before logged changes are applied to indexes, during which the changes of several commits are gathered.
  ///
  /// Waking a thread for each commit would cost more than applying the changes together.
  private static let pauseBeforeSettling = 0.1

  /// Address of an index: the position of its collection, and the position of the index among the collection's declared indexes.
  private struct Address: Hashable, Sendable {
    let collection: Int
    let index: Int
  }

  /// Builds those of the given indexes that are not built yet, in one pass over the records, while commits go on.
  ///
  /// If several calls need the same index, they await the same build.
  func build(_ indexes: [Int], of collection: Int, in core: StoreCore) async {
    let builds = builds.withLock { builds in
      let addresses = indexes.map { Address(collection: collection, index: $0) }
      let missing = addresses.filter { builds[$0] == nil }.map(\.index)
      // The task that builds an index is created under the lock. Without the lock, two queries could both find the index missing and build
      // it twice.
      if !missing.isEmpty {
        let task = Task { await Self.build(missing, of: collection, in: core) }
        for index in missing { builds[Address(collection: collection, index: index)] = task }
      }
      return addresses.compactMap { builds[$0] }
    }
    for build in builds { await build.value }
  }

  private static func build(_ wanted: [Int], of collection: Int, in core: StoreCore) async {
    // The records are copied and the index's change log is started in one executor block. If a commit ran between the copy and the start of
    // the log, its changes would be missing in the index.
    let begun: (slots: [RecordSlot], indexes: IndexSet)? = await core.executor.run {
      let begun: (RecordMap, IndexSet)? = core.updateCollection(collection) { state in
        guard wanted.contains(where: { !state.indexes.isBuilt($0) }) else { return nil }
        for index in wanted { state.indexes.startBuilding(index) }
        return (state.records, state.indexes)
      }
      return begun.map { ($0.0.ordered(), $0.1) }
    }
    guard let begun else { return }
    let bodies = await DispatchQueue.global(qos: .userInitiated).run { begun.indexes.built(wanted, over: begun.slots) }
    await core.executor.run {
      // The logged changes are applied outside the lock of the published state, so that readers are not blocked meanwhile.
      var indexes = core.state.collections[collection].indexes
      for (index, body) in zip(wanted, bodies) { indexes.finishBuilding(index, body) }
      let finished = indexes
      core.updateCollection(collection) { $0.indexes = finished }
    }
  }

  /// Applies the logged changes to the indexes after 0.1 seconds, so that the changes of several commits are applied together.
  ///
  /// Must run on the store's executor, which serializes all commits.
  func settleSoon(_ core: StoreCore) {
    guard !isSettling.load(ordering: .relaxed), core.state.collections.contains(where: { $0.indexes.keepChanges }) else { return }
    isSettling.store(true, ordering: .relaxed)
    // `settled()` blocks its thread while it applies changes, so it does not run on the store's executor, where commits would wait for it.
    DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + Self.pauseBeforeSettling) { [weak core] in
      guard let core else { return }
      let settled = core.state.collections.map { $0.indexes.settled() }
      core.executor.queue.async { [weak core] in core.map { $0.indexBuilder.publish(settled, in: $0) } }
    }
  }

  private func publish(_ settled: [[(index: Int, before: FollowedIndex, after: FollowedIndex)]], in core: StoreCore) {
    for (collection, indexes) in settled.enumerated() {
      for (index, before, after) in indexes {
        core.updateCollection(collection) { $0.indexes.settle(index, from: before, to: after) }
      }
    }
    isSettling.store(false, ordering: .relaxed)
    // Commits may have logged more changes while the previous changes were applied.
    settleSoon(core)
  }
}

extension TypedQueryRun {
  /// Builds the indexes that a query can use and that are not built yet, and returns the planned query.
  ///
  /// - Parameters:
  ///   - keyPath: A property whose index is built besides the indexes that the query uses.
  ///   - state: Closure that returns the newest state of the collection. The closure `state` is called again after each build of indexes.
  /// - Throws: as ``init(_:coder:over:)``, or the error of `state`.
  nonisolated(nonsending) static func ready(
    _ query: Query<Item>, _ coder: RecordCoder<Item>, alsoUsing keyPath: (any AnyKeyPath & Sendable)? = nil, of collection: Int,
    in core: StoreCore, _ state: () throws(RepositoryError) -> CollectionState
  ) async throws(RepositoryError) -> Self {
    try query.shape.check()
    while true {
      let state = try state()
      let missing = state.indexes.missing(for: query.shape, alsoUsing: keyPath)
      if missing.isEmpty {
        // A strict query decodes every record of the collection. `undecodableCount` decodes many records on other threads, so that the
        // caller's actor is not blocked.
        if query.shape.isStrict { _ = await state.records.undecodableCount(coder) }
        return try Self(query, coder: coder, over: state)
      }
      await core.indexBuilder.build(missing, of: collection, in: core)
    }
  }
}
