internal import Dispatch
internal import Synchronization

extension StoreCore {
  /// Declares the indexes of a collection, as its first repository has them.
  ///
  /// - Throws: `.unsupported` when another repository of the collection has declared others.
  func declare(_ indexes: IndexSet, for collection: Int) throws(RepositoryError) {
    let isRefused = published.withLock { state in
      let present = state.collections[collection].indexes
      if present.areDeclared { return !present.isSame(as: indexes) }
      state.collections[collection].indexes = indexes
      return false
    }
    if isRefused {
      throw RepositoryError(
        .unsupported, "expected the indexes that the collection was opened with, found others: declare the same, or reopen the store")
    }
  }

  /// Builds indexes that are not there yet, in one pass over the records, while writes go on; calls for the same ones share the work.
  func buildIndexes(_ indexes: [Int], of collection: Int) async {
    let builds = indexBuilds.withLock { builds in
      let addresses = indexes.map { IndexAddress(collection: collection, index: $0) }
      let missing = addresses.filter { builds[$0] == nil }.map(\.index)
      if !missing.isEmpty {
        let task = Task { await self.build(missing, of: collection) }
        for index in missing { builds[IndexAddress(collection: collection, index: index)] = task }
      }
      return addresses.compactMap { builds[$0] }
    }
    for build in builds { await build.value }
  }

  /// Has the indexes let go of the changes that they have followed, a moment after the last of a row of commits.
  ///
  /// On the executor only.
  func settleIndexesSoon() {
    guard !isSettlingIndexes.load(ordering: .relaxed), state.collections.contains(where: { $0.indexes.keepChanges }) else { return }
    isSettlingIndexes.store(true, ordering: .relaxed)
    DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + Self.pauseBeforeSettling) { [weak self] in
      guard let self else { return }
      let settled = state.collections.map { $0.indexes.settled() }
      executor.queue.async { [weak self] in self?.take(settled) }
    }
  }

  /// The time for which the changes of a row of commits are gathered, in seconds: to wake a thread for each would cost more than to apply.
  private static let pauseBeforeSettling = 0.1

  private func take(_ settled: [[(index: Int, before: FollowedIndex, after: FollowedIndex)]]) {
    for (collection, indexes) in settled.enumerated() {
      for (index, before, after) in indexes {
        published.withLock { $0.collections[collection].indexes.settle(index, from: before, to: after) }
      }
    }
    isSettlingIndexes.store(false, ordering: .relaxed)
    settleIndexesSoon()
  }

  private func build(_ wanted: [Int], of collection: Int) async {
    // From here on, the state logs what changes for the indexes that are being built.
    let begun: (slots: [RecordSlot], indexes: IndexSet)? = await executor.run {
      let begun: (RecordMap, IndexSet)? = self.published.withLock { state in
        guard wanted.contains(where: { !state.collections[collection].indexes.isBuilt($0) }) else { return nil }
        for index in wanted { state.collections[collection].indexes.startBuilding(index) }
        return (state.collections[collection].records, state.collections[collection].indexes)
      }
      return begun.map { ($0.0.ordered(), $0.1) }
    }
    guard let begun else { return }
    let bodies = await DispatchQueue.global(qos: .userInitiated).run { begun.indexes.built(wanted, over: begun.slots) }
    await executor.run {
      var indexes = self.state.collections[collection].indexes
      for (index, body) in zip(wanted, bodies) { indexes.finishBuilding(index, body) }
      let finished = indexes
      self.published.withLock { $0.collections[collection].indexes = finished }
    }
  }
}

/// The address of an index: its collection, and its position among the declared ones.
struct IndexAddress: Hashable, Sendable {
  let collection: Int
  let index: Int
}

extension TypedQueryRun {
  /// Builds the indexes that a query can use, where they are missing, and plans the query.
  ///
  /// - Parameters:
  ///   - keyPath: A property whose index is wanted beside the query's own.
  ///   - state: Reads the newest state of the collection; called again after each build.
  /// - Throws: as ``init(_:_:_:)``, and what `state` throws.
  nonisolated(nonsending) static func ready(
    _ query: Query<Item>, _ coder: RecordCoder<Item>, alsoUsing keyPath: (any AnyKeyPath & Sendable)? = nil, of collection: Int,
    in core: StoreCore, _ state: () throws(RepositoryError) -> CollectionState
  ) async throws(RepositoryError) -> Self {
    try query.shape.check()
    while true {
      let state = try state()
      let missing = state.indexes.missing(for: query.shape, alsoUsing: keyPath)
      if missing.isEmpty {
        // A strict query decodes every record: away from the caller's actor where they are many.
        if query.shape.isStrict { _ = await state.records.undecodableCount(coder) }
        return try Self(query, coder, state)
      }
      await core.buildIndexes(missing, of: collection)
    }
  }
}
